// WordLists: the lists of words of a model that requests name in within= and without=.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/case_index.hpp"
#include "common/format/list_file.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "daemon/settings.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::daemon {

/// The lists of a model: those of its settings, `named`, and after them, by name, one for each
/// regular file of `directory` whose name no other list has. The name is the file's, without `.txt`
/// at its end. An empty `directory` is none. Of other files the log tells why they are no lists,
/// but for those whose names begin with '.' or end with '~'. Errors: io, if the directory cannot be
/// read; bad_source, if two files have one name or there are more than kMaxLists lists. Both name
/// the directory.
Result<std::vector<ListSetting>> find_lists(std::span<const ListSetting> named,
                                            const std::string& directory);

/// Where the words of a list are from.
enum class ListOrigin {
    file,  ///< a regular file, which each reload reads
    pipe,  ///< a pipe, FIFO or device, which was read once, at the start
    kept,  ///< the list before, since the file could not be read or had no words at the last reload
};
/// «file», «pipe» or «kept».
std::string_view to_string(ListOrigin origin);

/// What LISTS tells about a list.
struct ListFacts {
    std::string name;
    std::size_t words = 0;       ///< distinct words that the model has
    std::size_t missing = 0;     ///< distinct words that it does not have
    std::uint64_t checksum = 0;  ///< XXH3-64 of `words`, in byte order, each with an LF
    std::size_t replaced = 0;    ///< distinct words that were taken in another case or form
    ListOrigin origin = ListOrigin::file;
};

/// The texts of lists that are pipes, by their paths. A pipe can be read once, and its words are
/// needed by every model that has the list, and at every reload.
using PipeTexts = std::map<std::string, std::string>;

/// Named lists of a model. Immutable: any threads may use it.
class WordLists {
  public:
    /// Lists as they were before a reload, and the model that they are of.
    struct Before {
        const WordLists& lists;
        const format::Model& model;
    };

    /// Reads the files of `settings`. `cases`: the index of `model` if case is ignored, otherwise
    /// nullptr. Logs what it found in each.
    ///
    /// At the start `before` is nullptr. A list that cannot be read is an error (io, bad_source),
    /// which names the file. Texts of pipes are added to `pipes`.
    ///
    /// At a reload, pipes are not read: their words are those of `pipes`. If a file cannot be read,
    /// is no regular file, or has no words, the list keeps all its words of `before`, also those
    /// that the model before lacked, and `faults` tells why. A list that was not there before is
    /// left out then.
    static Result<WordLists> read(std::span<const ListSetting> settings, const format::Model& model,
                                  const format::CaseIndex* cases, PipeTexts& pipes,
                                  const Before* before);

    /// Logs how many missing words of each list, of the first 65,536, the model has in another case
    /// or form. Only for lists that were read without `cases`, the index of the model.
    void log_other_cases(const format::CaseIndex& cases) const;

    const std::vector<ListFacts>& facts() const { return facts_; }
    /// Why lists were kept, one after the other; empty if none was.
    const std::string& faults() const { return faults_; }
    /// The rows of all lists, in the order of facts().
    const std::shared_ptr<const kernels::RowLists>& rows() const { return rows_; }
    /// The words of the list at `place` of facts() that the model does not have as they stand.
    const format::OtherWords& others(std::size_t place) const { return others_[place]; }
    /// The place of a list among facts(); nullopt if there is none of this name.
    std::optional<std::size_t> place_of(std::string_view name) const;
    /// Whether the list at `place` has any word, which the model may lack.
    bool has_words(std::size_t place) const {
        return facts_[place].words + facts_[place].missing > 0;
    }
    /// Memory of all lists.
    std::size_t size_bytes() const;
    /// The lists called `names`. Error: unknown_list.
    Result<kernels::ListMask> find(std::span<const std::string> names) const;

  private:
    std::vector<ListFacts> facts_;
    std::vector<format::OtherWords> others_;  // of each, for a model that may have them
    std::string faults_;
    std::shared_ptr<const kernels::RowLists> rows_ = kernels::no_lists();
};

}  // namespace gloved::daemon
