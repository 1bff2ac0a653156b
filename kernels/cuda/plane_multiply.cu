// The product of the 4-bit plane with many queries: integers on tensor cores, whose results are
// compared with cutoffs in registers. Only rows that may belong to an answer leave a processor.
//
// A warp keeps the digits of 32 queries in registers. A thread's share of an instruction's 16 rows
// is whole 4-byte words of the plane, as they lie in memory: an even and an odd four components,
// which one mask each makes bytes.
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_pass.cuh"
#include "kernels/cuda/plane_tiles.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kBlocksPerProcessor = 2;
constexpr unsigned kTileQueries = 8;  // queries of an instruction
constexpr unsigned kTiles = 4;
constexpr unsigned kWarpQueries = kTiles * kTileQueries;
constexpr unsigned kBlockQueries = kWarps * kWarpQueries;
/// Groups of a tile: as many as let two blocks share a processor.
constexpr unsigned kMaxTileGroups = 16;
constexpr unsigned kMinTileGroups = 4;
/// Hits of a warp: most in one group, and room in its buffer.
constexpr unsigned kHitsOfGroup = planes::kGroupRows * kWarpQueries;
constexpr unsigned kHitsRoom = kHitsOfGroup + 96;
/// A hit's group, row and query fit 32 bits.
constexpr std::uint32_t kMaxGroups = 1U << 23;
constexpr std::uint32_t kCodeMask = 0x0F0F0F0FU;
/// The key of a group without eligible rows, below any estimate.
constexpr float kNoKey = -3e38F;

/// Adds a product: sums (16 rows, 8 queries) += rows (16, 32) * queries (32, 8).
__device__ inline void multiply_add(int (&sums)[4], const std::uint32_t (&rows)[4], uint2 queries) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
        "%9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(queries.x), "r"(queries.y));
#endif
}

