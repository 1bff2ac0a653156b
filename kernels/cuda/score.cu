// The canonical pass: float64 scores of every row, for queries that no codes can answer, up to
// eight at a time (launches.hpp). For counts whose filters leave few rows, those are listed first.
//
// Expected limit: memory for one vector on data-centre GPUs; for many, and on other GPUs, float64
// arithmetic and the conversions to it. A warp takes a unit of rows. Its teams multiply some rows
// with some vectors at once, so that each component is loaded and converted once for them all. Then
// each thread ends the scores of one row.
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/order_hits.cuh"
#include "kernels/cuda/radix_select.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kTeamsPerWarp = kWarp / kCanonicalLanes;
constexpr unsigned kBlocksPerProcessor = 8;
/// How many vectors, rows and components of a row a team multiplies together. With more rows than
/// these, too few warps fit onto a multiprocessor (docs/performance-history.md).
template <unsigned kTheVectors, unsigned kTheRows, unsigned kTheComponents>
struct Tile {
    static constexpr unsigned kVectors = kTheVectors;
    static constexpr unsigned kRows = kTheRows;
    static constexpr unsigned kComponents = kTheComponents;  ///< of a thread
    static constexpr std::uint32_t kChunk = kComponents * kCanonicalLanes;
    static_assert(kUnitRows % (kRows * kTeamsPerWarp) == 0 && kComponents % kHostComponents == 0);
};
using OneVector = Tile<1, 2, 8>;
using FourVectors = Tile<4, 4, 4>;
using EightVectors = Tile<8, 2, 8>;
static_assert(kUnitRows == kWarp);

constexpr unsigned kThresholdThreads = 1024;
constexpr unsigned kCollectThreads = 256;
constexpr unsigned kCollectBlocks = 4;  // a processor
/// Values that a block's threads keep for the radix select. The kMaxKPlusExcluded-th largest of so
/// many is hardly below that of all units.
constexpr unsigned kMaximaApart = 8192;

/// The score of a query and a row, while it takes in the query's vectors one by one.
struct RunningScore {
    double value = 1;  ///< the cosine, or the product of the positives' factors
    double divisor = 1;

    __device__ void take(const ScoredQuery& query, std::uint32_t vector, double cosine) {
        if (!query.is_product) {
            value = cosine;
            return;
        }
        double& product = vector < query.positives_end ? value : divisor;
        product = __dmul_rn(product, cosmul_part(cosine));
    }
    __device__ double score(const ScoredQuery& query) const {
        return query.is_product ? cosmul_score(value, divisor) : value;
    }
};

/// Adds the products of a chunk of components, from `begin` on, of a team's rows and of vectors.
/// kWhole: the chunk ends before the vectors do, and the rows are in device memory.
template <class Tile, bool kWhole>
__device__ void multiply_chunk(const DeviceModel& model, const float* const (&rows)[Tile::kRows],
                               const float* const (&vectors)[Tile::kVectors], std::uint32_t begin,
                               unsigned lane, double (&sums)[Tile::kRows][Tile::kVectors]) {
    float components[Tile::kRows][Tile::kComponents];
#pragma unroll
    for (unsigned r = 0; r < Tile::kRows; ++r) {
        if constexpr (kWhole) {
#pragma unroll
            for (unsigned j = 0; j < Tile::kComponents; ++j)
                components[r][j] = rows[r][begin + lane + j * kCanonicalLanes];
        } else {
            load_components(model, rows[r], begin, lane, true, components[r]);
        }
    }
#pragma unroll
    for (unsigned j = 0; j < Tile::kComponents; ++j) {
        std::uint32_t i = begin + lane + j * kCanonicalLanes;
        // Behind the end the rows' components are 0, whatever they are multiplied with.
        if constexpr (!kWhole) i = i < model.dim ? i : model.dim - 1;
        double of_rows[Tile::kRows];
#pragma unroll
        for (unsigned r = 0; r < Tile::kRows; ++r) of_rows[r] = components[r][j];
#pragma unroll
        for (unsigned v = 0; v < Tile::kVectors; ++v) {
            const double of_vector = vectors[v][i];
            // A product of floats is exact, so that a fused operation gives the same bits.
#pragma unroll
            for (unsigned r = 0; r < Tile::kRows; ++r)
                sums[r][v] = __fma_rn(of_rows[r], of_vector, sums[r][v]);
        }
    }
}

