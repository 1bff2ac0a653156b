// Launch functions of the cuda engine's kernels, and the structs that the kernels read and write:
// the boundary between host code (shard.cpp) and kernels.
//
// With a 4-bit plane of the model (docs/certified-search.md) two passes read 13 % of the vectors'
// bytes. Each does all steps in one launch, whose blocks wait for one another before a floor, which
// is a score that k rows certainly reach. `plane_query` answers one query: an upper bound for every
// row, the floor from the canonical scores of the best rows by estimate, and the rows whose bounds
// reach it. `plane_pass` answers a few, up to kMaxPlanePass, on tensor cores: a first floor from a
// sample of the rows, the rows whose sums reach its cutoff, two more floors from the best of these,
// and the canonical scores of what is left.
//
// `code_pass` answers many, by codes of one byte in place of 4 bits, which code_multiply_wgmma.cu
// or code_multiply_mma.cu multiplies. It works through the rows in parts, and raises the cutoffs
// between parts. From how many queries on it is faster, DeviceEngine knows.
//
// Where codes rule nothing out, `few_rows` scores the rows that a filter leaves, and `score` all
// rows, or for a count those that it lists first. Hits need no score stored: each unit of kUnitRows
// neighbouring rows has a maximum, and the k-th largest of these is a floor, since k different rows
// reach it. The rows of the units that reach the floor are scored again. For k above kMaxHits the
// host gets all scores.
//
// tests/support/fake_cuda has these functions and the runtime for tests without a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/row_upper.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::kernels::cuda {

/// Neighbouring rows that share a maximum.
inline constexpr std::uint32_t kUnitRows = 32;
/// Limit on the rows that all blocks of a launch together handle in one round of their loops
/// (blocks_of_rounds). A block's loop ends when its next row number is beyond the last row; that
/// number has 32 bits and must not wrap.
inline constexpr std::uint32_t kMaxRoundRows = std::uint32_t{1} << 24;
/// Maximum number of rows of a shard, so that a row number plus a round does not wrap.
inline constexpr std::size_t kMaxShardRows = (std::size_t{1} << 32) - kMaxRoundRows;
/// A vector in device memory is padded with zeros to a multiple of this many floats, so that every
/// load is 16 bytes wide.
inline constexpr std::uint32_t kStrideFloats = 4;
/// Largest k that the device selects; the host selects more.
inline constexpr std::uint32_t kMaxHits = 1024;
/// Largest sum of k and excluded rows that the device selects.
inline constexpr std::uint32_t kMaxKPlusExcluded = 2048;
/// Maximum number of rows that launch_plane_query and launch_score may find for one query. With
/// more (many ties) the list overflows, and another pass answers the query.
inline constexpr std::uint32_t kFoundCapacity = 8192;
/// Maximum number of rows whose canonical scores make the threshold of such a query.
inline constexpr std::uint32_t kMaxCandidates = 2304;
/// Maximum number of queries and of their vectors in one launch_score.
inline constexpr std::uint32_t kMaxScoredQueries = 8;
inline constexpr std::uint32_t kMaxScoreVectors = 64;
/// Largest k, and largest sum of k and excluded rows, of a query in a pass of many queries.
inline constexpr std::uint32_t kMaxBatchHits = 128;
inline constexpr std::uint32_t kMaxBatchKPlusExcluded = 256;
/// Maximum number of rows that a pass of many queries may find for one. With more the query
/// overflows.
inline constexpr std::uint32_t kBatchFound = 1024;
/// Maximum number of queries of one launch_plane_pass.
inline constexpr std::uint32_t kMaxPlanePass = 32;
/// Bytes behind a plane on a device that launch_plane_pass may read: it loads four steps at a time.
inline constexpr std::size_t kPlanePadding = 256;
/// Size in bytes of a row's int8 codes is a multiple of this.
inline constexpr std::uint32_t kInt8Step = 16;
/// Largest dim with int8 codes in host memory: sums stay within 32 bits (docs/certified-search.md,
/// §8).
inline constexpr std::uint32_t kMaxInt8Dim = 1040;

