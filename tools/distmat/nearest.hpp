// The nearest of a row's distances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gloved::distmat {

struct Neighbour {
    std::int64_t index = 0;
    float distance = 0;
    friend bool operator==(const Neighbour&, const Neighbour&) = default;
};

/// The `count` least of `distances`, that of `self` left out, in ascending order; of equal ones the
/// lower index first. `count` is less than there are. `nearest` is filled anew, its memory used
/// again.
void find_nearest(std::span<const float> distances, std::size_t self, std::size_t count,
                  std::vector<Neighbour>& nearest);

}  // namespace gloved::distmat
