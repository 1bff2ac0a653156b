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

/// The words of a list that a model does not have as they stand. With the model's words of the
/// list, another model's list can be made of them.
struct OtherWords {
    std::string text;       ///< the distinct words, each with an LF
    std::vector<Row> rows;  ///< of the model's words that these alone name, in another case;
                            ///< ascending
};

/// What a list is for a model.
struct ListFile {
    std::vector<Row> rows;       ///< of the words that the model has, ascending
    std::size_t missing = 0;     ///< distinct words that it does not have
    std::size_t replaced = 0;    ///< distinct words that it has in another case alone
    std::uint64_t checksum = 0;  ///< XXH3-64 of the words of `rows`, each with an LF
    bool is_empty = true;        ///< the file has no word at all, known or not
    OtherWords others;           ///< the missing and the replaced ones
};

/// A set of words, in memory that grows with the distinct ones alone.
class DistinctWords {
  public:
    /// Adds a word, which holds no LF. Returns whether it is a new one. `text` may reach 4 GiB.
    bool add(std::string_view word);
    std::size_t count() const { return count_; }
    /// The words in the order in which they came, each with an LF.
    const std::string& text() const { return text_; }
    /// Gives `text` away. The set is of no use afterwards.
    std::string take_text();

  private:
    std::string_view word_at(std::uint32_t slot) const;
    std::uint32_t& slot_of(std::string_view word);
    void grow();

    std::string text_;
    // Open addressing. A slot is 0, or 1 + the offset of its word.
    std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(16);
    std::size_t count_ = 0;
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
    /// Whether more words than kMaxOtherWords, or kMaxOtherBytes, are not in the model as they
    /// stand.
    bool is_too_long() const;
    /// The list. Call it once.
    ListFile finish();

  private:
    const Model& model_;
    FindInOtherCase find_in_other_case_;
    std::vector<bool> has_row_;                // (rows)
    std::vector<bool> has_row_in_other_case_;  // (rows), or none if it is not looked for
    DistinctWords others_;
    std::size_t missing_ = 0;
    bool is_empty_ = true;
};

/// A list that has more words that are not in the model, or only in another case, is refused, since
/// they stay in memory. All words of glove.840B.300d are 2.2 million.
inline constexpr std::size_t kMaxOtherWords = std::size_t{1} << 22;
/// The same for their bytes, each word with an LF.
inline constexpr std::size_t kMaxOtherBytes = std::size_t{64} << 20;

/// Adds the words of `lines`, one a line, to each of `builders`. Ignores empty lines. Errors: those
/// of TextLines; bad_source, if a builder's list is too long. `note`, if not nullptr, gets what to
/// tell of a first line that looks like a heading.
Status read_list(TextLines& lines, std::span<ListBuilder> builders,
                 std::optional<std::string>* note = nullptr);

/// Bytes of memory, at most, that it takes to read a list of `file_bytes` for a model of `rows`,
/// with its OtherWords.
std::uint64_t list_memory_bytes(std::uint64_t file_bytes, std::uint64_t rows);

}  // namespace gloved::format