/// Maximum number of queries of a pass over code tiles, and of one in which each has the most room
/// for rows that come through.
inline constexpr std::uint32_t kMaxCodePass = 1024;
inline constexpr std::uint32_t kMaxRoomyCodePass = 256;
/// Room for rows in each list of a pass over code tiles, and for the rows that a query keeps from
/// the first part of the tiles. With more rows the query overflows.
inline constexpr std::uint32_t kCodeListRoom = 64;
inline constexpr std::uint32_t kMaxKept = 2048;

/// Maximum number of different filters whose rows are marked before a pass over code tiles. For
/// queries with other filters, the pass looks up every row that reaches their cutoffs.
inline constexpr std::uint32_t kMaxMarkedFilters = 8;
/// Stands for a filter without marks.
inline constexpr std::uint32_t kNoMarks = ~std::uint32_t{0};

/// Maximum number of rows that the filter of a query of launch_few_rows leaves. More rows are
/// answered faster by a pass over all.
inline constexpr std::uint32_t kMaxFewRows = 4096;
/// Maximum number of blocks of launch_few_rows for up to kMaxCodePass queries, and for one query.
inline constexpr std::uint32_t kMaxFewBlocks = kMaxCodePass;
inline constexpr std::uint32_t kMaxFewBlocksOfQuery = 8;

/// A shard's 4-bit plane, as kernels/planes/shape.hpp lays it out. Device memory.
struct DevicePlane {
    const std::uint8_t* bytes = nullptr;  ///< (groups, (steps + 1) * 64); nullptr: there is none
    std::uint32_t groups = 0;             ///< number of groups of 16 rows
    std::uint32_t steps = 0;              ///< per row, PlaneShape::steps
};

/// Int8 codes: one byte per component, for every row, scaled to the row's largest component
/// (docs/certified-search.md, §8). Device memory, or page-locked host memory where the vectors are
/// on the host.
struct DeviceInt8Codes {
    /// (rows, stride), 16-byte aligned: dim codes, zeros, and Int8Bounds in the last bytes.
    /// nullptr: there are none.
    std::int8_t* rows = nullptr;
    std::uint32_t stride = 0;  ///< int8_stride(dim)
};

/// Stands for the place of a row that has none.
inline constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};

/// Int8 codes for passes of many queries: the codes of DeviceInt8Codes, but in tiles ready for
/// tensor cores (code_tiles.hpp), with the rows in ascending order of their projections. A row's
/// number in this order is its place. So all rows of a tile have nearly the same bounds. Uncovered
/// rows have no place. Device memory.
struct DeviceCodeTiles {
    std::int8_t* codes = nullptr;   ///< (tiles, kCodeTileRows * width), 0 beyond the last place;
                                    ///< nullptr: there are none
    Int8Range* ranges = nullptr;    ///< (tiles) of the bounds of the tile's rows
    Int8Bounds* bounds = nullptr;   ///< (places)
    std::uint32_t* rows = nullptr;  ///< (places) the local row at each place
    std::uint32_t* places_of = nullptr;  ///< (the shard's rows) each row's place, or kNoPlace
    std::uint32_t places = 0;            ///< number of rows that have a place
    std::uint32_t tiles = 0;             ///< code_tiles(places)
    std::uint32_t width = 0;             ///< code_width(dim), the bytes of a row
};

/// Bytes of a row's int8 codes with its Int8Bounds.
constexpr std::uint32_t int8_stride(std::uint32_t dim) {
    return (dim + static_cast<std::uint32_t>(sizeof(Int8Bounds)) + kInt8Step - 1) / kInt8Step *
           kInt8Step;
}

/// A shard, consecutive rows of the model on one device, as kernels see it. All pointers are device
/// memory. «Local» row numbers count from 0 at the shard's first row; numbers here and in
/// DeviceQuery are local unless they say otherwise.
struct DeviceModel {
    /// (rows, stride), each vector padded with zeros, 16-byte aligned. With `vectors_on_host`, it
    /// is page-locked host memory without padding.
    const float* vectors = nullptr;
    double* norms = nullptr;                ///< (rows)
    std::uint32_t* ranks = nullptr;         ///< (rows)
    std::uint32_t* rows_by_rank = nullptr;  ///< (rows) local rows in ascending order of their
                                            ///< ranks; nullptr: there are none
    ListMask* memberships = nullptr;        ///< (rows) the lists that each row is in;
                                            ///< nullptr: there is no room for lists
    std::uint32_t* list_rows = nullptr;     ///< local rows of short lists, in ascending
                                            ///< order, one list after the other
    std::uint32_t* uncovered = nullptr;     ///< (uncovered_count) rows whose norm the bounds
                                            ///< (kernels/bounds.hpp) do not cover
    std::uint32_t rows = 0;
    std::uint32_t first_row = 0;  ///< the shard's first row, as a row number of the model
    std::uint32_t dim = 0;
    std::uint32_t stride = 0;  ///< floats from one vector to the next: dim rounded up to
                               ///< kStrideFloats, or dim with vectors_on_host
    std::uint32_t units = 0;   ///< rows / kUnitRows, rounded up
    std::uint32_t uncovered_count = 0;
    bool vectors_on_host = false;
    DevicePlane plane;
    DeviceInt8Codes int8_codes;
    DeviceCodeTiles code_tiles;
};

