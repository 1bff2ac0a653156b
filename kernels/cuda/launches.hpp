// Launch functions of the cuda engine's kernels, and the structs that they read and write.
//
// The engine answers in two or three launches, each over all queries of a pass:
//
//     estimate    maxima[q][g] = the largest estimate among the eligible rows of group g
//                 (kGroupRows neighbours)
//     select      threshold: floor[q] = a score that k eligible rows are certain to reach, from the
//                 k-th largest maximum
//                 collect: the canonical score of every row of each group whose maximum could reach
//                 the floor; rows that reach it are found
//                 rank: the k best of the found rows, in order
//
// No score array is written. Only each group's maximum is stored; its rows are scored if it reaches
// the floor. If k groups have a maximum of at least m, then k different rows have an estimate of at
// least m. So the k-th largest maximum is a lower bound on the k-th best estimate, whatever the
// order of rows. Few hits share a group, so the bound is tight.
//
// Three kernels estimate: `scan` (float32, one query), `multiply` (float16 on tensor cores, many
// queries) and `score` (canonical scores, any kind of query: slower, and without an error).
//
// With a 4-bit plane of the model (docs/certified-search.md) two more read an eighth of the bytes.
// For one query `plane_scan` writes an upper bound for every row and finds the floor from canonical
// scores; select collects rows by their bounds. For many queries `plane_pass` does all steps, part
// after part of the plane, and raises the cutoffs in between.
//
// tests/support/fake_cuda has these functions and the runtime for tests without a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plane_tiles.hpp"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {

/// Neighbouring rows that share a maximum.
inline constexpr std::uint32_t kGroupRows = 32;
/// Limit on the rows that all blocks of a launch take in one round of their loop
/// (blocks_of_rounds). A block's loop ends when its next row lies behind the last one; that number
/// has 32 bits and must not wrap.
inline constexpr std::uint32_t kMaxRoundRows = std::uint32_t{1} << 24;
/// Rows of a shard at most: a row's number plus a round does not wrap.
inline constexpr std::size_t kMaxShardRows = (std::size_t{1} << 32) - kMaxRoundRows;
/// Elements of a row are padded with zeros to a multiple of this, so that every load is 16 bytes
/// wide.
inline constexpr std::uint32_t kStrideFloats = 4;
/// Largest k that the device selects; the host selects more.
inline constexpr std::uint32_t kMaxHits = 1024;
/// Largest sum of k and excluded rows that the device selects.
inline constexpr std::uint32_t kMaxKPlusExcluded = 2048;
/// Rows that `collect` may find for one query. More (many ties) overflow, and another pass answers
/// the query.
inline constexpr std::uint32_t kFoundCapacity = 8192;
/// Most queries of a pass over vectors.
inline constexpr std::uint32_t kMaxPass = 128;
/// Most queries of a pass over the plane.
inline constexpr std::uint32_t kMaxPlanePass = 1024;
/// Largest sum of k and excluded rows of a query in a pass over the plane.
inline constexpr std::uint32_t kMaxPlanePassKPlusExcluded = 128;
/// Rows that a pass over the plane may find for one query, and survivors of one of its parts. More
/// overflow.
inline constexpr std::uint32_t kPlanePassFound = kMaxPass * kFoundCapacity / kMaxPlanePass;
inline constexpr std::uint32_t kPlanePassSurvivors = 32768;
inline constexpr std::uint32_t kMaxPlanePassHits = kMaxHits * kMaxPass / kMaxPlanePass;
/// The bytes of a row's int8 codes are a multiple of this.
inline constexpr std::uint32_t kInt8Step = 16;
/// Largest dim with int8 codes: sums stay within 32 bits (docs/certified-search.md, §8).
inline constexpr std::uint32_t kMaxInt8Dim = 1040;
/// The first thresholds of a pass over the plane come from one group in this many, a power of two.
inline constexpr std::uint32_t kPlaneSample = 8;

/// A shard's 4-bit plane, as kernels/planes/shape.hpp lays it out. Device memory.
struct DevicePlane {
    const std::uint8_t* bytes = nullptr;  ///< (groups, (steps + 1) * 64); nullptr: there is none
    std::uint32_t groups = 0;             ///< of 16 rows
    std::uint32_t steps = 0;
};

/// Int8 codes: one byte a component of every row, scaled to its largest (docs/certified-search.md,
/// §8). Device memory, or page-locked host memory where the vectors are on the host.
struct DeviceInt8Codes {
    /// (rows, stride), 16-byte aligned: dim codes, zeros, and Int8Bounds in the last bytes.
    /// nullptr: there are none.
    std::int8_t* rows = nullptr;
    std::uint32_t stride = 0;
};

