// The search of the student project, in its versions v0 to v4.
//
// Every version scores each row in float32 and selects the best. Let u = 2^-24, n = dim, |q| the
// scaled query's norm (1 <= |q| < 2) and |x| a row's norm with 2^-60 <= |x| <= 2^60. A version
// computes d = fl32(Σ q_i x_i) in an order of its own, fused or not, and from it
//
//     score = clamp(fl32(d / fl32(q' x')))          with q' = fl32(|q|), x' = fl32(|x|).
//
// Claim: |score − canonical score| <= 1.01 (n + 4) u + 3 u, which is score_bound.
//
//  1. Each product passes through at most n roundings, in any order of summation. So |d − q·x| <= γ
//     Σ|q_i x_i| + t with γ = n u / (1 − n u) (Higham, «Accuracy and Stability of Numerical
//     Algorithms», §3.1), and Σ|q_i x_i| <= |q| |x| by Cauchy–Schwarz. Nothing overflows: every
//     partial sum is below 2^62. t is what underflow adds: at most n 2^-88 |q| |x|.
//  2. Scaling the query by a power of two is exact but for elements that become subnormal: in all
//     they lose less than n 2^-149 |q| |x|.
//  3. Everything in float64 is off by less than (4 n + 20) 2^-53. For n <= 4096, γ <= 1.00025 n u,
//     and 1 to 3 together are below 1.01 (n + 4) u, with more than 2 u to spare.
//  4. q', x', their product and the quotient are rounded once each. That moves the score by less
//     than 4.01 u: 2.01 u more than the spare 2 u.
//  5. Both scores are clamped to [-1, 1], which moves no two numbers apart.
//
// A zero row scores exactly 0. Rows of other norms are outside the claim; their score is still a
// number in [-1, 1].
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/canonical.hpp"
#include "kernels/engine.hpp"

namespace gloved::museum {

/// Largest number of hits of a search.
inline constexpr std::size_t kMaxHits = 32;

/// The bound of the claim above. dim <= 4096.
double score_bound(std::size_t dim);

/// A row and its score. Eight bytes, read and written at once.
struct alignas(8) Entry {
    float score = -2.0F;  ///< the default lies below every score
    std::uint32_t row = std::numeric_limits<std::uint32_t>::max();
};

/// A strict total order on entries of distinct rows, as of hits.
GLOVED_HOST_DEVICE inline bool comes_before(const Entry& a, const Entry& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

/// The score of the claim. `row_norm` is fl32 of the stored norm: 0 only for a zero row.
GLOVED_HOST_DEVICE inline float float_score(float dot, float query_norm, float row_norm) {
    if (row_norm == 0.0F) return 0.0F;
    const float score = dot / (query_norm * row_norm);
    // In this order NaN (of a dot product that overflows) becomes -1.
    return score >= 1.0F ? 1.0F : score > -1.0F ? score : -1.0F;
}

/// What every kernel gets. All pointers are device memory.
struct DotArguments {
    const float* vectors = nullptr;  ///< (rows, dim), 256-byte aligned; single rows are not
    const float* norms = nullptr;    ///< (rows)
    const float* query = nullptr;    ///< (dim), scaled
    Entry* entries = nullptr;  ///< (slots) written: a row's score, or a default entry from `rows`
                               ///< on
    std::size_t rows = 0;
    std::size_t slots = 0;  ///< rows rounded up to whole lists (selection.hpp)
    std::uint32_t dim = 0;
    float query_norm = 0;
};

/// Threads of a block, in every kernel.
inline constexpr unsigned kBlockThreads = 256;

/// Enqueues a kernel with `blocks_for` blocks, and returns the launch's error.
using LaunchDot = cudaError_t (*)(const DotArguments& arguments, cudaStream_t stream);

/// Blocks with at least one thread for each of `threads`.
inline unsigned blocks_for(std::size_t threads) {
    return static_cast<unsigned>((threads + kBlockThreads - 1) / kBlockThreads);
}

cudaError_t launch_v1(const DotArguments& arguments, cudaStream_t stream);
cudaError_t launch_v2(const DotArguments& arguments, cudaStream_t stream);
cudaError_t launch_v3(const DotArguments& arguments, cudaStream_t stream);
cudaError_t launch_v4(const DotArguments& arguments, cudaStream_t stream);

/// v0. Returns the `wanted` best rows of the model, best first, and sets `scored_ms` to the time
/// until all were scored.
std::vector<Entry> search_v0(const format::Model& model, std::span<const float> scaled,
                             float query_norm, std::size_t wanted, double& scored_ms);

/// What a version is.
struct Version {
    std::string_view name;
    std::string_view idea;       ///< one sentence
    std::string_view limit;      ///< what should bound its time, in a sentence
    LaunchDot launch = nullptr;  ///< nullptr: v0, on the processor
    bool resident = true;        ///< the model stays on the device between queries
    bool lists_in_global_memory = false;
    /// Every query allocates what it needs and gives it back, and the host waits after every step.
    bool stepwise = true;
};

/// v0 to v4.
std::span<const Version> versions();

/// Milliseconds of one search. Parts by device events (v0: the host's clock); `total` by the host's
/// clock from the call to the hits in host memory.
struct SearchTimes {
    double dot_product = 0;
    double first_merge = 0;
    double botched_merge_sort = 0;
    double total = 0;
    /// Copies, allocation, launches, waiting.
    double overhead() const { return total - dot_product - first_merge - botched_merge_sort; }
};

/// One version on one model, which must outlive it. Not safe for concurrent use; searches of two
/// v2 must not overlap.
class Search {
  public:
    virtual ~Search() = default;
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    /// Error: device.
    static Result<std::unique_ptr<Search>> create(const Version& version,
                                                  const format::Model& model, int device);
    /// The k (1 to kMaxHits) rows of largest score, best first; all rows if k is larger. `times`,
    /// where given, is filled in. Error: device.
    virtual Result<std::vector<kernels::Hit>> run(const kernels::QueryVector& query, std::size_t k,
                                                  SearchTimes* times) = 0;

  protected:
    Search() = default;
};

}  // namespace gloved::museum
