// Finds which words of the questions the model has, and how it spells them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/eval/letter_case.hpp"

namespace gloved::client {

/// Collects words, lists the spellings to ask for, and takes their ranks. Of a word's spellings it
/// keeps the most frequent one, if it is among the `top` most frequent words.
class Vocabulary {
  public:
    Vocabulary(LetterCase letter_case, std::uint64_t top) : letter_case_(letter_case), top_(top) {}

    /// Adds the spellings of `word`.
    void add(std::string_view word);

    /// All spellings to ask for, each once, in the order of their addition.
    const std::vector<std::string>& spellings() const { return spellings_; }

    /// Notes that the model has `spelling`.
    void set_rank(const std::string& spelling, std::uint64_t rank);

    /// The model's spelling of `word`; nullptr if it has none among the `top`.
    const std::string* find(std::string_view word) const;

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

struct HasRequest {
    std::string line;
    std::size_t first;  ///< index of its first word in `spellings`
    std::size_t count;  ///< words
};
/// Splits `spellings` into HAS requests of at most a line. `options` goes between verb and words.
std::vector<HasRequest> has_requests(const std::vector<std::string>& spellings,
                                     std::string_view options);

}  // namespace gloved::client