/// The rows that a launch scores, by their places: all rows of the shard, or those of a list, which
/// is not empty.
template <bool kListed>
struct ScoredRows {
    const std::uint32_t* listed;
    std::uint32_t count;

    __device__ ScoredRows(const DeviceModel& model, const Workspace& work)
        : listed(reinterpret_cast<const std::uint32_t*>(work.scores)),
          count(kListed ? __ldcg(&work.counters[kListedCounter]) : model.rows) {}
    __device__ std::uint32_t at(std::uint32_t place) const {
        return kListed ? listed[place] : place;
    }
};

/// Writes dots[v][r], the canonical dot products of the vectors from `first_vector` on with the
/// rows of a unit of places. Behind the last row and the last vector it repeats these. One warp
/// calls it.
template <class Tile, bool kListed>
__device__ void multiply(const DeviceModel& model, const DeviceQueries& queries,
                         const ScoredRows<kListed>& scored, std::uint32_t unit,
                         std::uint32_t first_vector, double (*dots)[kUnitRows]) {
    const unsigned lane = threadIdx.x % kCanonicalLanes;
    const unsigned team = threadIdx.x % kWarp / kCanonicalLanes;
    const std::uint32_t whole =
        loads_from_host(model) ? 0 : model.dim / Tile::kChunk * Tile::kChunk;
    const float* vectors[Tile::kVectors];
#pragma unroll
    for (unsigned v = 0; v < Tile::kVectors; ++v)
        vectors[v] =
            queries.raw + std::size_t{min(first_vector + v, queries.count - 1)} * model.stride;
    for (unsigned first = 0; first < kUnitRows; first += Tile::kRows * kTeamsPerWarp) {
        const float* rows[Tile::kRows];
        double sums[Tile::kRows][Tile::kVectors];
#pragma unroll
        for (unsigned r = 0; r < Tile::kRows; ++r) {
            const std::uint32_t place = unit * kUnitRows + first + r * kTeamsPerWarp + team;
            rows[r] = row_of(model, scored.at(min(place, scored.count - 1)));
#pragma unroll
            for (double& sum : sums[r]) sum = 0;
        }
        for (std::uint32_t begin = 0; begin < whole; begin += Tile::kChunk)
            multiply_chunk<Tile, true>(model, rows, vectors, begin, lane, sums);
        for (std::uint32_t begin = whole; begin < model.dim; begin += Tile::kChunk)
            multiply_chunk<Tile, false>(model, rows, vectors, begin, lane, sums);
#pragma unroll
        for (unsigned v = 0; v < Tile::kVectors; ++v) {
#pragma unroll
            for (unsigned r = 0; r < Tile::kRows; ++r) {
                const double dot = sum_of_team(sums[r][v]);
                if (lane == 0) dots[v][first + r * kTeamsPerWarp + team] = dot;
            }
        }
    }
    __syncwarp();
}

/// What a warp does with the scores of its rows for one query. Each thread has one row, and calls
/// it.
struct ScoreEnd {
    const DeviceModel& model;
    const DeviceQueries& queries;
    const ScorePass& pass;
    const Workspace& work;

    __device__ bool is_eligible(const DeviceQuery& query, std::uint32_t row, double score) const {
        return row < model.rows && admits(query, model, row) && score >= query.min_score;
    }

    /// The largest score of the unit, rounded down, so that it stays a score that is reached.
    __device__ void write_maximum(std::uint32_t q, std::uint32_t row, double score) const {
        const DeviceQuery& query = queries.queries[pass.queries[q].begin];
        const float best =
            warp_max(is_eligible(query, row, score) ? __double2float_rd(score) : minus_infinity());
        if (row % kUnitRows == 0)
            work.maxima[std::size_t{q} * model.units + row / kUnitRows] = best;
    }

