// The float32 pass for one query: v5 of the ladder under the exactness contract.
//
// Expected limit: memory. Each byte of the vectors is read once, 16 bytes a load, some ten loads in
// flight a thread; one float is written for every kGroupRows rows. Blocks stride over groups, so
// that the query stays in registers from the first row to the last.
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/stream.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
/// Few blocks with many loads each: more warps than keep the memory busy scatter its accesses, and
/// take 3 % longer (measured).
constexpr unsigned kBlocksPerProcessor = 2;
constexpr unsigned kAnyWidth = 0;

/// fl32(1 / norm) of a row; NaN where it is not eligible.
__device__ float inverse_norm_for(const DeviceModel& model, const DeviceQuery& query,
                                  std::uint32_t row) {
    const float inverse = model.inverse_norms[row];  // padded to whole groups
    return row < model.rows && admits(query, model, row) ? inverse : __int_as_float(0x7FC00000);
}

/// Estimates rows in float32 and writes each group's maximum. One warp takes one group of
/// kGroupRows rows at a time; kLanes threads share a row, and each such team has kRows rows in
/// flight. kVectors: the stride in float4, or kAnyWidth to read it from the model (and the query
/// from shared memory).
template <unsigned kVectors, unsigned kLanes, unsigned kRows>
__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void scan(
    DeviceModel model, const DeviceQuery* __restrict__ queries, const float* __restrict__ unit,
    float* __restrict__ maxima, float* __restrict__ warp_maxima) {
    constexpr unsigned kTeams = kWarp / kLanes;
    constexpr unsigned kSteps = kGroupRows / (kTeams * kRows);
    constexpr unsigned kLoads = (kVectors + kLanes - 1) / kLanes;
    static_assert(kTeams * kRows * kSteps == kGroupRows);

    extern __shared__ float4 shared_query[];
    const auto vectors = kVectors == kAnyWidth ? model.stride / 4 : kVectors;
    const auto* query4 = reinterpret_cast<const float4*>(unit);
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned part = lane % kLanes;
    const unsigned team = lane / kLanes;

    float4 query[kLoads > 0 ? kLoads : 1];
    if constexpr (kVectors == kAnyWidth) {
        for (unsigned i = threadIdx.x; i < vectors; i += kThreads) shared_query[i] = query4[i];
        __syncthreads();
    } else {
#pragma unroll
        for (unsigned j = 0; j < kLoads; ++j) {
            const unsigned i = part + j * kLanes;
            query[j] = i < kVectors ? query4[i] : float4{0, 0, 0, 0};
        }
    }

    const DeviceQuery filter = queries[0];
    const unsigned warps = gridDim.x * (kThreads / kWarp);
    const unsigned warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    std::uint32_t group = warp;
    float best_of_all = minus_infinity();
    float inverse =
        group < model.groups ? inverse_norm_for(model, filter, group * kGroupRows + lane) : 0;
    for (; group < model.groups; group += warps) {
        // Loaded one group ahead, so that no group waits to learn whether it has eligible rows.
        const std::uint32_t next = group + warps;
        const float next_inverse =
            next < model.groups ? inverse_norm_for(model, filter, next * kGroupRows + lane) : 0;
        float best = minus_infinity();
        if (__any_sync(kWholeWarp, !isnan(inverse))) {
            for (unsigned step = 0; step < kSteps; ++step) {
                float dots[kRows] = {};
                unsigned at[kRows];
                const float4* rows[kRows];
#pragma unroll
                for (unsigned r = 0; r < kRows; ++r) {
                    at[r] = (step * kRows + r) * kTeams + team;
                    const std::uint32_t row = min(group * kGroupRows + at[r], model.rows - 1);
                    rows[r] = reinterpret_cast<const float4*>(row_of(model, row));
                }
                if constexpr (kVectors == kAnyWidth) {
#pragma unroll 4
                    for (unsigned i = part; i < vectors; i += kLanes) {
                        const float4 q = shared_query[i];
#pragma unroll
                        for (unsigned r = 0; r < kRows; ++r)
                            dots[r] = fused_dot(__ldcs(rows[r] + i), q, dots[r]);
                    }
                } else {
                    float4 values[kRows][kLoads];
#pragma unroll
                    for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
                        for (unsigned j = 0; j < kLoads; ++j) {
                            const unsigned i = part + j * kLanes;
                            values[r][j] = i < kVectors ? __ldcs(rows[r] + i) : float4{0, 0, 0, 0};
                        }
                    }
#pragma unroll
                    for (unsigned r = 0; r < kRows; ++r) {
#pragma unroll
                        for (unsigned j = 0; j < kLoads; ++j)
                            dots[r] = fused_dot(values[r][j], query[j], dots[r]);
                    }
                }
#pragma unroll
                for (unsigned r = 0; r < kRows; ++r) {
                    for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
                        dots[r] += __shfl_xor_sync(kWholeWarp, dots[r], distance);
                    }
                    // fmaxf ignores NaN: rows that are not eligible, whatever their dot product is.
                    best = fmaxf(best, dots[r] * __shfl_sync(kWholeWarp, inverse, at[r]));
                }
            }
        }
        best = warp_max(best);
        if (lane == 0) maxima[group] = best;
        best_of_all = fmaxf(best_of_all, best);
        inverse = next_inverse;
    }
    if (lane == 0) warp_maxima[warp] = best_of_all;
}

