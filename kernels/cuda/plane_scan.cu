// One query by the 4-bit plane: an upper bound for every row, then a threshold from the canonical
// scores of the rows with the best estimates. `select` does the rest. docs/certified-search.md has
// the proof. A few queries share the reads of the plane.
//
// Expected limit: memory, an eighth of the float32 bytes. A warp takes 32 rows, two groups of the
// plane, at a time, 16 bytes a load. A thread sums four rows in every eighth step; after seven
// exchanges each thread has the whole sum of one row.
#include <cstddef>
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

/// Sums of digits and codes of four rows of both groups of a unit.
struct Sums {
    int high[2][4] = {};
    int low[2][4] = {};

    __device__ void add(unsigned group, const uint4& codes, const uint4& digits) {
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (unsigned r = 0; r < 4; ++r) {
            const std::uint32_t first = words[r] & kCodeMask;
            const std::uint32_t second = words[r] >> 4 & kCodeMask;
            high[group][r] = dot4(second, digits.y, dot4(first, digits.x, high[group][r]));
            low[group][r] = dot4(second, digits.w, dot4(first, digits.z, low[group][r]));
        }
    }

    /// The sum of the thread's own row. Eight threads share four rows of both groups: each exchange
    /// halves a thread's rows. The whole warp calls it.
    __device__ int of_own_row(unsigned lane) const {
        int sums[2][4];
#pragma unroll
        for (unsigned g = 0; g < 2; ++g) {
#pragma unroll
            for (unsigned r = 0; r < 4; ++r) sums[g][r] = high[g][r] * 128 + low[g][r];
        }
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
        const bool second = (lane & 4) != 0;
        const int give = second ? quarter[0] : quarter[1];
        return (second ? quarter[1] : quarter[0]) + __shfl_xor_sync(kWholeWarp, give, 4);
    }
};

/// Writes an upper bound of every row, and the row with the best estimate of each warp. kLoads:
/// loads of kStepsAtOnce steps a row, or kAnySteps to read their number from the model.
/// kMaxQueries: 1, or kMaxScanQueries for up to so many.
template <unsigned kLoads, unsigned kMaxQueries>
__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void plane_scan(DeviceModel model,
                                                                            DeviceQueries queries,
                                                                            ScanQuery inlined,
                                                                            Workspace work) {
    constexpr unsigned kQuads = 4;  // loads of 16 bytes in a step: four rows each
    constexpr bool kOneInRegisters = kLoads != kAnySteps && kMaxQueries == 1;
    extern __shared__ uint4 shared_digits[];  // (count, steps)
    // As bytes: the type has a constructor.
    __shared__ __align__(alignof(DeviceQuery))
        std::byte shared_queries[kMaxQueries * sizeof(DeviceQuery)];
    auto* const several = reinterpret_cast<DeviceQuery*>(shared_queries);
    let_next_start();
    const DevicePlane& plane = model.plane;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned step_of_lane = lane / kQuads;
    const unsigned count = kMaxQueries == 1 ? 1 : queries.count;
    const std::uint32_t group_vectors = (plane.steps + 1) * kQuads;
    const auto* const on_device = reinterpret_cast<const uint4*>(queries.digits);

    // x, y: the high digits of components 0–3 and 4–7 of a step; z, w: the low ones.
    uint4 digits[kOneInRegisters ? kLoads : 1];
    if constexpr (kOneInRegisters) {
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            const unsigned step = step_of_lane + j * kStepsAtOnce;
            digits[j] = uint4{0, 0, 0, 0};
            if (step < plane.steps)
                digits[j] = inlined.usable ? inlined.digits[step] : on_device[step];
        }
    } else {
        for (unsigned i = threadIdx.x; i < count * plane.steps; i += kThreads) {
            shared_digits[i] = inlined.usable ? inlined.digits[i] : on_device[i];
        }
        if (threadIdx.x < count && kMaxQueries > 1)
            several[threadIdx.x] = queries.queries[threadIdx.x];
        __syncthreads();
    }
    DeviceQuery only;
    if constexpr (kMaxQueries == 1) only = inlined.usable ? inlined.query : queries.queries[0];
    const auto query_of = [&](unsigned q) -> const DeviceQuery& {
        return kMaxQueries == 1 ? only : several[q];
    };

    // Which of a unit's 32 rows is this thread's own.
    const unsigned own = lane % kQuads * 4 + (lane >> 4 & 1) * 2 + (lane >> 3 & 1);
    const bool second = (lane & 4) != 0;
    const unsigned row_in_unit = own + (second ? planes::kGroupRows : 0);

    const unsigned warps = gridDim.x * (kThreads / kWarp);
    const unsigned warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    // Several queries have the same range.
    const std::uint32_t first = query_of(0).first;
    const std::uint32_t last = query_of(0).last;
    const std::uint32_t first_unit = first / kGroupRows;
    const std::uint32_t last_unit = last > first ? (last - 1) / kGroupRows + 1 : first_unit;
    float best[kMaxQueries];
    std::uint32_t best_row[kMaxQueries];
