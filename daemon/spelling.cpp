#include "daemon/spelling.hpp"

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

namespace gloved::daemon {
namespace {

using CodePoints = std::span<const std::uint32_t>;

/// Words whose shapes are looked at together.
constexpr std::size_t kGroup = 16;
/// Words between two looks at the clock and at how near a word must be by now: a microsecond if
/// none of them is near.
constexpr std::size_t kBlock = 1024;

/// What can be said of a word without its letters' order. Code points fall into 32 classes by their
/// low five bits, which keep a–z apart, 0–9, and the letters of the Greek and of the Cyrillic
/// alphabet.
struct Shape {
    std::uint32_t present = 0;  ///< a bit for each class that the word has
    /// A bit for every four classes: whether an odd number of them comes an even number of times,
    /// but not never.
    std::uint8_t even = 0;
    std::uint8_t length = 0;  ///< in code points, kMaxLength for more
};

/// Lengths from here on are not told apart.
constexpr std::uint8_t kMaxLength = std::numeric_limits<std::uint8_t>::max();

/// Takes the first code point off `word`, and gives it folded.
std::uint32_t take_folded(std::string_view& word) {
    const auto byte = static_cast<unsigned char>(word.front());
    if (byte < 0x80) {  // nearly all are; two calls for each would be most of the work
        word.remove_prefix(1);
        return byte >= 'A' && byte <= 'Z' ? byte + 0x20U : byte;
    }
    const CodePoint code_point = first_code_point(word);
    word.remove_prefix(code_point.bytes);
    return fold_case(code_point.value);
}

Shape shape_of(std::string_view word) {
    Shape shape;
    std::uint32_t even = 0;
    while (!word.empty()) {
        const std::uint32_t bit = std::uint32_t{1} << (take_folded(word) % 32);
        even ^= shape.present & bit;
        shape.present |= bit;
        if (shape.length != kMaxLength) ++shape.length;
    }
    even ^= even >> 16;
    shape.even = static_cast<std::uint8_t>(even ^ even >> 8);
    return shape;
}

/// Replaces `folded` by the folded code points of `word`, by the first `limit` of them if there are
/// more.
void fold_into(std::string_view word, std::size_t limit, std::vector<std::uint32_t>& folded) {
    folded.clear();
    while (!word.empty() && folded.size() < limit) folded.push_back(take_folded(word));
}

/// The distance between `a` and `b`, or limit + 1 if it is larger than `limit`. What is equal at
/// the front may be paired off: no alignment does better than the best that does so. Then one of
/// four changes comes next; with a limit of two that makes at most 21 comparisons of tails, nearly
/// all of which end at once, and less work than a table.
int distance_within(CodePoints a, CodePoints b, int limit) {
    const auto differing = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    a = a.subspan(static_cast<std::size_t>(differing));
    b = b.subspan(static_cast<std::size_t>(differing));
    const std::size_t longer = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
    if (longer > static_cast<std::size_t>(limit)) return limit + 1;
    if (a.empty() || b.empty()) return static_cast<int>(longer);
    if (limit == 0) return 1;
    int best = limit + 1;
    // Each change must come out better than those before it.
    const auto try_change = [&](std::size_t of_a, std::size_t of_b) {
        if (best > 1) best = 1 + distance_within(a.subspan(of_a), b.subspan(of_b), best - 2);
    };
    if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) try_change(2, 2);
    try_change(1, 1);
    try_change(1, 0);
    try_change(0, 1);
    return best;
}

/// The shapes that words may have which are within some distance of a wanted word and `longer` code
/// points longer than it.
///
/// An insertion brings at most one class that the wanted word lacks, an omission takes at most one
/// away, a replacement does both, an exchange neither. With i, o and r of these, i − o = longer and
/// i + o + r ≤ distance: so at most i + r ≤ distance − max(0, −longer) classes are extra and o + r
/// ≤ distance − max(0, longer) are missing. And each insertion or omission changes one bit of
/// `present` or of `even`, a replacement two at most: i + o + 2·r ≤ 2·distance − |longer|. All this
/// holds too where |longer| is taken for less than it is, as it is for words of kMaxLength and
/// more.
class NearShapes {
  public:
    /// `distance` is 0–2 and at least |longer|.
    NearShapes(const Shape& wanted, int distance, int longer)
        : wanted_(wanted),
          bits_(2 * distance - std::abs(longer)),
          missing_(distance - std::max(0, longer)),
          extra_(distance - std::max(0, -longer)) {}

