// The kernels of the cuda engine as its host code sees them: what they read and write, and a
// function that launches each.
//
// The engine answers in two launches or three, each over all queries of a pass:
//
//     estimate    maxima[q][g] = the largest first-pass estimate among the eligible rows of group g
//                 (kGroupRows neighbours)
//     select      threshold: floor[q] = a score that k eligible rows are certain to reach, from the
//                 k-th largest of the maxima
//                 collect: the canonical score of every row of each group whose maximum could reach
//                 the floor; rows that reach it are found
//                 rank: the k best of what was found, in order
//
// No score array is written. Only each group's maximum is stored; its rows are scored if it reaches
// the floor. If k groups have a maximum of at least m, then k different rows have an estimate of at
// least m. So the k-th largest maximum is a lower bound on the k-th best estimate, whatever the
// order of rows. Few rows of an answer share a group, so the bound is tight.
//
// There are three ways to estimate: `scan` (float32, one query), `multiply` (float16 on tensor
// cores, many queries) and `score` (canonical, any kind of query: slower, with nothing to bound).
//
// With a 4-bit plane of the model (docs/certified-search.md) there are two more ways, which read an
// eighth of the bytes. For one query `plane_scan` writes an upper bound of every row and finds the
// floor from canonical scores; select collects rows by their bounds. For many `plane_pass` does it
// all, part after part of the plane, with cutoffs that rise in between.
//
// A fake of these functions and of the runtime, for tests without a GPU, is
// tests/support/fake_cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/plane_tiles.hpp"
#include "kernels/planes/cutoff.hpp"