    /// The number of the warp's rows that come before the query's target.
    __device__ std::uint32_t count_before(std::uint32_t q, std::uint32_t row, double score) const {
        const ScoredQuery& scored = pass.queries[q];
        const DeviceQuery& query = queries.queries[scored.begin];
        const Found mine{score, model.first_row + row, 0};
        const bool before = is_eligible(query, row, score) && mine.row != scored.target.row &&
                            comes_before(mine, scored.target) &&
                            !is_excluded(query, queries.excluded, row);
        return static_cast<std::uint32_t>(__popc(__ballot_sync(kWholeWarp, before)));
    }

    __device__ void store(std::uint32_t row, const RunningScore& running) const {
        if (row >= model.rows) return;
        const DeviceQuery& query = queries.queries[0];
        const double score = running.score(pass.queries[0]);
        work.scores[row] = pass.goes_on ? running.value
                           : is_eligible(query, row, score)
                               ? score
                               : __longlong_as_double(0x7FF8000000000000LL);
        if (pass.goes_on) work.divisors[row] = running.divisor;
    }
};

/// Lists the rows that the rank, range and lists of a query leave, in any order.
__global__ __launch_bounds__(kThreads) void list_rows(DeviceModel model, DeviceQueries queries,
                                                      ScorePass pass, Workspace work) {
    auto* const listed = reinterpret_cast<std::uint32_t*>(work.scores);
    const unsigned lane = threadIdx.x % kWarp;
    for (std::uint32_t unit = pass.first_unit + blockIdx.x * kWarps + threadIdx.x / kWarp;
         unit < pass.last_unit; unit += gridDim.x * kWarps) {
        const std::uint32_t row = unit * kUnitRows + lane;
        bool taken = false;
        for (std::uint32_t q = 0; q < pass.count && row < model.rows; ++q)
            taken = taken || admits(queries.queries[pass.queries[q].begin], model, row);
        const std::uint32_t all = __ballot_sync(kWholeWarp, taken);
        if (all == 0) continue;
        std::uint32_t first = 0;
        if (lane == 0)
            first =
                atomicAdd(&work.counters[kListedCounter], static_cast<std::uint32_t>(__popc(all)));
        first = __shfl_sync(kWholeWarp, first, 0);
        if (taken) listed[first + __popc(all & ((1U << lane) - 1))] = row;
    }
}

