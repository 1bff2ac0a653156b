// Models of any size without a download: made up, but with the shape of GloVe's.
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
    unsigned threads = 0;  ///< 0: one a processor that the process may use
};

/// Publishes a model as `directory`, in place of one that is there. Rows, dim and seed alone decide
/// its content, not the threads. Memory does not grow with the rows.
///
/// Keys: distinct, mostly of 4 to 12 bytes, some beyond ASCII. Ranks: a pseudo-random permutation.
/// Vectors: a direction that all words share (frequent ones more), one that a word shares with the
/// rest of its topic, and near-normal components of its own, so that cosines spread as in GloVe:
/// around 0.1 to 0.3 for any two words, 0.5 to 0.9 for the nearest ones. Norms lie around 3 to 10,
/// the rarest words' being the smallest.
///
/// `interrupted` is asked now and then; true ends with ErrorCode::interrupted. Other errors: io,
/// conflict. After an error `directory` is as it was.
Result<format::Header> generate_model(const std::string& directory, const GenerateOptions& options,
                                      const std::function<bool()>& interrupted = {});

}  // namespace gloved::bench
