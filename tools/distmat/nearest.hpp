// Selects the nearest others of a row.
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

/// Selects the `count` least `distances` but that of `self`, in ascending order, ties by index.
/// `count` is less than the number of distances. Overwrites `nearest`.
void find_nearest(std::span<const float> distances, std::size_t self, std::size_t count,
                  std::vector<Neighbour>& nearest);

}  // namespace gloved::distmat