/// Scores rows as launch_score says. kListed: those of list_rows.
template <class Tile, bool kListed>
__global__ __launch_bounds__(kThreads, 2) void score(DeviceModel model, DeviceQueries queries,
                                                     ScorePass pass, Workspace work) {
    __shared__ double dots[kWarps][Tile::kVectors][kUnitRows];
    __shared__ std::uint32_t counts[kMaxScoredQueries];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const ScoreEnd end{model, queries, pass, work};
    if (threadIdx.x < kMaxScoredQueries) counts[threadIdx.x] = 0;
    __syncthreads();
    const ScoredRows<kListed> scored(model, work);
    const std::uint32_t first_unit = kListed ? 0 : pass.first_unit;
    const std::uint32_t last_unit =
        kListed ? (scored.count + kUnitRows - 1) / kUnitRows : pass.last_unit;
    for (std::uint32_t unit = first_unit + blockIdx.x * kWarps + warp; unit < last_unit;
         unit += gridDim.x * kWarps) {
        const std::uint32_t place = unit * kUnitRows + lane;
        const std::uint32_t row = place < scored.count ? scored.at(place) : model.rows;
        const double norm = row < model.rows ? model.norms[row] : 0;
        RunningScore running;
        if (pass.continues && row < model.rows) running = {work.scores[row], work.divisors[row]};
        std::uint32_t q = 0;
        for (std::uint32_t begin = 0; begin < queries.count; begin += Tile::kVectors) {
            multiply<Tile>(model, queries, scored, unit, begin, dots[warp]);
            for (std::uint32_t v = begin; v < min(begin + Tile::kVectors, queries.count); ++v) {
                const double dot = dots[warp][v - begin][lane];
                running.take(pass.queries[q], v,
                             score_from_dot(dot, queries.queries[v].norm, norm));
                if (v + 1 < pass.queries[q].end) continue;
                if (pass.result == ScoreResult::scores) {
                    end.store(row, running);
                } else if (pass.result == ScoreResult::maxima) {
                    end.write_maximum(q, row, running.score(pass.queries[q]));
                } else {
                    const std::uint32_t count =
                        end.count_before(q, row, running.score(pass.queries[q]));
                    if (lane == 0 && count > 0) atomicAdd(&counts[q], count);
                }
                running = {};
                ++q;
            }
            __syncwarp();  // all have read the products, which the next vectors overwrite
        }
    }
    if (pass.result != ScoreResult::counts) return;
    __syncthreads();
    if (threadIdx.x < pass.count && counts[threadIdx.x] > 0)
        atomicAdd(&work.counters[threadIdx.x * kCounters + kFoundCounter], counts[threadIdx.x]);
    if (!is_last_block(&work.counters[kBlocksDoneCounter])) return;
    if (threadIdx.x < pass.count) {
        std::uint32_t& count = work.counters[threadIdx.x * kCounters + kFoundCounter];
        work.answers[threadIdx.x] = {static_cast<double>(minus_infinity()), 0, __ldcg(&count),
                                     kListed ? scored.count : 0, 0};
        count = 0;
    }
    if (threadIdx.x == 0) work.counters[kBlocksDoneCounter] = 0;
    if (kListed && threadIdx.x == 0) work.counters[kListedCounter] = 0;
}

/// Finds the floors of the queries from their units' maxima, a block each: the k-th largest
/// maximum of a query, or a little less, or its min_score.
__global__ __launch_bounds__(kThresholdThreads) void threshold(DeviceModel model,
                                                               DeviceQueries queries,
                                                               ScorePass pass, Workspace work) {
    const std::uint32_t q = blockIdx.x;
    const DeviceQuery& query = queries.queries[pass.queries[q].begin];
    const float* const maxima = work.maxima + std::size_t{q} * model.units + pass.first_unit;
    const float reached =
        kth_largest_lower_bound<kThresholdThreads, kMaximaApart / kThresholdThreads>(
            maxima, pass.last_unit - pass.first_unit, query.k_plus_excluded);
    if (threadIdx.x == 0) work.floors[q] = fmax(static_cast<double>(reached), query.min_score);
}

