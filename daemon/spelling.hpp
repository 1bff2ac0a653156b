// Words of a model that are spelt nearly like one that it does not have.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/model.hpp"

namespace gloved::daemon {

/// Finds near spellings by going through all words that are about as long, most frequent first.
/// Nine bytes a word beside the model. Immutable once made: any number of threads may ask.
///
/// Words are compared by code points without regard to case (common/case_fold.hpp). Their distance
/// is the optimal string alignment: how many code points must be inserted, left out, replaced, or
/// exchanged with their neighbour, none twice.
class SpellingIndex {
  public:
    static constexpr std::size_t kMaxSuggestions = 5;

    /// Reads all keys and ranks of `model`, on the calling thread: about 0.1 s for 2.2 million
    /// words. Keeps the model alive.
    explicit SpellingIndex(std::shared_ptr<const format::Model> model);

    /// Up to kMaxSuggestions words near `word`, never `word` itself: first those that differ in
    /// case alone, then those at distance 1, then 2, each by frequency. For a `word` of one code
    /// point those that differ in case, for one of two or three nothing beyond distance 1. Any
    /// bytes will do. Among 2.2 million words this takes less than a millisecond as a rule, and a
    /// few where many have nearly the same letters. Should `deadline` pass before the end, the
    /// answer is the best of what was seen by then: words as long as `word` are seen first, and of
    /// those the frequent ones.
    std::vector<std::string> suggest(std::string_view word,
                                     std::chrono::steady_clock::time_point deadline) const;

    /// What the index takes beside the model, in bytes.
    std::size_t size_bytes() const;

  private:
    class Search;

    std::shared_ptr<const format::Model> model_;
    // The words by length in code points (255 for more), those of a length by rank: where each
    // length begins, then of each word which classes of code points it has, which of them an even
    // number of times, and its row.
    std::array<std::size_t, 257> begins_{};
    std::vector<std::uint32_t> present_;
    std::vector<std::uint8_t> even_;
    std::vector<format::Row> rows_;
};

}  // namespace gloved::daemon
