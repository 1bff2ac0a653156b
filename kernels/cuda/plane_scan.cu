// One query by the 4-bit plane: an upper bound for every row, then a threshold from the canonical
// scores of the rows with the best estimates. `select` does the rest. docs/certified-search.md has
// the proof.
//
// Expected limit: memory, an eighth of the float32 bytes. A warp takes 32 rows, two groups of the
// plane, at a time, 16 bytes a load. A thread sums four rows in every eighth step; after seven
// exchanges each thread has the whole sum of one row.
#include <cstring>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/radix_select.cuh"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerProcessor = 2;
constexpr unsigned kFloorThreads = 1024;
/// Steps that a warp loads with one load a thread.
constexpr unsigned kStepsAtOnce = 8;
constexpr std::uint32_t kCodeMask = 0x0F0F0F0FU;
constexpr unsigned kAnySteps = 0;
/// Rows whose canonical scores make the threshold: more than k and the excluded rows, since the
/// plane's estimates may order them otherwise.
constexpr std::uint32_t kMinCandidates = 64;
constexpr std::uint32_t kCandidatesPerHit = 2;
constexpr std::uint32_t kMaxCandidates = 2048;
/// Most steps of a query that is passed as a parameter.
constexpr unsigned kInlineSteps = 38;
constexpr unsigned kInlineFloats = kInlineSteps * planes::kStepDims;

/// A query as a parameter of plane_scan; where not `usable`, the query is on the device.
struct ScanQuery {
    DeviceQuery query;
    uint4 digits[kInlineSteps];
    bool usable = false;
};

/// A query as a parameter of plane_floor.
struct FloorQuery {
    DeviceQuery query;
    float raw[kInlineFloats];
    bool usable = false;
};

/// Adds four products of bytes, codes and digits, to `sum`.
__device__ inline int dot4(std::uint32_t codes, std::uint32_t digits, int sum) {
    return __dp4a(static_cast<int>(codes), static_cast<int>(digits), sum);
}

