#include "daemon/spelling.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "common/case_fold.hpp"
#include "common/format/layout.hpp"

namespace gloved::daemon {
namespace {

using CodePoints = std::span<const std::uint32_t>;

/// Words whose signatures are compared together.
constexpr std::size_t kGroupWords = 16;
/// Words between two checks of the clock and of the distance limit. Takes a microsecond if none of
/// them is near.
constexpr std::size_t kBlockWords = 1024;

/// Signature of a word, independent of the order of its letters. The low five bits of a code point
/// are its class. They keep apart a–z, 0–9, and the letters of the Greek and of the Cyrillic
/// alphabet.
struct Signature {
    std::uint32_t present = 0;  ///< a bit for each class that the word has
    /// A bit for every four classes: whether an odd number of them occurs an even number of times,
    /// but at least twice.
    std::uint8_t even = 0;
    std::uint8_t length = 0;  ///< in code points, kMaxLength for more
};

/// Longer words count as this long.
constexpr std::uint8_t kMaxLength = std::numeric_limits<std::uint8_t>::max();

Signature signature_of(std::string_view word) {
    Signature signature;
    std::uint32_t even = 0;
    while (!word.empty()) {
        const std::uint32_t bit = std::uint32_t{1} << (take_folded(word) % 32);
        even ^= signature.present & bit;
        signature.present |= bit;
        if (signature.length != kMaxLength) ++signature.length;
    }
    even ^= even >> 16;
    signature.even = static_cast<std::uint8_t>(even ^ even >> 8);
    return signature;
}

/// Sets `folded` to the first `limit` folded code points of `word`.
void fold_into(std::string_view word, std::size_t limit, std::vector<std::uint32_t>& folded) {
    folded.clear();
    while (!word.empty() && folded.size() < limit) folded.push_back(take_folded(word));
}

/// The distance between `a` and `b`, or limit + 1 if it exceeds `limit`. Equal fronts may be paired
/// off: no alignment is better than the best that does so. One of four changes comes next. With a
/// limit of two that makes at most 21 comparisons of tails, nearly all of which end at once, and is
/// less work than a table.
int distance_within(CodePoints a, CodePoints b, int limit) {
    const auto differing = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    a = a.subspan(static_cast<std::size_t>(differing));
    b = b.subspan(static_cast<std::size_t>(differing));
    const std::size_t length_difference =
        a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
    if (length_difference > static_cast<std::size_t>(limit)) return limit + 1;
    if (a.empty() || b.empty()) return static_cast<int>(length_difference);
    if (limit == 0) return 1;
    int best = limit + 1;
    // Each change must beat those before it.
    const auto try_change = [&](std::size_t of_a, std::size_t of_b) {
        if (best > 1) best = 1 + distance_within(a.subspan(of_a), b.subspan(of_b), best - 2);
    };
    if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) try_change(2, 2);
    try_change(1, 1);
    try_change(1, 0);
    try_change(0, 1);
    return best;
}

/// Tests whether a word may be within `distance` of the wanted word, by its signature; the word is
/// `extra_length` code points longer.
///
/// An insertion adds at most one class that the wanted word lacks, an omission removes at most one,
/// a replacement does both, an exchange neither. With i, o and r of these, i − o = extra_length and
/// i + o + r ≤ distance. So at most i + r ≤ distance − max(0, −extra_length) classes are extra and
/// o + r ≤ distance − max(0, extra_length) are missing. Each insertion or omission changes one bit
/// of `present` or of `even`, a replacement two at most: i + o + 2·r ≤ 2·distance − |extra_length|.
/// All this also holds if |extra_length| is underestimated, as it is for words of kMaxLength and
/// more.
class NearSignatures {
  public:
    /// `distance` is 0–2 and at least |extra_length|.
    NearSignatures(const Signature& wanted, int distance, int extra_length)
        : wanted_(wanted),
          max_changed_bits_(2 * distance - std::abs(extra_length)),
          max_missing_(distance - std::max(0, extra_length)),
          max_extra_(distance - std::max(0, -extra_length)) {}