/// Multiplies a part of the plane with all queries. kKeys: writes the largest estimate of each
/// group, with the row in its low bits, to keys. Otherwise appends the rows that reach their
/// query's cutoff to survivors. kProducts: instructions along a row. A warp's queries are those of
/// column warp % columns; the warps of a column share a tile's groups.
template <unsigned kProducts, bool kKeys>
__global__ __launch_bounds__(kThreads, kBlocksPerProcessor) void plane_multiply(
    DeviceModel model, DeviceQueries queries, Part part, unsigned columns, unsigned tile_groups,
    PlaneWorkspace work) {
    extern __shared__ __align__(16) std::uint8_t tiles[];  // (kTileBuffers, tile_bytes)
    __shared__ std::uint32_t hits[kKeys ? 1 : kWarps * kHitsRoom];
    __shared__ unsigned pending[kWarps];
    __shared__ float cutoff_projection[kBlockQueries];  // kKeys: the centre
    __shared__ float cutoff_residual[kBlockQueries];
    __shared__ float cutoff_constant[kBlockQueries];
    const DevicePlane& plane = model.plane;
    const std::uint32_t group_bytes = tile_group_bytes(plane.steps);
    const std::uint32_t buffer_bytes = tile_bytes(plane.steps, kProducts, tile_groups);
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned column = warp % columns;
    const unsigned first_group = warp / columns;
    const unsigned group_step = kWarps / columns;
    const std::uint32_t block_query = blockIdx.x * kBlockQueries;
    const std::uint32_t width = (model.dim + kDigitStep - 1) / kDigitStep * kDigitStep;

    if (threadIdx.x < kWarps) pending[threadIdx.x] = 0;
    for (unsigned i = threadIdx.x; i < kBlockQueries; i += kThreads) {
        const std::uint32_t q = block_query + i;
        if (kKeys) {
            cutoff_projection[i] =
                q < queries.count ? static_cast<float>(planes::kTopLevel * work.facts[q].sum) : 0;
        } else {
            // No sum reaches this cutoff.
            const planes::PlaneCutoff none{0, 0, __int_as_float(0x7F800000)};
            const planes::PlaneCutoff cutoff = q < queries.count ? work.cutoffs[q] : none;
            cutoff_projection[i] = cutoff.of_projection;
            cutoff_residual[i] = cutoff.of_residual;
            cutoff_constant[i] = cutoff.constant;
        }
    }
    uint2 digits[kTiles][kProducts];
#pragma unroll
    for (unsigned t = 0; t < kTiles; ++t) {
        const std::uint32_t q = block_query + column * kWarpQueries + t * kTileQueries + lane / 4;
        const auto* const from =
            reinterpret_cast<const uint2*>(work.digits + static_cast<std::size_t>(q) * width);
#pragma unroll
        for (unsigned m = 0; m < kProducts; ++m) {
            const unsigned step = m * kStepsOfProduct + lane % 4;
            digits[t][m] =
                q < queries.count && step * planes::kStepDims < width ? from[step] : uint2{0, 0};
        }
    }

    const std::uint32_t count = (part.groups + tile_groups - 1) / tile_groups;
    const auto fetch = [&](std::uint32_t tile, unsigned which) {
        if (tile < count) {
            for (unsigned g = 0; g < tile_groups; ++g) {
                const std::uint32_t i = tile * tile_groups + g;
                if (i >= part.groups) break;
                const std::size_t group = (static_cast<std::size_t>(i) << part.shift) + part.offset;
                const std::uint8_t* const from = plane.bytes + group * group_bytes;
                std::uint8_t* const to = tiles + which * buffer_bytes + g * group_bytes;
                for (unsigned at = threadIdx.x * 16; at < group_bytes; at += kThreads * 16) {
                    __pipeline_memcpy_async(to + at, from + at, 16);
                }
            }
        }
        __pipeline_commit();
    };

    // A warp writes many hits at a time, so that the additions to their counters overlap.
    const auto flush = [&] {
        __syncwarp();
        const unsigned count_here = pending[warp];
        for (unsigned at = lane; at < count_here; at += kWarp) {
            const std::uint32_t hit = hits[warp * kHitsRoom + at];
            const std::uint32_t q = block_query + column * kWarpQueries + hit % kWarpQueries;
            const std::uint32_t row =
                (((hit / kHitsOfGroup) << part.shift) + part.offset) * planes::kGroupRows +
                hit / kWarpQueries % planes::kGroupRows;
            // Uncovered rows have zeros in the plane, which some cutoffs let through. They are
            // scored apart, once.
            if (row >= model.rows || isnan(model.inverse_norms[row])) continue;
            if (queries.any_filter && !admits(queries.queries[q], model, row)) continue;
            const std::uint32_t place = atomicAdd(&work.counters[q].part_survivors, 1U);
            if (place < kPlanePassSurvivors) {
                work.survivors[static_cast<std::size_t>(q) * kPlanePassSurvivors + place] = row;
            }
        }
        __syncwarp();
        if (lane == 0) pending[warp] = 0;
        __syncwarp();
    };

    unsigned which = 0;
    std::uint32_t tile = blockIdx.y;
    fetch(tile, which);
    for (; tile < count; tile += gridDim.y, which ^= 1) {
        fetch(tile + gridDim.y, which ^ 1);
        __pipeline_wait_prior(1);
        __syncthreads();
        const std::uint32_t here = min(tile_groups, part.groups - tile * tile_groups);
        for (unsigned g = first_group; g < here; g += group_step) {
            const std::uint8_t* const group = tiles + which * buffer_bytes + g * group_bytes;
            int sums[kTiles][4] = {};
            // Half of the threads take their two rows in the other order, so that no two meet in a
            // bank.
            const bool swap = (lane & 2) != 0;
            const auto* const words = reinterpret_cast<const std::uint32_t*>(group) +
                                      lane % 4 * (planes::kStepBytes / 4) + lane / 4;
#pragma unroll
            for (unsigned m = 0; m < kProducts; ++m) {
                const auto* const at = words + m * kStepsOfProduct * (planes::kStepBytes / 4);
                const std::uint32_t one = at[swap ? 8 : 0];
                const std::uint32_t other = at[swap ? 0 : 8];
                const std::uint32_t top = swap ? other : one;
                const std::uint32_t bottom = swap ? one : other;
                const std::uint32_t rows[4] = {top & kCodeMask, bottom & kCodeMask,
                                               top >> 4 & kCodeMask, bottom >> 4 & kCodeMask};
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) multiply_add(sums[t], rows, digits[t][m]);
            }
            const auto* const bounds =
                reinterpret_cast<const std::uint16_t*>(group + plane.steps * planes::kStepBytes);
            const unsigned r = lane / 4;
            const auto projection = [&](unsigned row) { return static_cast<float>(bounds[row]); };
            const auto residual = [&](unsigned row) {
                return static_cast<float>(bounds[planes::kGroupRows + row]);
            };
            const float p[2] = {projection(r), projection(r + 8)};
            const float h[2] = {residual(r), residual(r + 8)};
            const std::uint32_t i = tile * tile_groups + g;
            const std::uint32_t first_row = ((i << part.shift) + part.offset) * planes::kGroupRows;

            if constexpr (kKeys) {
                float weight[2];
#pragma unroll
                for (unsigned s = 0; s < 2; ++s) {
                    const std::uint32_t row = first_row + r + 8 * s;
                    // NaN for rows that are not eligible: fmaxf ignores it.
                    weight[s] = row < model.rows ? p[s] / (p[s] * p[s] + h[s] * h[s])
                                                 : __int_as_float(0x7FC00000);
                }
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
#pragma unroll
                    for (unsigned c = 0; c < 2; ++c) {
                        const unsigned in_block =
                            column * kWarpQueries + t * kTileQueries + lane % 4 * 2 + c;
                        const std::uint32_t q = block_query + in_block;
                        const bool filtered = queries.any_filter && q < queries.count;
                        float best = kNoKey;
#pragma unroll
                        for (unsigned s = 0; s < 2; ++s) {
                            const float estimate = (2.0F * static_cast<float>(sums[t][2 * s + c]) -
                                                    cutoff_projection[in_block]) *
                                                   weight[s];
                            if (!(estimate > kNoKeyAtMost)) continue;
                            if (filtered &&
                                !admits(queries.queries[q], model, first_row + r + 8 * s))
                                continue;
                            const auto bits = static_cast<std::uint32_t>(__float_as_int(estimate));
                            best = fmaxf(best, __int_as_float(static_cast<int>((bits & ~kRowBits) |
                                                                               (r + 8 * s))));
                        }
                        for (unsigned distance = 4; distance < kWarp; distance *= 2) {
                            best = fmaxf(best, __shfl_xor_sync(kWholeWarp, best, distance));
                        }
                        if (lane < 4 && q < queries.count) {
                            work.keys[static_cast<std::size_t>(q) * part.groups + i] = best;
                        }
                    }
                }
            } else {
                // Bit 4 t + 2 s + c: the row r + 8 s reaches the cutoff of query 8 t + 2 (lane % 4)
                // + c.
                unsigned reached = 0;
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
                    const unsigned in_block =
                        column * kWarpQueries + t * kTileQueries + lane % 4 * 2;
                    const float2 of_projection =
                        *reinterpret_cast<const float2*>(cutoff_projection + in_block);
                    const float2 of_residual =
                        *reinterpret_cast<const float2*>(cutoff_residual + in_block);
                    const float2 constant =
                        *reinterpret_cast<const float2*>(cutoff_constant + in_block);
#pragma unroll
                    for (unsigned s = 0; s < 2; ++s) {
                        const float x = __fmaf_rn(p[s], of_projection.x,
                                                  __fmaf_rn(-h[s], of_residual.x, constant.x));
                        const float y = __fmaf_rn(p[s], of_projection.y,
                                                  __fmaf_rn(-h[s], of_residual.y, constant.y));
                        if (!(static_cast<float>(sums[t][2 * s]) < x))
                            reached |= 1U << (4 * t + 2 * s);
                        if (!(static_cast<float>(sums[t][2 * s + 1]) < y))
                            reached |= 2U << (4 * t + 2 * s);
                    }
                }
                if (reached != 0) {
                    unsigned at = atomicAdd(&pending[warp], static_cast<unsigned>(__popc(reached)));
                    for (; reached != 0; reached &= reached - 1) {
                        const unsigned bit = __ffs(static_cast<int>(reached)) - 1;
                        const unsigned query = bit / 4 * kTileQueries + lane % 4 * 2 + bit % 2;
                        const unsigned in_group = r + bit / 2 % 2 * 8;
                        hits[warp * kHitsRoom + at++] =
                            i * kHitsOfGroup + in_group * kWarpQueries + query;
                    }
                }
                __syncwarp();
                if (pending[warp] > kHitsRoom - kHitsOfGroup) flush();
            }
        }
        __syncthreads();
    }
    if constexpr (!kKeys) flush();
    __pipeline_wait_prior(0);
}