/// Writes an upper bound of every row, and the row with the best estimate of each warp. kLoads:
/// loads of kStepsAtOnce steps a row, or kAnySteps to read their number from the model.
template <unsigned kLoads>
__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void plane_scan(
    DeviceModel model, const DeviceQuery* __restrict__ queries,
    const uint4* __restrict__ digits_on_device, ScanQuery inlined, Workspace work) {
    constexpr unsigned kQuads = 4;  // loads of 16 bytes in a step: four rows each
    extern __shared__ uint4 shared_digits[];
    let_next_start();
    const DevicePlane& plane = model.plane;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned step_of_lane = lane / kQuads;
    const DeviceQuery query = inlined.usable ? inlined.query : queries[0];
    const std::uint32_t group_vectors = (plane.steps + 1) * kQuads;

    // x, y: the high digits of components 0–3 and 4–7 of a step; z, w: the low ones.
    uint4 digits[kLoads > 0 ? kLoads : 1];
    if constexpr (kLoads == kAnySteps) {
        for (unsigned i = threadIdx.x; i < plane.steps; i += kThreads) {
            shared_digits[i] = inlined.usable ? inlined.digits[i] : digits_on_device[i];
        }
        __syncthreads();
    } else {
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            const unsigned step = step_of_lane + j * kStepsAtOnce;
            digits[j] = uint4{0, 0, 0, 0};
            if (step < plane.steps)
                digits[j] = inlined.usable ? inlined.digits[step] : digits_on_device[step];
        }
    }

    // Which of a unit's 32 rows this thread has after the exchanges below.
    const unsigned own = lane % kQuads * 4 + (lane >> 4 & 1) * 2 + (lane >> 3 & 1);
    const bool second = (lane & 4) != 0;
    const unsigned row_in_unit = own + (second ? planes::kGroupRows : 0);

    const unsigned warps = gridDim.x * (kThreads / kWarp);
    const unsigned warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    const std::uint32_t first_unit = query.first / kGroupRows;
    const std::uint32_t last_unit =
        query.last > query.first ? (query.last - 1) / kGroupRows + 1 : first_unit;
    float best = minus_infinity();
    std::uint32_t best_row = 0;
    for (std::uint32_t unit = first_unit + warp; unit < last_unit; unit += warps) {
        const std::uint32_t group = unit * 2;
        const bool has_second = group + 1 < plane.groups;
        const auto* const from = reinterpret_cast<const uint4*>(plane.bytes) +
                                 static_cast<std::size_t>(group) * group_vectors;
        const std::uint32_t to_second = has_second ? group_vectors : 0;
        int high[2][4] = {};
        int low[2][4] = {};
        const auto add = [&](unsigned g, const uint4& codes, const uint4& by) {
            const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
            for (unsigned r = 0; r < 4; ++r) {
                const std::uint32_t first = words[r] & kCodeMask;
                const std::uint32_t second_half = words[r] >> 4 & kCodeMask;
                high[g][r] = dot4(second_half, by.y, dot4(first, by.x, high[g][r]));
                low[g][r] = dot4(second_half, by.w, dot4(first, by.z, low[g][r]));
            }
        };
        // The bounds of this thread's own row, loaded together with its codes.
        const auto* const bounds = reinterpret_cast<const std::uint16_t*>(
            from + (second ? to_second : 0) + plane.steps * kQuads);
        const std::uint16_t projection = bounds[own];
        const std::uint16_t residual = bounds[planes::kGroupRows + own];
        if constexpr (kLoads == kAnySteps) {
            for (unsigned step = step_of_lane; step < plane.steps; step += kStepsAtOnce) {
                const uint4 by = shared_digits[step];
                const unsigned at = step * kQuads + lane % kQuads;
                add(0, __ldcs(from + at), by);
                add(1, __ldcs(from + to_second + at), by);
            }
        } else {
            uint4 codes[2][kLoads];
#pragma unroll
            for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
                for (unsigned j = 0; j < kLoads; ++j) {
                    const unsigned at = lane + j * kWarp;
                    codes[g][j] = at < plane.steps * kQuads ? __ldcs(from + g * to_second + at)
                                                            : uint4{0, 0, 0, 0};
                }
            }
#pragma unroll
            for (unsigned j = 0; j < kLoads; ++j) {
#pragma unroll
                for (unsigned g = 0; g < 2; ++g) add(g, codes[g][j], digits[j]);
            }
        }
        int sums[2][4];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
            for (unsigned r = 0; r < 4; ++r) sums[g][r] = high[g][r] * 128 + low[g][r];
        }
        // Eight threads share four rows of both groups: each exchange halves a thread's rows.
        int half[2][2];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
            for (unsigned r = 0; r < 2; ++r) {
                const bool back = (lane & 16) != 0;
                const int give = back ? sums[g][r] : sums[g][r + 2];
                half[g][r] =
                    (back ? sums[g][r + 2] : sums[g][r]) + __shfl_xor_sync(kWholeWarp, give, 16);
            }
        }
        int quarter[2];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
            const bool odd = (lane & 8) != 0;
            const int give = odd ? half[g][0] : half[g][1];
            quarter[g] = (odd ? half[g][1] : half[g][0]) + __shfl_xor_sync(kWholeWarp, give, 8);
        }
        const int give = second ? quarter[0] : quarter[1];
        const int sum = (second ? quarter[1] : quarter[0]) + __shfl_xor_sync(kWholeWarp, give, 4);

        const std::uint32_t row = unit * kGroupRows + row_in_unit;
        float upper = minus_infinity();
        // Uncovered rows have neither projection nor residual.
        if (row < model.rows && (projection | residual) != 0 && (!second || has_second) &&
            admits(query, model, row)) {
            float estimate = 0;
            upper = planes::row_upper(sum, projection, residual, query.upper, estimate);
            if (estimate > best) {
                best = estimate;
                best_row = row;
            }
        }
        work.uppers[row] = upper;  // padded to whole units
    }
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
        const float other = __shfl_xor_sync(kWholeWarp, best, distance);
        const std::uint32_t other_row = __shfl_xor_sync(kWholeWarp, best_row, distance);
        if (other > best || (other == best && other_row < best_row)) {
            best = other;
            best_row = other_row;
        }
    }
    if (lane == 0) {
        work.warp_maxima[warp] = best;
        work.warp_rows[warp] = best_row;
    }
}