/// Bytes of a row's int8 codes and its bounds.
constexpr std::uint32_t int8_stride(std::uint32_t dim) {
    return (dim + static_cast<std::uint32_t>(sizeof(planes::Int8Bounds)) + kInt8Step - 1) /
           kInt8Step * kInt8Step;
}

/// A shard: consecutive rows of the model on one device. All pointers are device memory.
struct DeviceModel {
    /// (rows, stride), each row padded with zeros, 16-byte aligned. With `vectors_on_host`,
    /// page-locked host memory of rows without padding; `scan` and `multiply` may not read it.
    const float* vectors = nullptr;
    const double* norms = nullptr;             ///< (rows)
    const float* inverse_norms = nullptr;      ///< (groups * kGroupRows) fl32(1 / norm); NaN: not
                                               ///< covered by the bound, or no row
    const std::uint32_t* ranks = nullptr;      ///< (rows)
    const std::uint32_t* uncovered = nullptr;  ///< (uncovered_count) local rows whose norm the
                                               ///< bounds do not cover
    std::uint32_t rows = 0;
    std::uint32_t first_row = 0;  ///< of the model; everything else here and in DeviceQuery counts
                                  ///< from it («local»)
    std::uint32_t dim = 0;
    std::uint32_t stride = 0;  ///< dim rounded up to kStrideFloats; of rows in host memory, dim
    std::uint32_t groups = 0;  ///< rows / kGroupRows, rounded up
    std::uint32_t uncovered_count = 0;
    bool vectors_on_host = false;
    DevicePlane plane;
    DeviceInt8Codes int8_codes;
};

/// A query as one shard needs it, without its vectors.
struct DeviceQuery {
    double norm = 0;                    ///< canonical norm of the raw vector
    double min_score = 0;               ///< may be -infinity
    double error = 0;                   ///< bound on |estimate - canonical score|
    std::uint32_t k_plus_excluded = 0;  ///< k + excluded rows: that many rows must reach the floor
    std::uint32_t k = 0;                ///< hits to return
    std::uint32_t rank_below = 0;       ///< eligible: rank < rank_below; 2^32 - 1: all
    std::uint32_t first = 0, last = 0;  ///< eligible: first <= local row < last
    std::uint32_t excluded_begin = 0;  ///< into `excluded`: sorted local rows that are not eligible
    std::uint32_t excluded_count = 0;
    // About its digits, for launch_plane_scan and the launch_select after it:
    planes::UpperFacts upper;
    planes::DigitFacts digits;
};

/// The queries of a pass. All pointers are device memory, but for those of `host`.
struct DeviceQueries {
    const DeviceQuery* queries = nullptr;     ///< (count)
    const float* raw = nullptr;               ///< (count, stride) padded with zeros
    const float* unit = nullptr;              ///< (count, stride) fl32(raw / norm)
    const std::uint32_t* excluded = nullptr;  ///< of all queries
    const std::int8_t* digits = nullptr;      ///< launch_plane_scan: (steps, 16) of the one query
                                              ///< (planes::PlaneQuery::bytes)
    std::uint32_t count = 0;
    bool any_rank = false;                  ///< whether any rank_below excludes rows
    std::uint32_t max_k_plus_excluded = 0;  ///< the largest `k_plus_excluded`
    bool all_rows = true;                   ///< whether every query's range is the whole shard
    /// The same in host memory. A launch reads it before it returns.
    struct Host {
        const DeviceQuery* queries = nullptr;
        const float* raw = nullptr;
        const float* unit = nullptr;
        const std::uint32_t* excluded = nullptr;
        const std::int8_t* digits = nullptr;
    } host;
};

/// Counters of a query in Workspace::counters.
enum QueryCounter : std::uint32_t {
    kFoundCounter,
    kRescoredCounter,
    kBlocksDoneCounter,
    kRuledOutCounter,  ///< rows, by int8 codes
    kCounters,
};
/// Warps that `scan` starts, at most.
inline constexpr std::uint32_t kMaxWarps = 1U << 14;

struct Found {
    double score = 0;
    std::uint32_t row = 0;  ///< local
    std::uint32_t unused = 0;
};

/// An answer without its hits.
struct DeviceAnswer {
    double floor = 0;  ///< eligible rows that were not rescored have canonical scores below this
    std::uint32_t hits = 0;       ///< min(k, found), or 0 after an overflow
    std::uint32_t found = 0;      ///< more than kFoundCapacity: overflow
    std::uint32_t rescored = 0;   ///< canonical scores computed
    std::uint32_t survivors = 0;  ///< rows that the estimates let through: the rescored ones, and
                                  ///< those that int8 codes ruled out
};

/// Counters of a query of a pass over the plane.
struct PlaneCounters {
    std::uint32_t part_survivors = 0;  ///< rows that the present part let through
    std::uint32_t found = 0;
    std::uint32_t rescored = 0;
    std::uint32_t overflow = 0;   ///< 1: there were more rows than there is room for
    std::uint32_t survivors = 0;  ///< of the parts before
};

