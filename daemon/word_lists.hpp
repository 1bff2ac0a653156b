// WordLists: the lists of words of a model that requests name in within= and without=.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "daemon/settings.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::daemon {

/// What LISTS tells about a list.
struct ListFacts {
    std::string name;
    std::size_t words = 0;       ///< distinct words that the model has
    std::size_t missing = 0;     ///< distinct words that it does not have
    std::uint64_t checksum = 0;  ///< XXH3-64 of `words`, in byte order, each with an LF
};

/// Named lists of a model. Immutable: any threads may use them.
class WordLists {
  public:
    /// Reads the files of `settings` (format::read_list_file). Logs what it found in each. Error:
    /// io, which names the file.
    static Result<WordLists> read(std::span<const ListSetting> settings,
                                  const format::Model& model);

    const std::vector<ListFacts>& facts() const { return facts_; }
    /// The rows of all lists, in the order of facts().
    const std::shared_ptr<const kernels::RowLists>& rows() const { return rows_; }
    /// The lists called `names`. Error: unknown_list.
    Result<kernels::ListMask> find(std::span<const std::string> names) const;

  private:
    std::vector<ListFacts> facts_;
    std::shared_ptr<const kernels::RowLists> rows_ = kernels::no_lists();
};

}  // namespace gloved::daemon
