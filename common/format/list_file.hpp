// Reads a list of words, which requests name in within= and without=, from its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/text_lines.hpp"

namespace gloved::format {

/// What a list is for a model.
struct ListFile {
    std::vector<Row> rows;       ///< of the words that the model has, ascending
    std::size_t missing = 0;     ///< distinct words that it does not have
    std::size_t replaced = 0;    ///< distinct words that it has in another case alone
    std::uint64_t checksum = 0;  ///< XXH3-64 of the words of `rows`, each with an LF
    bool is_empty = true;        ///< the file has no word at all, known or not
};

/// A set of words as their hashes, in memory that grows with the distinct ones alone.
class WordHashes {
  public:
    void add(std::string_view word);
    /// The number of distinct words that were added.
    std::size_t count();
    /// A number that `count` is not below, at least half of it.
    std::size_t at_least() const { return distinct_; }

  private:
    std::vector<std::uint64_t> hashes_;
    std::size_t distinct_ = 0;                    // when repetitions were dropped last
    std::size_t drop_at_ = std::size_t{1} << 12;  // size at which to drop them again
};

/// Makes a list of the words that are added, in any order, also several times.
class ListBuilder {
  public:
    /// Finds a word of the model that differs from another in case alone.
    using FindInOtherCase = std::function<std::optional<Row>(std::string_view word)>;

    /// Words that `model` does not have as they stand are looked for with `find_in_other_case`, if
    /// it is not empty. `model` must outlive the builder.
    explicit ListBuilder(const Model& model, FindInOtherCase find_in_other_case = {});
    void add(std::string_view word);
    /// Whether more words than kMaxOtherWords are not in the model as they stand. Noticed when
    /// there are twice as many, at the latest.
    bool is_too_long() const;
    /// The list. Call it once.
    ListFile finish();

  private:
    const Model& model_;
    FindInOtherCase find_in_other_case_;
    std::vector<bool> has_row_;  // (rows)
    WordHashes missing_;
    WordHashes replaced_;
    bool is_empty_ = true;
};

/// A list that has more words that are not in the model, or only in another case, is refused, since
/// counting them takes memory. All words of glove.840B.300d are 2.2 million.
inline constexpr std::size_t kMaxOtherWords = std::size_t{1} << 22;

/// Adds the words of `lines`, one a line, to each of `builders`. Ignores empty lines. Errors: those
/// of TextLines; bad_source, if a builder's list is too long. `note`, if not nullptr, gets what to
/// tell of a first line that looks like a heading.
Status read_list(TextLines& lines, std::span<ListBuilder> builders,
                 std::optional<std::string>* note = nullptr);

/// Bytes of memory, at most, that it takes to read a list of `file_bytes` for a model of `rows`.
std::uint64_t list_memory_bytes(std::uint64_t file_bytes, std::uint64_t rows);

}  // namespace gloved::format