inline constexpr std::uint32_t kNotARow = ~std::uint32_t{0};

/// A query as a shard's kernels need it, without its vector.
struct DeviceQuery {
    double norm = 0;                    ///< canonical norm of the query's vector
    double min_score = 0;               ///< may be -infinity
    std::uint32_t k_plus_excluded = 0;  ///< k + number of excluded rows, the number of rows that
                                        ///< must reach the floor
    std::uint32_t k = 0;                ///< hits to return
    std::uint32_t rank_below = 0;       ///< eligible if rank < rank_below; 2^32 - 1: all ranks
    std::uint32_t first = 0, last = 0;  ///< eligible if first <= row < last
    ListMask within = 0;                ///< eligible if in all of these lists
    ListMask without = 0;               ///< and in none of these
    /// For launch_few_rows: a list that is in `within` is `listed` elements of
    /// DeviceModel::list_rows from here on. 2^32 - 1: there is none.
    std::uint32_t list_begin = 0;
    std::uint32_t listed = ~std::uint32_t{0};
    /// The excluded rows, sorted unless for launch_code_pass, are `excluded_count` elements of
    /// DeviceQueries::excluded from here on.
    std::uint32_t excluded_begin = 0;
    std::uint32_t excluded_count = 0;
    /// For launch_code_pass: the local row that the query's vector is, with 0 for −0; kNotARow: the
    /// vector is in DeviceQueries::raw.
    std::uint32_t vector_row = kNotARow;
    /// For launch_code_pass: the number of the filter's marks in CodeWorkspace::marks, or kNoMarks.
    std::uint32_t marks = kNoMarks;
    // Facts about the query's digits, for launch_plane_query:
    UpperFacts upper;
    planes::DigitFacts digits;
};

/// The queries of a pass. All pointers are device memory, except those of `host`.
struct DeviceQueries {
    const DeviceQuery* queries = nullptr;     ///< (count)
    float* raw = nullptr;                     ///< (count, stride) vectors, padded with zeros
    const std::uint32_t* excluded = nullptr;  ///< excluded rows of all queries
    const std::int8_t* digits = nullptr;      ///< for launch_plane_query: (count, steps, 16),
                                              ///< planes::PlaneQuery::bytes
    std::uint32_t count = 0;
    bool any_filter = false;                ///< whether ranks or lists exclude rows of any query
    std::uint32_t max_k_plus_excluded = 0;  ///< the largest `k_plus_excluded`
    std::uint32_t max_k = 0;                ///< the largest `k`
    bool all_rows = true;                   ///< whether every query's range is the whole shard
    /// For launch_code_pass: a query of each filter that is marked.
    std::uint32_t marked[kMaxMarkedFilters] = {};
    std::uint32_t marked_count = 0;
    /// The same arrays in host memory. A launch reads them before it returns.
    struct Host {
        const DeviceQuery* queries = nullptr;
        const float* raw = nullptr;
        const std::uint32_t* excluded = nullptr;
        const std::int8_t* digits = nullptr;
    } host;
};

/// Indexes of a query's counters in Workspace::counters.
enum QueryCounter : std::uint32_t {
    kFoundCounter,
    kRescoredCounter,
    kBlocksDoneCounter,
    kRuledOutCounter,  ///< number of rows that int8 codes ruled out
    kArrivedCounter,   ///< number of blocks that have written their candidates' scores
    kListedCounter,    ///< number of rows that launch_score lists
    kUnitCounter,      ///< number of units that warps have taken from those that are no one's own
    kCounters,
};