/// Scores the units whose maximum reaches the floor again, one row a team, and finds the rows that
/// reach it. The blocks of a query (blockIdx.y) share its units; the last to end orders what all
/// have found.
__global__ __launch_bounds__(kCollectThreads) void collect(DeviceModel model, DeviceQueries queries,
                                                           ScorePass pass, Workspace all) {
    const std::uint32_t q = blockIdx.y;
    const ScoredQuery& scored_query = pass.queries[q];
    const DeviceQuery query = queries.queries[scored_query.begin];
    Workspace work = all;
    work.counters += q * kCounters;
    work.found += q * kFoundCapacity;
    work.answers += q;
    work.hits += q * kMaxHits;
    const double floor = all.floors[q];
    const float cutoff = __double2float_rd(floor);
    const unsigned lane = threadIdx.x % kCanonicalLanes;

    __shared__ std::uint32_t candidates[kCollectThreads];  // units
    __shared__ std::uint32_t candidate_count;
    std::uint32_t scored = 0;
    for (std::uint32_t begin = pass.first_unit + blockIdx.x * kCollectThreads;
         begin < pass.last_unit; begin += gridDim.x * kCollectThreads) {
        if (threadIdx.x == 0) candidate_count = 0;
        __syncthreads();
        const std::uint32_t unit = begin + threadIdx.x;
        const float maximum = unit < pass.last_unit
                                  ? all.maxima[std::size_t{q} * model.units + unit]
                                  : minus_infinity();
        // -infinity: no row of the unit is eligible, even where the floor is -infinity too.
        if (maximum >= cutoff && maximum != minus_infinity())
            candidates[atomicAdd(&candidate_count, 1U)] = unit;
        __syncthreads();
        for (std::uint32_t base = threadIdx.x / kWarp * kTeamsPerWarp;
             base < candidate_count * kUnitRows; base += kCollectThreads / kWarp * kTeamsPerWarp) {
            const std::uint32_t i = base + threadIdx.x % kWarp / kCanonicalLanes;
            const std::uint32_t row = candidates[i / kUnitRows] * kUnitRows + i % kUnitRows;
            const bool active = row < model.rows && admits(query, model, row);
            const double norm = active ? model.norms[row] : 0;
            RunningScore running;
            for (std::uint32_t v = scored_query.begin; v < scored_query.end; ++v) {
                const float* const raw = queries.raw + std::size_t{v} * model.stride;
                const double dot = row_dot(model, raw, row, lane, active);
                running.take(scored_query, v, score_from_dot(dot, queries.queries[v].norm, norm));
            }
            if (!active || lane > 0) continue;
            ++scored;
            const double score = running.score(scored_query);
            if (!(score >= floor) || is_excluded(query, queries.excluded, row)) continue;
            const std::uint32_t at = atomicAdd(&work.counters[kFoundCounter], 1U);
            if (at < kFoundCapacity) work.found[at] = {score, row, 0};
        }
        __syncthreads();
    }
    scored = warp_sum(scored);
    if (threadIdx.x % kWarp == 0 && scored > 0) atomicAdd(&work.counters[kRescoredCounter], scored);
    if (!is_last_block(&work.counters[kBlocksDoneCounter])) return;
    order_hits<kCollectThreads>(query, floor, work);
}

/// Selects each query's hits from its maxima.
cudaError_t launch_select(const DeviceModel& model, const DeviceQueries& queries,
                          const ScorePass& pass, const Workspace& work, const DeviceShape& shape,
                          cudaStream_t stream) {
    threshold<<<pass.count, kThresholdThreads, 0, stream>>>(model, queries, pass, work);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    // Blocks that fill the device, and no more than there are pieces of work.
    const std::uint32_t units = pass.last_unit - pass.first_unit;
    const std::uint32_t pieces = (units + kCollectThreads - 1) / kCollectThreads;
    const unsigned filling = static_cast<unsigned>(shape.processors) * kCollectBlocks;
    const unsigned blocks = blocks_of_rounds(min(pieces, filling), kCollectThreads * kUnitRows);
    collect<<<dim3(blocks, pass.count), kCollectThreads, 0, stream>>>(model, queries, pass, work);
    return cudaGetLastError();
}

}  // namespace

cudaError_t load_score_kernels() {
    return load_each(score<OneVector, false>, score<FourVectors, false>, score<EightVectors, false>,
                     score<OneVector, true>, score<EightVectors, true>, list_rows, threshold,
                     collect);
}

cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries,
                         const ScorePass& pass, const Workspace& work, const DeviceShape& shape,
                         cudaStream_t stream) {
    const unsigned blocks = blocks_of_rounds(
        static_cast<unsigned>(shape.processors) * kBlocksPerProcessor, kWarps * kUnitRows);
    if (pass.few) {
        list_rows<<<blocks, kThreads, 0, stream>>>(model, queries, pass, work);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
        const auto kernel = queries.count == 1 ? score<OneVector, true> : score<EightVectors, true>;
        kernel<<<blocks, kThreads, 0, stream>>>(model, queries, pass, work);
        return cudaGetLastError();
    }
    const auto kernel = queries.count == 1   ? score<OneVector, false>
                        : queries.count <= 4 ? score<FourVectors, false>
                                             : score<EightVectors, false>;
    kernel<<<blocks, kThreads, 0, stream>>>(model, queries, pass, work);
    if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
    return pass.result == ScoreResult::maxima
               ? launch_select(model, queries, pass, work, shape, stream)
               : cudaSuccess;
}

}  // namespace gloved::kernels::cuda