/// Intermediate results of a pass over the plane. Device memory.
struct PlaneWorkspace {
    std::int8_t* digits = nullptr;        ///< (kMaxPlanePass, dim rounded up to kDigitStep)
    planes::DigitFacts* facts = nullptr;  ///< (kMaxPlanePass)
    std::int8_t* int8_digits = nullptr;  ///< (kMaxPlanePass, 2, int8_codes.stride): two bytes each,
                                         ///< a query's high ones, then its low ones
    planes::DigitFacts* int8_facts = nullptr;  ///< (kMaxPlanePass)
    planes::PlaneCutoff* cutoffs = nullptr;    ///< (kMaxPlanePass)
    double* floors = nullptr;                  ///< (kMaxPlanePass)
    float* keys = nullptr;  ///< (kMaxPlanePass, plane.groups / kPlaneSample, rounded up)
    std::uint32_t* survivors = nullptr;  ///< (kMaxPlanePass, kPlanePassSurvivors) local rows
    PlaneCounters* counters = nullptr;   ///< (kMaxPlanePass)
};

/// Intermediate results of a pass, and its answers.
struct Workspace {
    float* maxima = nullptr;       ///< (count, groups) device
    double* floors = nullptr;      ///< (count) device
    float* warp_maxima = nullptr;  ///< (kMaxWarps) device: the largest maximum that each warp of
                                   ///< `scan` wrote
    std::uint32_t* counters = nullptr;  ///< (count, kCounters) device, 0 between passes
    Found* found = nullptr;             ///< (count, kFoundCapacity) device
    double* scores = nullptr;  ///< (rows) device, `score` only: canonical score, NaN where not
                               ///< eligible
    double* denominators = nullptr;  ///< (rows) device, `score` only: denominators of cosmul
    float* uppers = nullptr;  ///< (groups * kGroupRows) device, plane only: row_upper, -infinity
                              ///< for rows that are not eligible
    std::uint32_t* warp_rows = nullptr;  ///< (kMaxWarps) device: local row of the largest estimate
                                         ///< that each warp of plane_scan met
    PlaneWorkspace plane;
    DeviceAnswer* answers = nullptr;  ///< (count) page-locked host memory
    Found* hits = nullptr;            ///< (count, kMaxHits) page-locked host memory
};

/// Blocks of a launch whose loop takes `block_rows` rows a block and round: `wanted`, or as many as
/// kMaxRoundRows allows.
constexpr std::uint32_t blocks_of_rounds(std::uint32_t wanted, std::uint32_t block_rows) {
    const std::uint32_t max_blocks = kMaxRoundRows / block_rows;
    return wanted < max_blocks ? wanted : max_blocks;
}

/// Properties of a device that launches depend on. Read once.
struct DeviceShape {
    int processors = 0;            ///< streaming multiprocessors
    std::size_t shared_bytes = 0;  ///< shared memory that one block may have
    std::size_t shared_bytes_processor = 0;
    bool integer_products = false;  ///< int8 tensor cores for tiles of 16 x 8 x 32: compute
                                    ///< capability 8.0 and up
    bool bulk_copies = false;  ///< device and code have cp.async.bulk: stream_is_built() on compute
                               ///< capability 9.0 and up
};

/// Loads every kernel onto the current device, so that no query waits for that or fails by it.
/// Error: cudaErrorNoKernelImageForDevice when this build has no code for the device.
cudaError_t load_kernels();
/// Load the kernels of one source file each.
cudaError_t load_build_int8_codes_kernels();
cudaError_t load_estimate_kernels();
cudaError_t load_multiply_kernels();
cudaError_t load_plane_multiply_kernels();
cudaError_t load_plane_pass_kernels();
cudaError_t load_plane_scan_kernels();
cudaError_t load_score_kernels();
cudaError_t load_select_kernels();
cudaError_t load_stream_kernels();

/// Whether the code for the current device was built for compute capability 9.0 and up.
bool stream_is_built();

// Every launch_ function below enqueues on `stream` and returns at once, with the launch's error.

/// Whether launch_scan and the launch_select after it pass this query to their kernels as
/// parameters, from `queries.host`. That saves a small copy to the device, some microseconds.
bool scan_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries,
                                const DeviceShape& shape);

/// Estimates every row in float32 for one query (queries.count is 1): maxima, and warp_maxima of
/// `warps` warps.
cudaError_t launch_scan(const DeviceModel& model, const DeviceQueries& queries,
                        const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                        cudaStream_t stream);

/// Whether launch_plane_scan can find the floor of a query (DeviceQuery::k_plus_excluded): the
/// shard has a plane, and its pass has enough warps.
bool plane_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                  const DeviceShape& shape);

