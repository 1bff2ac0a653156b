// Makes up models of any size with the shape of GloVe's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::bench {

struct GenerateOptions {
    std::uint64_t rows = 0;  ///< in [1, format::kMaxRows]
    std::uint32_t dim = 0;   ///< in [1, format::kMaxDim]
    std::uint64_t seed = 1;
    unsigned threads = 0;  ///< 0: one per usable processor
};

/// Writes a model to `directory` and replaces an old one. Its content depends only on rows, dim and
/// seed. Memory use does not grow with the rows.
///
/// Keys: distinct, mostly of 4 to 12 bytes, some beyond ASCII. Ranks: a pseudo-random permutation.
/// Vectors: the sum of a direction of all words (more for frequent ones), a direction of the word's
/// topic, and near-normal components of its own, so that cosines spread as in GloVe: around 0.1 to
/// 0.3 for any two words, 0.5 to 0.9 for the nearest. Norms are around 3 to 10, smallest for rare
/// words.
///
/// Calls `interrupted` now and then; true ends with ErrorCode::interrupted. Other errors: io,
/// conflict. After an error `directory` is unchanged.
Result<format::Header> generate_model(const std::string& directory, const GenerateOptions& options,
                                      const std::function<bool()>& interrupted = {});

}  // namespace gloved::bench
