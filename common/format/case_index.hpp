// CaseIndex: finds the word of a model that differs from another in case alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"

namespace gloved::format {

/// Finds words by their case folding (common/case_fold.hpp). Immutable: any threads may use it.
class CaseIndex {
  public:
    /// Reads all words of `model`, which must outlive the index: half a second for 2.2 million
    /// words.
    explicit CaseIndex(const Model& model);

    /// The most frequent word with the same case folding as `word`; of equals the first in byte
    /// order. A few look-ups in the model.
    std::optional<Row> find(std::string_view word) const;

    /// The word that stands for `word`, which the model does not have, where case is ignored: the
    /// first that it has of: lower case, capitalized, upper case, `find`; then the same with
    /// accents composed, and decomposed (common/unicode_form.hpp).
    std::optional<Row> find_in_other_case(std::string_view word) const;

    /// Longer words differ from every word of the model in more than case.
    std::size_t max_word_bytes() const { return max_word_bytes_; }
    /// Bytes of memory that the index holds besides the model: 4 for each word in mixed case.
    std::size_t size_bytes() const { return rows_.capacity() * sizeof(Row); }

  private:
    const Model* model_;
    std::size_t max_word_bytes_ = 0;
    // Ordered by case folding. A word that is its own case folding, or that in upper case or
    // capitalized, is not among them: `find` looks those up in the model.
    std::vector<Row> rows_;
};

}  // namespace gloved::format