/// A found row and its canonical score.
struct Found {
    double score = 0;
    std::uint32_t row = 0;  ///< local
    std::uint32_t unused = 0;
};

/// What a launch reports about a query, besides its hits.
struct DeviceAnswer {
    double floor = 0;  ///< eligible rows that were not rescored have canonical scores below this
    std::uint32_t hits = 0;       ///< min(k, found), or 0 after an overflow
    std::uint32_t found = 0;      ///< found rows; more than kFoundCapacity: overflow
    std::uint32_t rescored = 0;   ///< rows whose canonical score was computed
    std::uint32_t survivors = 0;  ///< rows that the bounds did not rule out: the rescored ones,
                                  ///< and those that int8 codes ruled out then
};

/// A row that a pass over code tiles has not ruled out.
struct CodeHit {
    std::uint32_t place;
    std::int32_t sum;  ///< D = Σ c Q (docs/certified-search.md, §9)
};

/// Intermediate results of a pass over code tiles. Device memory.
struct CodeWorkspace {
    std::int8_t* digits = nullptr;        ///< (kMaxCodePass, code_tiles.width), in blocks as
                                          ///< code_tiles.hpp describes
    planes::DigitFacts* facts = nullptr;  ///< (kMaxCodePass)
    double* floors = nullptr;             ///< (kMaxCodePass)
    Int8SumCutoff* cutoffs = nullptr;     ///< (kMaxCodePass)
    float* keys = nullptr;    ///< (kMaxCodePass, code_sample_keys(tiles)) lower bounds of
                              ///< scores, each of another row
    CodeHit* kept = nullptr;  ///< (kMaxCodePass, kMaxKept)
    std::uint32_t* kept_counts = nullptr;  ///< (kMaxCodePass) of `kept`; more: overflow
    /// (kMaxMarkedFilters, tiles, kKeysOfTile) the rows that a filter admits: bit r of a word is
    /// row r of the thread that holds the sums of these rows (place_of)
    std::uint32_t* marks = nullptr;
    std::uint32_t* counts = nullptr;  ///< (code_lists) number of rows appended to each list
    CodeHit* lists = nullptr;         ///< (code_lists, kCodeListRoom); each thread that multiplies
                                      ///< has its own, so that it appends without atomics
};

/// Intermediate results of launch_few_rows. Device memory.
struct FewWorkspace {
    Found* best = nullptr;            ///< (kMaxFewBlocks, kMaxBatchHits) of each block
    std::uint32_t* counts = nullptr;  ///< (kMaxFewBlocks) of `best`
    std::uint32_t* done = nullptr;    ///< (kMaxCodePass) blocks that have ended, 0 between passes
};

/// Intermediate results of a pass, and its answers. `count` is the number of its queries: 1, in
/// launch_score up to kMaxScoredQueries, in launch_plane_pass up to kMaxPlanePass, for `answers`
/// and `hits` more in passes of many queries.
struct Workspace {
    float* maxima = nullptr;            ///< (kMaxScoredQueries, units) device
    double* floors = nullptr;           ///< (kMaxScoredQueries) device
    std::uint32_t* counters = nullptr;  ///< (count, kCounters) device, 0 between passes
    Found* found = nullptr;      ///< device: (count, kFoundCapacity), in launch_plane_pass (count,
                                 ///< kBatchFound)
    double* scores = nullptr;    ///< (rows) device, for ScoreResult::scores: canonical scores, NaN
                                 ///< for rows that are not eligible; for ScorePass::few the
                                 ///< numbers of the listed rows, as uint32
    double* divisors = nullptr;  ///< (rows) device, for a query of several launch_score
    float* candidate_scores = nullptr;  ///< (count, kMaxCandidates) device, for plane_query and
                                        ///< plane_pass: canonical scores of the best rows of their
                                        ///< blocks; in plane_pass a third for each floor
    float* uppers = nullptr;  ///< device, for plane_query where a block's shared memory does not
                              ///< hold its bounds: (blocks, PlaneGrid::block_bounds)
    CodeWorkspace code;
    FewWorkspace few;
    DeviceAnswer* answers = nullptr;  ///< (count) page-locked host memory
    Found* hits = nullptr;            ///< (count, kMaxHits) page-locked host memory; more in
                                      ///< passes of many queries
};