/// The same as scan_query_fits_parameters for launch_plane_scan and the launch_select after it.
bool plane_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries);

/// Bounds every row by the plane for one query that plane_serves: uppers, and floors[0], a
/// canonical score that `k_plus_excluded` eligible rows reach, or min_score where that is more;
/// -infinity where fewer were found.
cudaError_t launch_plane_scan(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Most queries of one launch_plane_pass; 0: it cannot serve shards of that size on that device.
std::uint32_t plane_pass_capacity(std::size_t rows, std::uint32_t dim, const DeviceShape& shape);

/// Writes the int8 codes of every row to `model.int8_codes`.
cudaError_t launch_build_int8_codes(const DeviceModel& model, cudaStream_t stream);

/// Answers up to kMaxPlanePass queries over all rows of a shard with a plane: answers, and
/// kMaxPlanePassHits hits a query. A query's k_plus_excluded is at most kMaxPlanePassKPlusExcluded.
/// Reads of `queries` only queries, raw and excluded.
cudaError_t launch_plane_pass(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Most queries of one `launch_multiply` for that stride on that device, up to kMaxPass. Below 2,
/// launch_scan is faster.
std::uint32_t multiply_capacity(std::uint32_t stride, const DeviceShape& shape);

/// Estimates every row with float16 operands for up to multiply_capacity queries: maxima. Ignores
/// `first` and `last`.
cudaError_t launch_multiply(const DeviceModel& model, const DeviceQueries& queries,
                            const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// What launch_score computes from the canonical cosines of the vectors in `queries.raw`, all of
/// which belong to one query.
enum class ScorePart : std::uint32_t {
    cosine,     ///< scores = the cosine with the only vector
    multiply,   ///< scores = (first ? 1 : scores) * Π (1 + cosine) / 2
    divide_by,  ///< denominators = (first ? 1 : denominators) * Π (1 + cosine) / 2
};

/// Writes canonical values of rows first_row <= row < last_row, eligible or not, to `scores` or
/// `denominators`.
/// Reads of queries.queries[i] only the norm of vector i.
cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries, ScorePart part,
                         bool first, std::uint32_t first_row, std::uint32_t last_row,
                         const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Ends a query that launch_score began: scores /= denominators + 1e-6 where `divide`; NaN for rows
/// that rank, range or min_score of queries.queries[0] rule out (excluded rows stay); maxima[0][g]
/// = the largest score of group g, rounded down to float32, -infinity for none.
cudaError_t launch_finish_scores(const DeviceModel& model, const DeviceQueries& queries,
                                 bool divide, const Workspace& work, const DeviceShape& shape,
                                 cudaStream_t stream);

/// Where launch_select finds estimates.
enum class SelectSource : std::uint32_t {
    maxima,         ///< in maxima
    warp_maxima,    ///< in maxima, and for one query in warp_maxima too
    stored_scores,  ///< in maxima, and canonical scores in `scores`: none are computed
    uppers,         ///< in uppers, and the floor is known: launch_plane_scan
};

/// Writes answers and hits from estimates:
///  - floor = max(min_score, m - error), m being the k_plus_excluded-th largest of the maxima (or a
///  little
///    less), -infinity where fewer than `k_plus_excluded` are above -infinity;
///  - rescored are the rows of every group with maximum >= floor - error and, unless scores are
///    stored, the uncovered rows;
///  - found are the eligible ones among them with canonical score >= floor;
///  - hits are the k best found rows; none where more than kFoundCapacity were found.
/// warps: from launch_scan, for SelectSource::warp_maxima.
cudaError_t launch_select(const DeviceModel& model, const DeviceQueries& queries,
                          SelectSource source, std::uint32_t warps, const Workspace& work,
                          const DeviceShape& shape, cudaStream_t stream);

/// Counts the eligible rows, by `scores` and the excluded list, that come before {target_row (of
/// the model), target_score}, without that row: answers[0].found.
cudaError_t launch_count_before(const DeviceModel& model, const DeviceQueries& queries,
                                std::uint32_t target_row, double target_score,
                                const Workspace& work, const DeviceShape& shape,
                                cudaStream_t stream);

/// Copies rows of `dim` floats, as the file has them, to rows of `stride` padded with zeros.
cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim,
                            std::uint32_t stride, float* padded, cudaStream_t stream);

/// Writes inverse_norms of `groups * kGroupRows` rows; NaN for norms outside [smallest, largest]
/// and for rows beyond `rows`.
cudaError_t launch_invert_norms(const double* norms, std::uint32_t rows, std::uint32_t groups,
                                double smallest, double largest, float* inverse_norms,
                                cudaStream_t stream);

}  // namespace gloved::kernels::cuda
