// What the rungs' kernels select from and return: a row with its float32 score.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/canonical.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {

/// Eight bytes, read and written at once.
struct alignas(8) Entry {
    float score = -2.0F;  ///< the default lies below every score
    std::uint32_t row = std::numeric_limits<std::uint32_t>::max();
};

/// A strict total order on entries of distinct rows, as of hits. All rungs select by it, so that
/// each finds the same rows from run to run.
GLOVED_HOST_DEVICE inline bool comes_before(const Entry& a, const Entry& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

inline std::vector<Hit> to_hits(std::span<const Entry> entries) {
    std::vector<Hit> hits;
    hits.reserve(entries.size());
    for (const Entry& entry : entries)
        hits.push_back({entry.row, static_cast<double>(entry.score)});
    return hits;
}

}  // namespace gloved::kernels::ladder