template <unsigned kProducts, bool kKeys>
cudaError_t run_multiply(const DeviceModel& model, const DeviceQueries& queries, const Part& part,
                         const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const auto kernel = plane_multiply<kProducts, kKeys>;
    constexpr std::size_t kStatic = 26 * 1024;  // static arrays, and the driver's share of a block
    const auto shared_for = [&](unsigned groups) {
        return std::size_t{kTileBuffers} * tile_bytes(model.plane.steps, kProducts, groups);
    };
    unsigned tile_groups = kMaxTileGroups;
    while (tile_groups > kMinTileGroups &&
           kBlocksPerProcessor * (shared_for(tile_groups) + kStatic) >
               shape.shared_bytes_processor) {
        tile_groups /= 2;
    }
    const std::size_t shared = shared_for(tile_groups);
    const unsigned in_x = (queries.count + kBlockQueries - 1) / kBlockQueries;
    unsigned columns = 1;
    while (columns < kWarps && columns * kWarpQueries < queries.count) columns *= 2;
    const unsigned tiles = (part.groups + tile_groups - 1) / tile_groups;
    const unsigned in_y =
        min(tiles, max(static_cast<unsigned>(shape.processors) * kBlocksPerProcessor / in_x, 1U));
    kernel<<<dim3(in_x, in_y), kThreads, shared, stream>>>(model, queries, part, columns,
                                                           tile_groups, work.plane);
    return cudaGetLastError();
}