    /// For each of kGroupWords words, whether its classes allow the distance.
    std::array<std::uint8_t, kGroupWords> may_be_near(const std::uint32_t* present) const {
        // No branches or calls, a fixed count, and memory of its own: g++ -O2 makes SSE2 of this
        // loop. Masks decide how many of the lowest bits are cleared, so that one loop serves all
        // limits.
        const auto keep = [](bool clear) { return clear ? 0U : ~0U; };
        const std::uint32_t wanted = wanted_.present;
        const std::uint32_t keep_missing_1 = keep(max_missing_ > 0);
        const std::uint32_t keep_missing_2 = keep(max_missing_ > 1);
        const std::uint32_t keep_extra_1 = keep(max_extra_ > 0);
        const std::uint32_t keep_extra_2 = keep(max_extra_ > 1);
        std::array<std::uint8_t, kGroupWords> near;
        for (std::size_t i = 0; i < kGroupWords; ++i) {
            std::uint32_t missing = wanted & ~present[i];
            std::uint32_t extra = present[i] & ~wanted;
            missing &= (missing - 1) | keep_missing_1;
            missing &= (missing - 1) | keep_missing_2;
            extra &= (extra - 1) | keep_extra_1;
            extra &= (extra - 1) | keep_extra_2;
            near[i] = (missing | extra) == 0;
        }
        return near;
    }

    /// Whether `even` allows the distance too, for a word whose `present` did.
    bool may_be_near(std::uint32_t present, std::uint8_t even) const {
        const auto changed_even = static_cast<std::uint8_t>(even ^ wanted_.even);
        return std::popcount(present ^ wanted_.present) + std::popcount(changed_even) <=
               max_changed_bits_;
    }

  private:
    const Signature wanted_;
    const int max_changed_bits_;
    const int max_missing_;
    const int max_extra_;
};

/// A near word. Smaller is better.
struct Suggestion {
    int distance = 0;
    std::uint32_t rank = 0;
    format::Row row = 0;
    friend bool operator<(const Suggestion& a, const Suggestion& b) {
        return std::tie(a.distance, a.rank, a.row) < std::tie(b.distance, b.rank, b.row);
    }
};

}  // namespace