/// The number of blocks for a launch in which each block handles `block_rows` rows per round of its
/// loop: `wanted`, or fewer if kMaxRoundRows requires that.
constexpr std::uint32_t blocks_of_rounds(std::uint32_t wanted, std::uint32_t block_rows) {
    const std::uint32_t max_blocks = kMaxRoundRows / block_rows;
    return wanted < max_blocks ? wanted : max_blocks;
}

/// Properties of a device that launches depend on. Read once.
struct DeviceShape {
    int processors = 0;                      ///< streaming multiprocessors
    std::size_t shared_bytes = 0;            ///< shared memory that one block may have
    std::size_t shared_bytes_processor = 0;  ///< shared memory of a multiprocessor
    bool integer_products = false;           ///< has int8 tensor cores for tiles of 16 x 8 x 32:
                                             ///< compute capability 8.0 and up
    bool wgmma = false;  ///< has products of whole warpgroups, and so has the code: compute
                         ///< capability 9.0, and wgmma_is_built()
    bool early_launches = false;  ///< a kernel may start before the one before it ends, and the
                                  ///< code waits for that: compute capability 9.0 and up, and
                                  ///< early_launch_is_built()
};

/// Loads every kernel onto the current device, so that no query has to wait for that or fails
/// because of it. Error: cudaErrorNoKernelImageForDevice, if this build has no code for the device.
cudaError_t load_kernels();
/// Load the kernels of one source file each.
cudaError_t load_build_code_tiles_kernels();
cudaError_t load_build_int8_codes_kernels();
cudaError_t load_code_multiply_mma_kernels();
cudaError_t load_code_pass_kernels();
cudaError_t load_few_rows_kernels();
cudaError_t load_plane_pass_kernels();
cudaError_t load_plane_query_kernels();
cudaError_t load_score_kernels();

/// Whether the code for the current device was built for compute capability 9.0 and up.
bool early_launch_is_built();
/// Whether this build has the products of code tiles for the current device. Loads them onto it.
bool wgmma_is_built();

// Every launch_ function below enqueues on `stream` and returns at once, with the launch's error.

/// Whether launch_plane_query can find the floor of a query with this DeviceQuery::k_plus_excluded:
/// the shard has a plane, and the launch has enough blocks.
bool plane_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                  const DeviceShape& shape);

/// Whether launch_plane_query reads the only query from `queries.host` and passes it to its kernel
/// as a parameter. That saves a small copy to the device, some microseconds.
bool plane_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries);

/// Answers a query that plane_serves by the plane. Writes its answer and hits:
///  - floor = a canonical score that `k_plus_excluded` rows reach (-infinity, if it found fewer
///    rows), or min_score if that is more;
///  - the rescored rows are those whose upper bound reaches the floor and the uncovered rows; those
///    that int8 codes rule out count as survivors only;
///  - the found rows are the eligible rescored ones with canonical score >= floor;
///  - the hits are the k best found rows; none if more than kFoundCapacity were found.
cudaError_t launch_plane_query(const DeviceModel& model, const DeviceQueries& queries,
                               const Workspace& work, const DeviceShape& shape,
                               cudaStream_t stream);

/// Maximum number of queries of one launch_plane_pass; 0: it cannot serve on that device.
/// `int8_stride`: bytes of a row's int8 codes, in code tiles or DeviceInt8Codes; 0: there are none.
std::uint32_t plane_pass_capacity(std::size_t dim, std::uint32_t int8_stride,
                                  const DeviceShape& shape);

/// As plane_serves, for launch_plane_pass.
bool plane_pass_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                       const DeviceShape& shape);

/// Writes the int8 codes of every row to `model.int8_codes`.
cudaError_t launch_build_int8_codes(const DeviceModel& model, cudaStream_t stream);

/// As plane_query_fits_parameters, for launch_plane_pass.
bool plane_pass_fits_parameters(const DeviceModel& model, const DeviceQueries& queries);