    /// Of kGroup words whether the classes that they have allow it.
    std::array<std::uint8_t, kGroup> may_be_near(const std::uint32_t* present) const {
        // A loop without branches and calls, over a fixed count, into memory of its own: g++ -O2
        // makes SSE2 of it. Which of the lowest bits are not cleared is a matter of masks, so that
        // one loop does for all limits.
        const auto keep = [](bool clear) { return clear ? 0U : ~0U; };
        const std::uint32_t wanted = wanted_.present;
        const std::uint32_t keep_missing_1 = keep(missing_ > 0);
        const std::uint32_t keep_missing_2 = keep(missing_ > 1);
        const std::uint32_t keep_extra_1 = keep(extra_ > 0);
        const std::uint32_t keep_extra_2 = keep(extra_ > 1);
        std::array<std::uint8_t, kGroup> near;
        for (std::size_t i = 0; i < kGroup; ++i) {
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

    /// Of a word for which that said yes, whether `even` does not say no.
    bool may_be_near(std::uint32_t present, std::uint8_t even) const {
        const auto changed_even = static_cast<std::uint8_t>(even ^ wanted_.even);
        return std::popcount(present ^ wanted_.present) + std::popcount(changed_even) <= bits_;
    }

  private:
    const Shape wanted_;
    const int bits_;
    const int missing_;
    const int extra_;
};

/// A word near the wanted one. The smaller, the better.
struct Found {
    int distance = 0;
    std::uint32_t rank = 0;
    format::Row row = 0;
    friend bool operator<(const Found& a, const Found& b) {
        return std::tie(a.distance, a.rank, a.row) < std::tie(b.distance, b.rank, b.row);
    }
};

}  // namespace

SpellingIndex::SpellingIndex(std::shared_ptr<const format::Model> model)
    : model_(std::move(model)) {
    const std::size_t rows = model_->rows();
    const auto ranks = model_->ranks();
    constexpr format::Row kNoRow = std::numeric_limits<format::Row>::max();

    // By row first, as the keys lie in memory.
    std::vector<Shape> shapes(rows);
    std::vector<format::Row> by_rank(rows, kNoRow);
    for (std::size_t row = 0; row < rows; ++row) {
        shapes[row] = shape_of(model_->key(row));
        // Opening a model does not check its ranks: of a damaged one some words are never
        // suggested, no worse.
        if (ranks[row] < rows) by_rank[ranks[row]] = static_cast<format::Row>(row);
    }
    by_rank.erase(std::remove(by_rank.begin(), by_rank.end(), kNoRow), by_rank.end());

    for (const format::Row row : by_rank) ++begins_[shapes[row].length + std::size_t{1}];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    present_.resize(by_rank.size() + kGroup - 1);  // the last group may reach beyond the last word
    even_.resize(by_rank.size());
    rows_.resize(by_rank.size());
    auto next = begins_;
    for (const format::Row row : by_rank) {
        const std::size_t at = next[shapes[row].length]++;
        present_[at] = shapes[row].present;
        even_[at] = shapes[row].even;
        rows_[at] = row;
    }
}

/// One question, on its way through the words.
class SpellingIndex::Search {
  public:
    using Clock = std::chrono::steady_clock;

    Search(const SpellingIndex& index, std::string_view word, Clock::time_point deadline)
        : index_(index),
          model_(*index.model_),
          word_(word),
          deadline_(deadline),
          wanted_(shape_of(word)) {
        fold_into(word, word.size(), folded_);
    }

    /// The best words' rows, best first.
    std::vector<Found> run() {
        if (wanted_.length > 1) max_distance_ = wanted_.length <= 3 ? 1 : 2;
        // The lengths at which the nearest words may be come first: what they have makes the rest
        // short.
        bool in_time = wanted_.length > 0;
        for (const int longer : {0, -1, 1, -2, 2}) in_time = in_time && search_length(longer);
        return best_;
    }

  private:
    struct Candidate {
        std::string_view key;
        format::Row row = 0;
    };