template <unsigned kVectors, unsigned kLanes, unsigned kRows>
cudaError_t run_scan(const DeviceModel& model, const DeviceQueries& queries, const Workspace& work,
                     const DeviceShape& shape, std::uint32_t& warps, cudaStream_t stream) {
    const std::size_t shared = kVectors == kAnyWidth ? model.stride * sizeof(float) : 0;
    const unsigned wanted = (model.groups + kThreads / kWarp - 1) / (kThreads / kWarp);
    const unsigned blocks =
        min(min(wanted, static_cast<unsigned>(shape.processors) * kBlocksPerProcessor),
            kMaxWarps / (kThreads / kWarp));
    warps = blocks * (kThreads / kWarp);
    scan<kVectors, kLanes, kRows><<<blocks, kThreads, shared, stream>>>(
        model, queries.queries, queries.unit, work.maxima, work.warp_maxima);
    return cudaGetLastError();
}

/// launch_pad_rows, one float a thread.
__global__ void pad_rows(const float* __restrict__ packed, std::size_t count, std::uint32_t dim,
                         std::uint32_t stride, float* __restrict__ padded) {
    const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += threads) {
        const std::size_t row = i / stride;
        const auto column = static_cast<std::uint32_t>(i - row * stride);
        padded[i] = column < dim ? packed[row * dim + column] : 0.0F;
    }
}

/// launch_invert_norms, one row a thread.
__global__ void invert_norms(const double* __restrict__ norms, std::uint32_t rows,
                             std::uint32_t padded_rows, double smallest, double largest,
                             float* __restrict__ inverse_norms) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= padded_rows) return;
    const double norm = row < rows ? norms[row] : 0;
    inverse_norms[row] = norm >= smallest && norm <= largest ? static_cast<float>(1.0 / norm)
                                                             : __int_as_float(0x7FC00000);
}

}  // namespace

cudaError_t load_kernels() {
    for (const auto load :
         {load_build_code_tiles_kernels, load_build_int8_codes_kernels,
          load_code_multiply_mma_kernels, load_code_pass_kernels, load_estimate_kernels,
          load_few_rows_kernels, load_plane_pass_kernels, load_plane_query_kernels,
          load_score_kernels, load_select_kernels, load_stream_kernels}) {
        if (const auto error = load(); error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t load_estimate_kernels() {
    return load_each(scan<7, 8, 8>, scan<13, 16, 8>, scan<25, 8, 2>, scan<50, 16, 2>,
                     scan<75, 16, 2>, scan<kAnyWidth, 8, 4>, scan<kAnyWidth, 32, 2>, pad_rows,
                     invert_norms);
}

cudaError_t launch_scan(const DeviceModel& model, const DeviceQueries& queries,
                        const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                        cudaStream_t stream) {
    if (can_stream(model, queries, shape))
        return launch_stream(model, queries, work, shape, warps, stream);
    // GloVe's widths have loops of their own. Threads a row: few idle in the last load, and whole
    // 128-byte lines a load. Rows in flight: eight to ten loads a thread.
    switch (model.stride / 4) {
        case 7:  // 25
            return run_scan<7, 8, 8>(model, queries, work, shape, warps, stream);
        case 13:  // 50
            return run_scan<13, 16, 8>(model, queries, work, shape, warps, stream);
        case 25:  // 100
            return run_scan<25, 8, 2>(model, queries, work, shape, warps, stream);
        case 50:  // 200
            return run_scan<50, 16, 2>(model, queries, work, shape, warps, stream);
        case 75:  // 300
            return run_scan<75, 16, 2>(model, queries, work, shape, warps, stream);
        default:
            return model.stride <= 32
                       ? run_scan<kAnyWidth, 8, 4>(model, queries, work, shape, warps, stream)
                       : run_scan<kAnyWidth, 32, 2>(model, queries, work, shape, warps, stream);
    }
}

cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim,
                            std::uint32_t stride, float* padded, cudaStream_t stream) {
    const std::size_t count = static_cast<std::size_t>(rows) * stride;
    const auto blocks = static_cast<unsigned>(min((count + 255) / 256, std::size_t{4096}));
    pad_rows<<<blocks, 256, 0, stream>>>(packed, count, dim, stride, padded);
    return cudaGetLastError();
}

cudaError_t launch_invert_norms(const double* norms, std::uint32_t rows, std::uint32_t groups,
                                double smallest, double largest, float* inverse_norms,
                                cudaStream_t stream) {
    const std::uint32_t padded = groups * kGroupRows;
    invert_norms<<<(padded + 255) / 256, 256, 0, stream>>>(norms, rows, padded, smallest, largest,
                                                           inverse_norms);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