ThreadClock::time_point ThreadClock::now() noexcept {
    timespec time{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

SpellingIndex::SpellingIndex(std::shared_ptr<const format::Model> model)
    : model_(std::move(model)) {
    const std::size_t rows = model_->rows();
    const auto ranks = model_->ranks();
    constexpr format::Row kNoRow = std::numeric_limits<format::Row>::max();

    // In row order first, as the keys lie in memory.
    std::vector<Signature> signatures(rows);
    std::vector<format::Row> by_rank(rows, kNoRow);
    for (std::size_t row = 0; row < rows; ++row) {
        signatures[row] = signature_of(model_->key(row));
        // Opening a model does not check ranks. Of a damaged model some words are never suggested.
        if (ranks[row] < rows) by_rank[ranks[row]] = static_cast<format::Row>(row);
    }
    by_rank.erase(std::remove(by_rank.begin(), by_rank.end(), kNoRow), by_rank.end());

    for (const format::Row row : by_rank) ++begins_[signatures[row].length + std::size_t{1}];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    present_.resize(by_rank.size() + kGroupWords - 1);  // the last group may be partial
    even_.resize(by_rank.size());
    rows_.resize(by_rank.size());
    auto next = begins_;
    for (const format::Row row : by_rank) {
        const std::size_t at = next[signatures[row].length]++;
        present_[at] = signatures[row].present;
        even_[at] = signatures[row].even;
        rows_[at] = row;
    }
}

/// A search for one unknown word.
class SpellingIndex::Search {
  public:
    Search(const SpellingIndex& index, std::string_view word, ThreadClock::time_point deadline)
        : index_(index),
          model_(*index.model_),
          word_(word),
          deadline_(deadline),
          earliest_end_(std::chrono::steady_clock::now() + (deadline - ThreadClock::now())),
          wanted_(signature_of(word)) {
        fold_into(word, word.size(), folded_);
    }

    /// The best words, best first.
    std::vector<Suggestion> run() {
        if (wanted_.length > 1) max_distance_ = wanted_.length <= 3 ? 1 : 2;
        // The likeliest lengths first: their suggestions lower the limit for the rest.
        bool in_time = wanted_.length > 0;
        for (const int extra_length : {0, -1, 1, -2, 2})
            in_time = in_time && search_length(extra_length);
        return best_;
    }

  private:
    struct Candidate {
        std::string_view key;
        format::Row row = 0;
    };

    /// Whether the deadline has passed. Reading the thread's clock is a system call, and no thread
    /// computes for longer than real time passes.
    bool is_late() const {
        return std::chrono::steady_clock::now() >= earliest_end_ && ThreadClock::now() >= deadline_;
    }

    /// The distance at which a word of this rank or a larger one still is among the best so far; −1
    /// for none.
    int limit(std::uint32_t rank) const {
        if (best_.size() < kMaxSuggestions) return max_distance_;
        return rank < best_.back().rank ? best_.back().distance : best_.back().distance - 1;
    }

    /// Scans the words that are `extra_length` code points longer than the wanted one. False if
    /// time is up.
    bool search_length(int extra_length) {
        const int length = wanted_.length + extra_length;
        if (length < 1 || length > kMaxLength) return true;
        const std::size_t end = index_.begins_[static_cast<std::size_t>(length) + 1];
        for (std::size_t at = index_.begins_[static_cast<std::size_t>(length)]; at < end;
             at += kBlockWords) {
            if (is_late()) return false;
            const std::uint32_t min_rank = model_.ranks()[index_.rows_[at]];
            const int distance = limit(min_rank);
            if (distance < std::abs(extra_length)) return true;
            collect_candidates(NearSignatures(wanted_, distance, extra_length), at,
                               std::min(at + kBlockWords, end));
            if (!compare_candidates(min_rank)) return false;
        }
        return true;
    }

    /// Makes candidates of the block's words with near signatures.
    void collect_candidates(const NearSignatures& signatures, std::size_t begin, std::size_t end) {
        candidate_count_ = 0;
        for (std::size_t group = begin; group < end; group += kGroupWords) {
            const auto near = signatures.may_be_near(&index_.present_[group]);
            std::array<std::uint64_t, 2> halves;
            static_assert(sizeof(halves) == sizeof(near));
            std::memcpy(halves.data(), near.data(), sizeof(near));
            if ((halves[0] | halves[1]) == 0) continue;
            for (std::size_t i = 0; i < std::min(kGroupWords, end - group); ++i) {
                if (near[i] == 0 ||
                    !signatures.may_be_near(index_.present_[group + i], index_.even_[group + i]))
                    continue;
                // Keys are anywhere in memory: all are prefetched before the first is compared.
                Candidate& candidate = candidates_[candidate_count_++];
                candidate.row = index_.rows_[group + i];
                candidate.key = model_.key(candidate.row);
                __builtin_prefetch(candidate.key.data());
            }
        }
    }

    /// Adds the candidates that are near enough to the best. False if time is up.
    bool compare_candidates(std::uint32_t min_rank) {
        for (const Candidate& candidate : std::span(candidates_).first(candidate_count_)) {
            // Unbounded lengths: one comparison may take longer than a block of others.
            if (wanted_.length == kMaxLength && is_late()) return false;
            const int max_distance = limit(min_rank);
            if (max_distance < 0) return true;
            fold_into(candidate.key, folded_.size() + static_cast<std::size_t>(max_distance) + 1,
                      folded_key_);
            const int distance = distance_within(folded_, folded_key_, max_distance);
            if (distance > max_distance || candidate.key == word_) continue;
            const Suggestion suggestion = {distance, model_.ranks()[candidate.row], candidate.row};
            best_.insert(std::upper_bound(best_.begin(), best_.end(), suggestion), suggestion);
            if (best_.size() > kMaxSuggestions) best_.pop_back();
        }
        return true;
    }

    const SpellingIndex& index_;
    const format::Model& model_;
    const std::string_view word_;
    const ThreadClock::time_point deadline_;
    const std::chrono::steady_clock::time_point earliest_end_;
    const Signature wanted_;
    std::vector<std::uint32_t> folded_;      // the word's code points
    std::vector<std::uint32_t> folded_key_;  // those of the current candidate
    std::array<Candidate, kBlockWords> candidates_;
    std::size_t candidate_count_ = 0;
    int max_distance_ = 0;
    std::vector<Suggestion> best_;
};

std::vector<std::string> SpellingIndex::suggest(std::string_view word,
                                                ThreadClock::time_point deadline) const {
    std::vector<std::string> words;
    for (const Suggestion& suggestion : Search(*this, word, deadline).run())
        words.emplace_back(model_->key(suggestion.row));
    return words;
}

std::size_t SpellingIndex::size_bytes() const {
    return present_.size() * sizeof(present_[0]) + even_.size() * sizeof(even_[0]) +
           rows_.size() * sizeof(rows_[0]);
}

}  // namespace gloved::daemon