namespace gloved::kernels::cuda {

/// Neighbouring rows that share a maximum.
inline constexpr std::uint32_t kGroupRows = 32;
/// Rows that all blocks of a launch take in one round of their loop, at most (blocks_of_rounds).
/// Row numbers have 32 bits, and a block's loop ends when its next row lies behind the last one:
/// that number must not wrap.
inline constexpr std::uint32_t kMaxRoundRows = std::uint32_t{1} << 24;
/// Rows of a shard at most: adding a round to any of their numbers does not wrap.
inline constexpr std::size_t kMaxShardRows = (std::size_t{1} << 32) - kMaxRoundRows;
/// Elements of a row are padded with zeros to a multiple of this, so that every load is 16 bytes
/// wide.
inline constexpr std::uint32_t kStrideFloats = 4;
/// k at most, for the device to select; more is selected on the host.
inline constexpr std::uint32_t kMaxHits = 1024;
/// k and the number of excluded rows together, likewise.
inline constexpr std::uint32_t kMaxKPlusExcluded = 2048;
/// Rows that `collect` may find for one query. More (many ties) overflow, and the query is answered
/// another way.
inline constexpr std::uint32_t kFoundCapacity = 8192;
/// Queries of one pass.
inline constexpr std::uint32_t kMaxPass = 128;
/// Queries of one pass over the plane.
inline constexpr std::uint32_t kMaxPlanePass = 1024;
/// k and the number of excluded rows together, of a query in such a pass.
inline constexpr std::uint32_t kMaxPlanePassKPlusExcluded = 128;
/// Rows that such a pass may find for one query, and that it may let through in one of its parts.
/// More overflow.
inline constexpr std::uint32_t kPlanePassFound = kMaxPass * kFoundCapacity / kMaxPlanePass;
inline constexpr std::uint32_t kPlanePassSurvivors = 32768;
inline constexpr std::uint32_t kMaxPlanePassHits = kMaxHits * kMaxPass / kMaxPlanePass;
/// Bytes that an int8 row is a multiple of.
inline constexpr std::uint32_t kInt8Step = 16;
/// More components would not leave their sums in 32 bits (docs/certified-search.md, §8).
inline constexpr std::uint32_t kMaxInt8Dim = 1040;
/// The first thresholds of such a pass come from every group of this number, a power of two.
inline constexpr std::uint32_t kPlaneSample = 8;

/// A shard's 4-bit plane, as kernels/planes/shape.hpp lays it out. Device memory.
struct DevicePlane {
    const std::uint8_t* bytes = nullptr;  ///< (groups, (steps + 1) * 64); nullptr: there is none
    std::uint32_t groups = 0;             ///< of 16 rows
    std::uint32_t steps = 0;
};

/// One byte a component of every row, scaled to its largest (docs/certified-search.md, §8). Where
/// the vectors are, or in page-locked host memory beside vectors in host memory.
struct DeviceInt8Codes {
    /// (rows, stride), 16-byte aligned: dim codes, zeros, and Int8Bounds in the last bytes.
    /// nullptr: there are none.
    std::int8_t* rows = nullptr;
    std::uint32_t stride = 0;
};

/// What a row takes of an int8 plane.
constexpr std::uint32_t int8_stride(std::uint32_t dim) {
    return (dim + static_cast<std::uint32_t>(sizeof(planes::Int8Bounds)) + kInt8Step - 1) /
           kInt8Step * kInt8Step;
}

/// A shard: consecutive rows of the model on one device. All pointers are device memory.
struct DeviceModel {
    /// (rows, stride), each row padded with zeros, 16-byte aligned. Or, where the device holds the
    /// plane alone, page-locked host memory of rows without padding, which neither `scan` nor
    /// `multiply` may read.
    const float* vectors = nullptr;
    const double* norms = nullptr;             ///< (rows)
    const float* inverse_norms = nullptr;      ///< (groups * kGroupRows) fl32(1 / norm); NaN: not
                                               ///< covered by the bound, or no row
    const std::uint32_t* ranks = nullptr;      ///< (rows)
    const std::uint32_t* uncovered = nullptr;  ///< (uncovered_count) local rows whose norm the
                                               ///< bound does not cover
    std::uint32_t rows = 0;
    std::uint32_t first_row = 0;  ///< of the model; everything else here and in DeviceQuery counts
                                  ///< from it («local»)
    std::uint32_t dim = 0;
    std::uint32_t stride = 0;  ///< dim rounded up to kStrideFloats; of rows in host memory, dim
    std::uint32_t groups = 0;  ///< rows / kGroupRows, rounded up
    std::uint32_t uncovered_count = 0;
    bool vectors_on_host = false;  ///< in host memory
    DevicePlane plane;
    DeviceInt8Codes int8_codes;
};

/// What a query asks of one shard, beside its vectors.
struct DeviceQuery {
    double norm = 0;                    ///< canonical norm of the raw vector
    double min_score = 0;               ///< may be -infinity
    double error = 0;                   ///< |estimate - canonical score| is at most this
    std::uint32_t k_plus_excluded = 0;  ///< k + excluded rows: that many rows must reach the floor
    std::uint32_t k = 0;                ///< hits to return
    std::uint32_t rank_below = 0;       ///< eligible: rank < rank_below; 2^32 - 1: all
    std::uint32_t first = 0, last = 0;  ///< eligible: first <= local row < last
    std::uint32_t excluded_begin = 0;  ///< into `excluded`: sorted local rows that are not eligible
    std::uint32_t excluded_count = 0;
    // Of its digits, for launch_plane_scan and what follows it:
    planes::UpperFacts upper;
    planes::DigitFacts digits;
};

/// The queries of a pass. All pointers are device memory, but for those of `host`.
struct DeviceQueries {
    const DeviceQuery* queries = nullptr;     ///< (count)
    const float* raw = nullptr;               ///< (count, stride) as asked, padded with zeros
    const float* unit = nullptr;              ///< (count, stride) fl32(raw / norm)
    const std::uint32_t* excluded = nullptr;  ///< of all queries
    const std::int8_t* digits = nullptr;      ///< launch_plane_scan: (steps, 16) of the one query
                                              ///< (planes::PlaneQuery::bytes)
    std::uint32_t count = 0;
    bool any_rank = false;                  ///< whether any rank_below leaves rows out
    std::uint32_t max_k_plus_excluded = 0;  ///< the largest `k_plus_excluded`
    bool all_rows = true;                   ///< whether every query's range is the whole shard
    /// The same in host memory, read by a launch before it returns.
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

/// What a query's answer begins with.
struct DeviceAnswer {
    double floor = 0;  ///< every eligible row that was not rescored has a canonical score below
                       ///< this
    std::uint32_t hits = 0;       ///< min(k, found), or 0 after an overflow
    std::uint32_t found = 0;      ///< more than kFoundCapacity: overflow
    std::uint32_t rescored = 0;   ///< canonical scores computed
    std::uint32_t survivors = 0;  ///< rows that the estimates let through; more than were rescored
                                  ///< where int8 codes ruled some out
};

/// Counters of a query of a pass over the plane.
struct PlaneCounters {
    std::uint32_t part_survivors = 0;  ///< rows that the present part let through
    std::uint32_t found = 0;
    std::uint32_t rescored = 0;
    std::uint32_t overflow = 0;   ///< 1: there were more rows than there is room for
    std::uint32_t survivors = 0;  ///< of the parts before
};

/// Where a pass over the plane keeps its intermediate results. Device memory.
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
/// Where a pass keeps its intermediate results and leaves its answers.
struct Workspace {
    float* maxima = nullptr;       ///< (count, groups) device
    double* floors = nullptr;      ///< (count) device
    float* warp_maxima = nullptr;  ///< (kMaxWarps) device: the largest maximum that each warp of
                                   ///< `scan` wrote
    std::uint32_t* counters = nullptr;  ///< (count, kCounters) device, 0 between passes
    Found* found = nullptr;             ///< (count, kFoundCapacity) device
    double* scores = nullptr;  ///< (rows) device, `score` only: canonical score, NaN where not
                               ///< eligible
    double* below = nullptr;   ///< (rows) device, `score` only: denominators of cosmul
    float* uppers = nullptr;   ///< (groups * kGroupRows) device, plane only: row_upper, -infinity
                               ///< where no part is taken
    std::uint32_t* warp_rows = nullptr;  ///< (kMaxWarps) device: local row of the largest estimate
                                         ///< that each warp of plane_scan met
    PlaneWorkspace plane;
    DeviceAnswer* answers = nullptr;  ///< (count) page-locked host memory
    Found* hits = nullptr;            ///< (count, kMaxHits) page-locked host memory
};

/// Blocks of a launch that goes through rows in rounds: `wanted`, or as many as a round may have
/// where each takes `block_rows` rows of it.
constexpr std::uint32_t blocks_of_rounds(std::uint32_t wanted, std::uint32_t block_rows) {
    const std::uint32_t most = kMaxRoundRows / block_rows;
    return wanted < most ? wanted : most;
}

/// How a device is best used; read once.
struct DeviceShape {
    int processors = 0;            ///< streaming multiprocessors
    std::size_t shared_bytes = 0;  ///< shared memory that one block may ask for
    std::size_t shared_bytes_processor = 0;
    bool integer_products = false;  ///< int8 tensor cores for tiles of 16 x 8 x 32: compute
                                    ///< capability 8.0 and up
    bool bulk_copies = false;  ///< device and code have cp.async.bulk: stream_is_built() on compute
                               ///< capability 9.0 and up
};

/// Loads every kernel onto the current device, so that no query waits for that or fails of it.
/// Error: cudaErrorNoKernelImageForDevice when this build has no code for the device.
cudaError_t load_kernels();
/// Parts of it, one a source file.
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

// Every function below enqueues on `stream` and returns at once, with what the launch reported.

/// Whether launch_scan and the launch_select after it take this query from `queries.host`, as
/// parameters of their kernels: nothing then needs to be on the device beforehand, which saves a
/// small copy, some microseconds.
bool travels_with_launch(const DeviceModel& model, const DeviceQueries& queries,
                         const DeviceShape& shape);

/// maxima for one query in float32. queries.count is 1. `warps`: how many warp_maxima were written.
cudaError_t launch_scan(const DeviceModel& model, const DeviceQueries& queries,
                        const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                        cudaStream_t stream);

/// Whether launch_plane_scan can find the floor of a query that wants so many rows
/// (DeviceQuery::k_plus_excluded): the shard has a plane, and more warps than rows are wanted.
bool plane_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                  const DeviceShape& shape);

/// As travels_with_launch, for launch_plane_scan and the launch_select after it.
bool plane_travels(const DeviceModel& model, const DeviceQueries& queries);

/// uppers for one query that plane_serves, and floors[0]: a canonical score that `k_plus_excluded`
/// eligible rows reach, or min_score where that is more; -infinity where fewer were found.
cudaError_t launch_plane_scan(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Queries of one launch_plane_pass at most; 0: there is none for shards of that size on that
/// device.
std::uint32_t plane_pass_capacity(std::size_t rows, std::uint32_t dim, const DeviceShape& shape);

/// Codes every row into `model.int8_codes`.
cudaError_t launch_build_int8_codes(const DeviceModel& model, cudaStream_t stream);

/// Whole answers of up to kMaxPlanePass queries over all rows of a shard with a plane, each of
/// which wants kMaxPlanePassKPlusExcluded at most: answers, and kMaxPlanePassHits hits a query.
/// What is read of `queries` is queries, raw and excluded.
cudaError_t launch_plane_pass(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// The largest number of queries that one `launch_multiply` can take for that stride on that
/// device; below 2 there is no use in it. At most kMaxPass.
std::uint32_t multiply_capacity(std::uint32_t stride, const DeviceShape& shape);

/// maxima for up to multiply_capacity queries with float16 operands. Does not look at `first` and
/// `last`: queries of a range go alone.
cudaError_t launch_multiply(const DeviceModel& model, const DeviceQueries& queries,
                            const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// What `score` computes from the canonical cosines of the `count` vectors of `queries.raw`, all
/// parts of one query.
enum class ScorePart : std::uint32_t {
    cosine,     ///< scores = the cosine with the only vector
    multiply,   ///< scores = (first ? 1 : scores) * Π (1 + cosine) / 2
    divide_by,  ///< below = (first ? 1 : below) * Π (1 + cosine) / 2
};

/// Canonical values of rows first <= row < last, eligible or not, into `scores` or `below`.
/// queries.queries[i].norm is the norm of vector i; nothing else of it is read.
cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries, ScorePart part,
                         bool first, std::uint32_t first_row, std::uint32_t last_row,
                         const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Ends a query of kind cosmul or cosine: scores /= below + 1e-6 where `divide`; NaN for rows that
/// rank, range or min_score of queries.queries[0] leave out (excluded rows stay); maxima[0][g] =
/// the largest score of group g, rounded down to float32, -infinity for none.
cudaError_t launch_finish_scores(const DeviceModel& model, const DeviceQueries& queries,
                                 bool divide, const Workspace& work, const DeviceShape& shape,
                                 cudaStream_t stream);

/// Where `select` finds what was estimated.
enum class Estimates : std::uint32_t {
    maxima,         ///< in maxima
    warp_maxima,    ///< in maxima, and of one query in warp_maxima too
    stored_scores,  ///< in maxima, and canonical scores in `scores`: none are computed
    uppers,         ///< of every row by the plane, and the floor is known: launch_plane_scan
};

/// answers and hits from maxima:
///  - floor = max(min_score, m - error), m being the k_plus_excluded-th largest of the maxima (or a
///  little
///    less), -infinity where fewer than `k_plus_excluded` are above -infinity;
///  - found are the eligible rows of canonical score >= floor among those of every group with
///    maximum >= floor - error and, unless scores are stored, among the uncovered ones; all of
///    these are rescored;
///  - hits are the k best of what was found; none when more than kFoundCapacity were.
/// warps: of launch_scan, for Estimates::warp_maxima.
cudaError_t launch_select(const DeviceModel& model, const DeviceQueries& queries,
                          Estimates estimates, std::uint32_t warps, const Workspace& work,
                          const DeviceShape& shape, cudaStream_t stream);

/// answers[0].found = eligible rows, by `scores` and the excluded list, that come before
/// {target_row (of the model), target_score}, the row itself not counted.
cudaError_t launch_count_before(const DeviceModel& model, const DeviceQueries& queries,
                                std::uint32_t target_row, double target_score,
                                const Workspace& work, const DeviceShape& shape,
                                cudaStream_t stream);

/// Rows of `dim` floats without padding, as they come from the file, into rows of `stride`.
cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim,
                            std::uint32_t stride, float* padded, cudaStream_t stream);

/// inverse_norms for `groups * kGroupRows` rows from `rows` norms; NaN for norms outside [smallest,
/// largest].
cudaError_t launch_invert_norms(const double* norms, std::uint32_t rows, std::uint32_t groups,
                                double smallest, double largest, float* inverse_norms,
                                cudaStream_t stream);

}  // namespace gloved::kernels::cuda
