// Generates random models of any size that resemble GloVe's, for benchmarks and tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::bench {

/// Size and seed of the model.
struct GenerateOptions {
    std::uint64_t rows = 0;  ///< in [1, format::kMaxRows]
    std::uint32_t dim = 0;   ///< in [1, format::kMaxDim]
    std::uint64_t seed = 1;
    unsigned threads = 0;  ///< 0: one per usable processor
};

/// Writes a model to `directory`, and replaces an old one there. Its content depends only on rows,
/// dim and seed. Memory use does not grow with the rows. Returns the header of its values file.
///
/// Keys: distinct, mostly of 4 to 12 bytes, some beyond ASCII. Ranks: a pseudo-random permutation.
/// Vectors: the sum of a direction of all words (more for frequent ones), a direction of the word's
/// topic, and near-normal components of its own, so that cosines spread as in GloVe: around 0.1 to
/// 0.3 for any two words, 0.5 to 0.9 for the nearest. Norms are around 3 to 10, smallest for rare
/// words.
///
/// Errors: interrupted, once `interrupted`, which is called now and then, returns true; io;
/// conflict. After an error `directory` is unchanged.
Result<format::Header> generate_model(const std::string& directory, const GenerateOptions& options,
                                      const std::function<bool()>& interrupted = {});

}  // namespace gloved::bench