#pragma unroll
    for (unsigned q = 0; q < kMaxQueries; ++q) {
        best[q] = minus_infinity();
        best_row[q] = 0;
    }
    for (std::uint32_t unit = first_unit + warp; unit < last_unit; unit += warps) {
        const std::uint32_t group = unit * 2;
        const bool has_second = group + 1 < plane.groups;
        const auto* const from = reinterpret_cast<const uint4*>(plane.bytes) +
                                 static_cast<std::size_t>(group) * group_vectors;
        const std::uint32_t to_second = has_second ? group_vectors : 0;
        // The bounds of this thread's own row, loaded together with its codes.
        const auto* const bounds = reinterpret_cast<const std::uint16_t*>(
            from + (second ? to_second : 0) + plane.steps * kQuads);
        const std::uint16_t projection = bounds[own];
        const std::uint16_t residual = bounds[planes::kGroupRows + own];
        const auto bound = [&](unsigned q, const Sums& sums) {
            const int sum = sums.of_own_row(lane);
            const std::uint32_t row = unit * kGroupRows + row_in_unit;
            const DeviceQuery& query = query_of(q);
            float upper = minus_infinity();
            // Uncovered rows have neither projection nor residual.
            if (row < model.rows && (projection | residual) != 0 && (!second || has_second) &&
                admits(query, model, row)) {
                float estimate = 0;
                upper = planes::row_upper(sum, projection, residual, query.upper, estimate);
                if (estimate > best[q]) {
                    best[q] = estimate;
                    best_row[q] = row;
                }
            }
            // Padded to whole units.
            work.uppers[static_cast<std::size_t>(q) * model.groups * kGroupRows + row] = upper;
        };
        if constexpr (kLoads == kAnySteps) {
            Sums sums[kMaxQueries];
            for (unsigned step = step_of_lane; step < plane.steps; step += kStepsAtOnce) {
                const unsigned at = step * kQuads + lane % kQuads;
                const uint4 codes[2] = {__ldcs(from + at), __ldcs(from + to_second + at)};
#pragma unroll
                for (unsigned q = 0; q < kMaxQueries; ++q) {
                    if (q >= count) break;
                    const uint4 by = shared_digits[q * plane.steps + step];
                    sums[q].add(0, codes[0], by);
                    sums[q].add(1, codes[1], by);
                }
            }
#pragma unroll
            for (unsigned q = 0; q < kMaxQueries; ++q) {
                if (q < count) bound(q, sums[q]);
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
            for (unsigned q = 0; q < kMaxQueries; ++q) {
                if (q >= count) break;
                Sums sums;
#pragma unroll
                for (unsigned j = 0; j < kLoads; ++j) {
                    uint4 by{0, 0, 0, 0};
                    const unsigned step = step_of_lane + j * kStepsAtOnce;
                    if constexpr (kOneInRegisters) {
                        by = digits[j];
                    } else if (step < plane.steps) {
                        by = shared_digits[q * plane.steps + step];
                    }
#pragma unroll
                    for (unsigned g = 0; g < 2; ++g) sums.add(g, codes[g][j], by);
                }
                bound(q, sums);
            }
        }
    }
#pragma unroll
    for (unsigned q = 0; q < kMaxQueries; ++q) {
        if (q >= count) break;
        for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
            const float other = __shfl_xor_sync(kWholeWarp, best[q], distance);
            const std::uint32_t other_row = __shfl_xor_sync(kWholeWarp, best_row[q], distance);
            if (other > best[q] || (other == best[q] && other_row < best_row[q])) {
                best[q] = other;
                best_row[q] = other_row;
            }
        }
        if (lane == 0) {
            work.warp_maxima[q * kMaxWarps + warp] = best[q];
            work.warp_rows[q * kMaxWarps + warp] = best_row[q];
        }
    }
}

/// Finds the floor by canonical scores of the best rows in warp_rows: the k_plus_excluded-th of
/// them is a score that `k_plus_excluded` eligible rows reach. One block a query.
__global__ __launch_bounds__(kFloorThreads) void plane_floor(DeviceModel model,
                                                             DeviceQueries queries,
                                                             FloorQuery inlined,
                                                             std::uint32_t warps, Workspace all) {
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
    const unsigned q = blockIdx.x;
    const Workspace work = workspace_of_query(model, all, q);
    const DeviceQuery query = inlined.usable ? inlined.query : queries.queries[q];
    const float* const raw =
        inlined.usable ? shared_raw : queries.raw + static_cast<std::size_t>(q) * model.stride;
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
    const bool one = queries.count == 1;
    const auto kernel = one ? plane_scan<kLoads, 1> : plane_scan<kLoads, kMaxScanQueries>;
    const std::size_t shared =
        kLoads == kAnySteps || !one ? queries.count * model.plane.steps * sizeof(uint4) : 0;
    kernel<<<warps / (kThreads / kWarp), kThreads, shared, stream>>>(model, queries, inlined, work);
    return cudaGetLastError();
}

}  // namespace

cudaError_t load_plane_scan_kernels() {
    constexpr unsigned kMany = kMaxScanQueries;
    return load_each(plane_scan<1, 1>, plane_scan<2, 1>, plane_scan<3, 1>, plane_scan<4, 1>,
                     plane_scan<5, 1>, plane_scan<kAnySteps, 1>, plane_scan<1, kMany>,
                     plane_scan<2, kMany>, plane_scan<3, kMany>, plane_scan<4, kMany>,
                     plane_scan<5, kMany>, plane_scan<kAnySteps, kMany>, plane_floor);
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
    return launch_early(shape, plane_floor, queries.count, kFloorThreads, 0, stream, model, queries,
                        floor, warps, work);
}

}  // namespace gloved::kernels::cuda