    /// At what distance a word of this rank or a larger one is still one of the best so far; −1: at
    /// none.
    int limit(std::uint32_t rank) const {
        if (best_.size() < kMaxSuggestions) return max_distance_;
        return rank < best_.back().rank ? best_.back().distance : best_.back().distance - 1;
    }

    /// Goes through the words that are `longer` code points longer than the wanted one. False when
    /// time is up.
    bool search_length(int longer) {
        const int length = wanted_.length + longer;
        if (length < 1 || length > kMaxLength) return true;
        const std::size_t end = index_.begins_[static_cast<std::size_t>(length) + 1];
        for (std::size_t at = index_.begins_[static_cast<std::size_t>(length)]; at < end;
             at += kBlock) {
            if (Clock::now() >= deadline_) return false;
            const std::uint32_t least_rank = model_.ranks()[index_.rows_[at]];
            const int distance = limit(least_rank);
            if (distance < std::abs(longer)) return true;
            collect(NearShapes(wanted_, distance, longer), at, std::min(at + kBlock, end));
            if (!compare(least_rank)) return false;
        }
        return true;
    }

    /// Makes candidates of those words of the block that have one of these shapes.
    void collect(const NearShapes& shapes, std::size_t begin, std::size_t end) {
        candidate_count_ = 0;
        for (std::size_t group = begin; group < end; group += kGroup) {
            const auto near = shapes.may_be_near(&index_.present_[group]);
            std::array<std::uint64_t, 2> halves;
            static_assert(sizeof(halves) == sizeof(near));
            std::memcpy(halves.data(), near.data(), sizeof(near));
            if ((halves[0] | halves[1]) == 0) continue;
            for (std::size_t i = 0; i < std::min(kGroup, end - group); ++i) {
                if (near[i] == 0 ||
                    !shapes.may_be_near(index_.present_[group + i], index_.even_[group + i]))
                    continue;
                // Keys lie anywhere in memory: they are asked for now, and all of them are on their
                // way before the first is looked at.
                Candidate& candidate = candidates_[candidate_count_++];
                candidate.row = index_.rows_[group + i];
                candidate.key = model_.key(candidate.row);
                __builtin_prefetch(candidate.key.data());
            }
        }
    }

    /// Adds those candidates to the best that are near enough. False when time is up.
    bool compare(std::uint32_t least_rank) {
        for (const Candidate& candidate : std::span(candidates_).first(candidate_count_)) {
            // Words without bounds: one comparison may take longer than a block of others.
            if (wanted_.length == kMaxLength && Clock::now() >= deadline_) return false;
            const int near_enough = limit(least_rank);
            if (near_enough < 0) return true;
            fold_into(candidate.key, folded_.size() + static_cast<std::size_t>(near_enough) + 1,
                      folded_key_);
            const int distance = distance_within(folded_, folded_key_, near_enough);
            if (distance > near_enough || candidate.key == word_) continue;
            const Found found = {distance, model_.ranks()[candidate.row], candidate.row};
            best_.insert(std::upper_bound(best_.begin(), best_.end(), found), found);
            if (best_.size() > kMaxSuggestions) best_.pop_back();
        }
        return true;
    }

    const SpellingIndex& index_;
    const format::Model& model_;
    const std::string_view word_;
    const Clock::time_point deadline_;
    const Shape wanted_;
    std::vector<std::uint32_t> folded_;      // the word's code points
    std::vector<std::uint32_t> folded_key_;  // those of the candidate that it is compared with
    std::array<Candidate, kBlock> candidates_;
    std::size_t candidate_count_ = 0;
    int max_distance_ = 0;
    std::vector<Found> best_;
};

std::vector<std::string> SpellingIndex::suggest(
    std::string_view word, std::chrono::steady_clock::time_point deadline) const {
    std::vector<std::string> words;
    for (const Found& found : Search(*this, word, deadline).run())
        words.emplace_back(model_->key(found.row));
    return words;
}

std::size_t SpellingIndex::size_bytes() const {
    return present_.size() * sizeof(present_[0]) + even_.size() * sizeof(even_[0]) +
           rows_.size() * sizeof(rows_[0]);
}

}  // namespace gloved::daemon
