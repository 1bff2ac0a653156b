#include "common/format/word_index.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace gloved::format {
namespace {

/// The row of a free slot: no model has it, because kMaxRows is smaller.
constexpr Row kFree = 0xFFFFFFFF;
static_assert(kFree > kMaxRows);

/// Words whose slots are fetched at a time: more than the cache misses that a core has in flight.
constexpr std::size_t kBatch = 32;

/// The low half of the hash. The high half selects the slot, so the two are independent.
std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }

}  // namespace

std::uint64_t hash_word(std::string_view word) { return XXH3_64bits(word.data(), word.size()); }

WordIndex::WordIndex(std::size_t homes, Hash hash)
    : homes_(homes), slots_(homes + kMaxProbes, Slot{0, kFree}), hash_(hash) {}

std::size_t WordIndex::home_of(std::uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>(static_cast<Wide>(hash) * homes_ >> 64);
}

bool WordIndex::insert(std::uint64_t hash, Row row) {
    const std::size_t home = home_of(hash);
    for (std::size_t probe = 0; probe < kMaxProbes; ++probe) {
        Slot& slot = slots_[home + probe];
        if (slot.row != kFree) continue;
        slot = {tag_of(hash), row};
        return true;
    }
    return false;
}

std::optional<WordIndex> WordIndex::build(const WordList& words, Hash hash) {
    const std::size_t rows = words.rows();
    assert(rows > 0 && rows <= kMaxRows);
    WordIndex index(rows + rows / 2 + 1, hash);
    std::array<std::uint64_t, kBatch> hashes;
    for (std::size_t first = 0; first < rows; first += kBatch) {
        const std::size_t count = std::min(kBatch, rows - first);
        for (std::size_t i = 0; i < count; ++i) {
            hashes[i] = hash(words.word(first + i));
            __builtin_prefetch(&index.slots_[index.home_of(hashes[i])], 1);
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (!index.insert(hashes[i], static_cast<Row>(first + i))) return std::nullopt;
        }
    }
    return index;
}

std::optional<Row> WordIndex::find(std::string_view word, const WordList& words) const {
    const std::uint64_t hash = hash_(word);
    const std::size_t home = home_of(hash);
    for (std::size_t probe = 0; probe < kMaxProbes; ++probe) {
        const Slot slot = slots_[home + probe];
        if (slot.row == kFree) return std::nullopt;
        if (slot.tag == tag_of(hash) && words.word(slot.row) == word) return slot.row;
    }
    return std::nullopt;
}

}  // namespace gloved::format
