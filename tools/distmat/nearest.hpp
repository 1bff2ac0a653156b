// Selects the nearest other rows of a row from its distances, for gloved-distmat --top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gloved::distmat {

/// Another row and its distance. int64, because the output has that type.
struct Neighbour {
    std::int64_t index = 0;
    float distance = 0;
    friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

/// Selects the `count` nearest rows from `distances`, one row's distances to all rows. Leaves out
/// `self`, the index of that row. Sets `nearest` to them, nearest first, equally near ones by
/// index. `count` must be less than the number of distances.
void find_nearest(std::span<const float> distances, std::size_t self, std::size_t count,
                  std::vector<Neighbour>& nearest);

}  // namespace gloved::distmat