/// Finds the floor by canonical scores of the best rows in warp_rows: the k_plus_excluded-th of
/// them is a score that `k_plus_excluded` eligible rows reach. One block.
__global__ __launch_bounds__(kFloorThreads) void plane_floor(DeviceModel model,
                                                             DeviceQueries queries,
                                                             FloorQuery inlined,
                                                             std::uint32_t warps, Workspace work) {
    constexpr unsigned kTeams = kFloorThreads / kCanonicalLanes;
    __shared__ float shared_raw[kInlineFloats];
    __shared__ std::uint32_t rows[kMaxCandidates];
    __shared__ double scores[kMaxCandidates];
    __shared__ std::uint32_t count;
    let_next_start();
    if (inlined.usable) {
        for (unsigned i = threadIdx.x; i < model.dim; i += kFloorThreads)
            shared_raw[i] = inlined.raw[i];
    }
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    wait_for_previous();
    const DeviceQuery query = inlined.usable ? inlined.query : queries.queries[0];
    const float* const raw = inlined.usable ? shared_raw : queries.raw;
    const std::uint32_t tried =
        min(max(kMinCandidates, kCandidatesPerHit * query.k_plus_excluded), kMaxCandidates);
    const float least = kth_largest_lower_bound<kFloorThreads, 4, kMinGuessBit>(
        work.warp_maxima, warps, min(tried, warps));
    for (std::uint32_t i = threadIdx.x; i < warps; i += kFloorThreads) {
        const float estimate = work.warp_maxima[i];
        if (!(estimate >= least) || estimate == minus_infinity()) continue;
        const std::uint32_t at = atomicAdd(&count, 1U);
        // Beyond it are equal estimates; any of them serves.
        if (at < kMaxCandidates) rows[at] = work.warp_rows[i];
    }
    __syncthreads();
    const std::uint32_t candidates = min(count, kMaxCandidates);
    const unsigned part = threadIdx.x % kCanonicalLanes;
    for (std::uint32_t base = 0; base < candidates; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const bool active = i < candidates;
        const std::uint32_t row = active ? rows[i] : 0;
        const double norm = active ? model.norms[row] : 0;
        const double dot = row_dot(model, raw, row, part, active);
        if (active && part == 0) scores[i] = score_from_dot(dot, query.norm, norm);
    }
    // The default, if fewer than `k_plus_excluded` candidates have a score that is a number.
    if (threadIdx.x == 0)
        work.floors[0] = fmax(static_cast<double>(minus_infinity()), query.min_score);
    __syncthreads();
    // A warp ranks a candidate by the number of those before it.
    const unsigned lane = threadIdx.x % kWarp;
    for (std::uint32_t i = threadIdx.x / kWarp; i < candidates; i += kFloorThreads / kWarp) {
        const double mine = scores[i];
        if (isnan(mine)) continue;  // a damaged row
        std::uint32_t before = 0;
        for (std::uint32_t j = lane; j < candidates; j += kWarp) {
            before += scores[j] > mine || (scores[j] == mine && j < i) ? 1 : 0;
        }
        if (warp_sum(before) == query.k_plus_excluded - 1 && lane == 0)
            work.floors[0] = fmax(mine, query.min_score);
    }
}

template <unsigned kLoads>
cudaError_t run_scan(const DeviceModel& model, const DeviceQueries& queries,
                     const ScanQuery& inlined, const Workspace& work, std::uint32_t warps,
                     cudaStream_t stream) {
    const std::size_t shared = kLoads == kAnySteps ? model.plane.steps * sizeof(uint4) : 0;
    plane_scan<kLoads><<<warps / (kThreads / kWarp), kThreads, shared, stream>>>(
        model, queries.queries, reinterpret_cast<const uint4*>(queries.digits), inlined, work);
    return cudaGetLastError();
}

}  // namespace

cudaError_t load_plane_scan_kernels() {
    return load_each(plane_scan<1>, plane_scan<2>, plane_scan<3>, plane_scan<4>, plane_scan<5>,
                     plane_scan<kAnySteps>, plane_floor);
}

namespace {

std::uint32_t plane_warps(const DeviceModel& model, const DeviceShape& shape) {
    constexpr unsigned kWarps = kThreads / kWarp;
    const unsigned wanted = (model.groups + kWarps - 1) / kWarps;
    return min(min(wanted, static_cast<unsigned>(shape.processors) * kBlocksPerProcessor),
               kMaxWarps / kWarps) *
           kWarps;
}

}  // namespace

bool plane_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                  const DeviceShape& shape) {
    return model.plane.bytes != nullptr && k_plus_excluded * kCandidatesPerHit <= kMaxCandidates &&
           k_plus_excluded * kCandidatesPerHit <= plane_warps(model, shape);
}

cudaError_t launch_plane_scan(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape,
                              cudaStream_t stream) {
    const std::uint32_t warps = plane_warps(model, shape);
    ScanQuery scan;
    FloorQuery floor;
    if (plane_query_fits_parameters(model, queries)) {
        scan.query = floor.query = queries.host.queries[0];
        std::memcpy(scan.digits, queries.host.digits, model.plane.steps * sizeof(uint4));
        std::memcpy(floor.raw, queries.host.raw, model.dim * sizeof(float));
        scan.usable = floor.usable = true;
    }
    const auto run = [&] {
        switch ((model.plane.steps + kStepsAtOnce - 1) / kStepsAtOnce) {
            case 1:
                return run_scan<1>(model, queries, scan, work, warps, stream);
            case 2:
                return run_scan<2>(model, queries, scan, work, warps, stream);
            case 3:
                return run_scan<3>(model, queries, scan, work, warps, stream);
            case 4:
                return run_scan<4>(model, queries, scan, work, warps, stream);
            case 5:
                return run_scan<5>(model, queries, scan, work, warps, stream);
            default:
                return run_scan<kAnySteps>(model, queries, scan, work, warps, stream);
        }
    };
    if (const auto error = run(); error != cudaSuccess) return error;
    return launch_early(shape, plane_floor, 1, kFloorThreads, 0, stream, model, queries, floor,
                        warps, work);
}

}  // namespace gloved::kernels::cuda
