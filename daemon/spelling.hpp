// SpellingIndex: suggests words of a model that are spelt nearly like an unknown word.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"

namespace gloved::daemon {

/// The time that the calling thread has computed. It stands still while the thread waits for a
/// processor, so that what a search finds by a deadline does not depend on what else runs.
struct ThreadClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<ThreadClock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept;
};

/// Finds near spellings by scanning all words of about the same length, most frequent first. Holds
/// nine bytes per word besides the model. Immutable: any number of threads may call `suggest`.
///
/// Words are compared by code points, ignoring case (common/case_fold.hpp). The distance of two
/// words is the optimal string alignment distance: the least number of code points to insert, omit,
/// replace, or exchange with their neighbour, none of them twice.
class SpellingIndex {
  public:
    static constexpr std::size_t kMaxSuggestions = 5;

    /// Reads all keys and ranks of `model` on the calling thread: about 0.1 s for 2.2 million
    /// words. Shares ownership of the model.
    explicit SpellingIndex(std::shared_ptr<const format::Model> model);

    /// Returns up to kMaxSuggestions words near `word`, never `word` itself: first those that
    /// differ in case alone, then those at distance 1, then 2, each by rank. If `word` has one code
    /// point, only words that differ in case; if it has two or three, only words up to distance 1.
    /// `word` may be any bytes.
    ///
    /// Among 2.2 million words this usually takes less than a millisecond, and a few if many have
    /// nearly the same letters. If `deadline` passes first, returns the best words found so far;
    /// words as long as `word` are searched first, frequent ones before others.
    std::vector<std::string> suggest(std::string_view word, ThreadClock::time_point deadline) const;

    /// Bytes of memory that the index holds besides the model.
    std::size_t size_bytes() const;

  private:
    class Search;

    std::shared_ptr<const format::Model> model_;
    // The three vectors have an element for each word, ordered by the word's length in code points
    // (255 for more), then by rank. begins_[n]: index of the first word of length n. present_ and
    // even_ are the word's signature, which rules most words out without reading them.
    std::array<std::size_t, 257> begins_{};
    std::vector<std::uint32_t> present_;
    std::vector<std::uint8_t> even_;
    std::vector<format::Row> rows_;
};

}  // namespace gloved::daemon
