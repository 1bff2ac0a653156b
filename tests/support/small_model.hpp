// Small models, made by the real writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"

namespace gloved::tests {

/// A word and its vector, in the order of a source file (so the position is the rank).
using Entry = std::pair<std::string, std::vector<float>>;

/// Publishes a model of these entries as `directory` and opens it. Throws std::runtime_error when
/// that fails.
format::Model make_model(const std::string& directory, const std::vector<Entry>& entries);

/// Gives the model in `directory` its planes file, with the engines' own encoder. Throws
/// std::runtime_error when that fails.
void store_planes(const std::string& directory);

/// Puts NaN into the first component of these rows of the model in `directory`, leaves their norms
/// as they are, and opens it. Throws std::runtime_error when that fails.
format::Model damage_rows(const std::string& directory, std::span<const std::uint32_t> rows);

/// Makes the checksum in the header of a planes or neighbors file's content right again.
void seal_header(std::string& file);
/// The same, and the checksum of the lists of a neighbors file, `lists_bytes` long.
void seal_neighbors(std::string& file, std::size_t lists_bytes);

/// `rows` words «w0», «w1», … with normally distributed components, the same for the same seed.
std::vector<Entry> random_entries(std::size_t rows, std::size_t dim, std::uint64_t seed);

}  // namespace gloved::tests
