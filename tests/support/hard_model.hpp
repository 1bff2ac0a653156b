// Models on which bounds are worth little: rows that four bits, or float32, can hardly tell apart,
// or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/small_model.hpp"

namespace gloved::tests {

/// Entries of a model, in which many rows follow each other in the alphabet and few in rank. One
/// row in five belongs to one cluster within 1/1000 of each other. The others come in runs, each of
/// a kind: near ties of 2^-24 to 2^-7 around a direction, exact duplicates, opposites, one
/// direction at norms 2^-70 to 2^70, any directions at such norms, zeros, one component, components
/// of one size, few components, components on the levels and on the edges of the plane's cells,
/// components down to denormal ones, and random rows. The same for the same seed on every machine.
std::vector<Entry> hard_entries(std::size_t rows, std::size_t dim, std::uint64_t seed);

}  // namespace gloved::tests