/// Answers up to kMaxPlanePass queries that plane_pass_serves by the plane. Writes answers, and up
/// to kMaxBatchHits hits per query, as launch_plane_query does. A query overflows if more rows
/// reach its first floor than there is room for, or more than kBatchFound its last. Of `queries` it
/// reads only `queries`, `raw` and `excluded`.
cudaError_t launch_plane_pass(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Maximum number of queries of one launch_code_pass.
std::uint32_t code_pass_capacity();

/// Number of lists of CodeWorkspace.
std::size_t code_lists(const DeviceShape& shape);

/// Sets `bytes` to the device memory that launch_build_code_tiles and launch_sort_by_rank need
/// until they are done, on the current device.
cudaError_t code_tiles_scratch_bytes(std::uint32_t rows, std::size_t& bytes);

/// Writes the code tiles of all rows to `model.code_tiles`. `scratch` is device memory of
/// code_tiles_scratch_bytes.
cudaError_t launch_build_code_tiles(const DeviceModel& model, std::byte* scratch,
                                    std::size_t scratch_bytes, cudaStream_t stream);

/// Writes rows_by_rank of the shard to `rows`. `scratch` is as for launch_build_code_tiles.
cudaError_t launch_sort_by_rank(const DeviceModel& model, std::byte* scratch,
                                std::size_t scratch_bytes, std::uint32_t* rows,
                                cudaStream_t stream);

/// Answers up to kMaxCodePass queries over all rows of a shard with code tiles. Writes answers, and
/// the hits of query q from hits[q * max_k] on, since the host reads dense memory faster. A query's
/// k_plus_excluded is at most kMaxBatchKPlusExcluded. Of `queries` it reads only `queries`,
/// `raw` and `excluded`; to `raw` it writes the vectors that are rows of the shard.
cudaError_t launch_code_pass(const DeviceModel& model, const DeviceQueries& queries,
                             const Workspace& work, const DeviceShape& shape, cudaStream_t stream);

/// Answers up to kMaxCodePass queries whose filters leave few rows, kMaxFewRows or fewer, by the
/// canonical scores of these rows. Writes answers and hits as launch_code_pass does; the floor is
/// -infinity. k, k_plus_excluded and what it reads of `queries` are as there. The shard has
/// rows_by_rank.
cudaError_t launch_few_rows(const DeviceModel& model, const DeviceQueries& queries,
                            const Workspace& work, cudaStream_t stream);

/// What launch_score writes.
enum class ScoreResult : std::uint32_t {
    maxima,  ///< answers and hits, as launch_plane_query does, from maxima
    counts,  ///< to DeviceAnswer::found, the number of eligible rows that come before the target
    scores,  ///< Workspace::scores, of a launch with one query
};

/// A query of launch_score. Its vectors are `queries.raw` from number `begin` on, their norms those
/// of `queries.queries`; all else that `queries.queries` tells is that of its first vector.
struct ScoredQuery {
    std::uint32_t begin = 0;
    std::uint32_t positives_end = 0;  ///< vectors from here on are negatives
    std::uint32_t end = 0;            ///< vectors from here on are the next query's
    bool is_product = false;          ///< 3CosMul; otherwise the cosine with the only vector
    Found target;                     ///< for ScoreResult::counts, with a row number of the model
};

/// The queries of one launch_score, which have the same result.
struct ScorePass {
    ScoredQuery queries[kMaxScoredQueries];
    std::uint32_t count = 0;
    std::uint32_t first_unit = 0;  ///< units that no query's range leaves out altogether
    std::uint32_t last_unit = 0;
    ScoreResult result = ScoreResult::maxima;
    /// Of ScoreResult::counts: lists the rows that a query's rank, range and lists leave, and
    /// scores these alone; DeviceAnswer::rescored is their number. Pays where they are few.
    bool few = false;
    /// A query with more vectors than a launch takes has several. Each but the first continues what
    /// Workspace::scores and divisors hold; each but the last goes on, and leaves it there.
    bool continues = false;
    bool goes_on = false;
};

/// Scores all rows of some units, or those that it lists, canonically, each with up to
/// kMaxScoreVectors vectors. Rows that
/// a query's rank, range, lists or min_score leave out have no maximum and no count, and NaN as
/// score. Excluded rows are not counted and no hits, but have a maximum and a score. The rescored
/// rows are those of every unit whose maximum reaches the floor.
cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries,
                         const ScorePass& pass, const Workspace& work, const DeviceShape& shape,
                         cudaStream_t stream);

/// Copies `rows` vectors of `dim` floats each from `packed` to `padded`, `stride` floats apart,
/// with zeros between.
cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim,
                            std::uint32_t stride, float* padded, cudaStream_t stream);

}  // namespace gloved::kernels::cuda
