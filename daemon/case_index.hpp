// CaseIndex: finds the word of a model that differs from another in case alone.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"

namespace gloved::daemon {

/// Finds words by their case folding (common/case_fold.hpp). Any number of threads may use it.
class CaseIndex {
  public:
    /// Shares ownership of the model.
    explicit CaseIndex(std::shared_ptr<const format::Model> model);

    /// Reads all words of the model, unless that is done already. `find` does the same, so this
    /// only spares its first caller the time: half a second for 2.2 million words.
    void build() const;

    /// The most frequent word with the same case folding as `word`; of equals the first in byte
    /// order. A few look-ups in the model.
    std::optional<format::Row> find(std::string_view word) const;

    /// Bytes of memory that the index holds besides the model: 4 for each word in mixed case.
    std::size_t size_bytes() const;

  private:
    const std::shared_ptr<const format::Model> model_;
    mutable std::once_flag built_;
    // Ordered by case folding. A word that is its own case folding, or that in upper case or
    // capitalized, is not among them: `find` looks those up in the model.
    mutable std::vector<format::Row> rows_;
};

}  // namespace gloved::daemon