template <bool kKeys>
cudaError_t multiply(const DeviceModel& model, const DeviceQueries& queries, const Part& part,
                     const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    if (part.groups == 0) return cudaSuccess;
    switch (products_for(model.plane.steps)) {
        case 1:
            return run_multiply<1, kKeys>(model, queries, part, work, shape, stream);
        case 2:
            return run_multiply<2, kKeys>(model, queries, part, work, shape, stream);
        case 4:
            return run_multiply<4, kKeys>(model, queries, part, work, shape, stream);
        case 7:
            return run_multiply<7, kKeys>(model, queries, part, work, shape, stream);
        case kMaxProducts:
            return run_multiply<kMaxProducts, kKeys>(model, queries, part, work, shape, stream);
        default:
            return cudaErrorInvalidValue;
    }
}

}  // namespace

cudaError_t load_plane_multiply_kernels() {
    return load_and_allow(plane_multiply<1, true>, plane_multiply<2, true>, plane_multiply<4, true>,
                          plane_multiply<7, true>, plane_multiply<kMaxProducts, true>,
                          plane_multiply<1, false>, plane_multiply<2, false>,
                          plane_multiply<4, false>, plane_multiply<7, false>,
                          plane_multiply<kMaxProducts, false>);
}

std::uint32_t plane_pass_capacity(std::size_t rows, std::uint32_t dim, const DeviceShape& shape) {
    const bool fits =
        dim <= kMaxProducts * kDigitStep && rows <= std::size_t{kMaxGroups} * planes::kGroupRows;
    return shape.integer_products && fits ? kMaxPlanePass : 0;
}

cudaError_t multiply_to_keys(const DeviceModel& model, const DeviceQueries& queries,
                             const Part& part, const Workspace& work, const DeviceShape& shape,
                             cudaStream_t stream) {
    return multiply<true>(model, queries, part, work, shape, stream);
}

cudaError_t multiply_to_survivors(const DeviceModel& model, const DeviceQueries& queries,
                                  const Part& part, const Workspace& work, const DeviceShape& shape,
                                  cudaStream_t stream) {
    return multiply<false>(model, queries, part, work, shape, stream);
}

}  // namespace gloved::kernels::cuda
