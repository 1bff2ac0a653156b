// Finds which words of an evaluation the model has, and in which letter case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/eval/letter_case.hpp"

namespace gloved::client {

/// Use it in three steps: `add` all words; ask the daemon for all `spellings` and report what it
/// has with `set_rank`; then `find` the model's spelling of each word. Of several spellings of a
/// word it keeps the most frequent, if that is among the model's `top` most frequent words.
class Vocabulary {
  public:
    Vocabulary(LetterCase letter_case, std::uint64_t top) : letter_case_(letter_case), top_(top) {}

    /// Adds the possible spellings of `word` (spellings_of).
    void add(std::string_view word);

    /// All spellings to ask for, each once, in the order of their addition.
    const std::vector<std::string>& spellings() const { return spellings_; }

    /// Notes that the model has `spelling`, with this frequency rank (0: most frequent).
    void set_rank(const std::string& spelling, std::uint64_t rank);

    /// The model's spelling of `word`; nullptr if it has none among the `top`.
    const std::string* find(std::string_view word) const;

    /// A message if the model lacks a word whose letters are not composed (uncomposed_hint).
    std::optional<std::string> hint() const;

  private:
    struct Entry {
        std::string spelling;
        std::uint64_t rank;
    };

    LetterCase letter_case_;
    std::uint64_t top_;
    std::vector<std::string> spellings_;
    std::unordered_set<std::string> seen_;
    std::unordered_map<std::string, Entry> found_;  ///< by word_key
};

/// A HAS request for consecutive elements of `spellings`.
struct HasRequest {
    std::string line;   ///< without LF
    std::size_t first;  ///< index of its first word in `spellings`
    std::size_t count;  ///< number of its words
};
/// Makes the HAS requests for all `spellings`, each within the limit on a line. `options` stands
/// between verb and words.
std::vector<HasRequest> has_requests(const std::vector<std::string>& spellings,
                                     std::string_view options);

}  // namespace gloved::client
