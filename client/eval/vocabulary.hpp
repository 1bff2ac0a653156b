// Which words of the questions the model has, and how it spells them.
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

/// Wants words, asks for spellings, takes ranks. Of a word's spellings the model's most frequent
/// one counts, if it is among the `top` most frequent words.
class Vocabulary {
  public:
    Vocabulary(LetterCase letter_case, std::uint64_t top) : letter_case_(letter_case), top_(top) {}

    /// Adds the spellings of `word` to those that are to be asked for.
    void want(std::string_view word);

    /// All that are to be asked for, each once, in the order in which they were wanted.
    const std::vector<std::string>& wanted() const { return wanted_; }

    /// Says that the model has `spelling`.
    void found(const std::string& spelling, std::uint64_t rank);

    /// How the model spells `word`; nullptr if it has it not, or too far down.
    const std::string* find(std::string_view word) const;

  private:
    struct Entry {
        std::string spelling;
        std::uint64_t rank;
    };

    LetterCase letter_case_;
    std::uint64_t top_;
    std::vector<std::string> wanted_;
    std::unordered_set<std::string> seen_;
    std::unordered_map<std::string, Entry> found_;  ///< by word_key
};

/// The HAS requests for `spellings`, in their order: each with as many as a line takes comfortably.
/// `options` goes between verb and words. `first` of a request is the place of its first word in
/// `spellings`.
struct HasRequest {
    std::string line;
    std::size_t first;
    std::size_t count;
};
std::vector<HasRequest> has_requests(const std::vector<std::string>& spellings,
                                     std::string_view options);

}  // namespace gloved::client
