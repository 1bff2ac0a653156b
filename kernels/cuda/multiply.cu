// The float16 pass for many queries: a matrix product on tensor cores that writes only the maxima
// of its results.
//
// The float32 rows are read once for up to kMaxPass queries; they become unit vectors in float16 on
// their way into shared memory, so that the model needs no second copy. All queries of the
// pass stay in shared memory. While a block multiplies one group of rows, the loads of its next
// group are under way in registers. Bound by memory up to about a hundred queries.
#include <cuda_fp16.h>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
/// Components of a row that one instruction multiplies; rows are padded to it.
constexpr unsigned kStep = 16;
/// Halves of padding after each row in shared memory: rows start 4 words apart modulo 32 banks, so
/// that ldmatrix has no bank conflicts.
constexpr unsigned kSkew = 8;
constexpr unsigned kRowsPerWarp = kGroupRows / kWarps;
/// float4 of each of its rows that a lane loads ahead: all of a row up to 384 floats.
constexpr unsigned kAhead = 3;
constexpr std::uint32_t kSmallPass = 64;

__host__ __device__ constexpr std::uint32_t leading(std::uint32_t stride) {
    return (stride + kStep - 1) / kStep * kStep + kSkew;
}

/// Shared memory for `queries` queries and one group of rows.
constexpr std::size_t shared_bytes(std::uint32_t queries, std::uint32_t stride) {
    return (queries + kGroupRows) * std::size_t{leading(stride)} * sizeof(__half);
}

__device__ void load_matrices(std::uint32_t (&to)[4], const __half* from) {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

/// sum (16 rows, 8 queries) += rows (16, 16) * queries (16, 8).
__device__ void multiply_add(float (&sum)[4], const std::uint32_t (&rows)[4], std::uint32_t low,
                             std::uint32_t high) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(low), "r"(high));
#else
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
        "%1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(low));
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
        "%1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(rows[2]), "r"(rows[3]), "r"(high));
#endif
}

__device__ void store_halves(__half* to, float4 value) {
    const __half2 low = __floats2half2_rn(value.x, value.y);
    const __half2 high = __floats2half2_rn(value.z, value.w);
    *reinterpret_cast<uint2*>(to) = {*reinterpret_cast<const unsigned*>(&low),
                                     *reinterpret_cast<const unsigned*>(&high)};
}

/// Multiplies groups of rows with all queries of a pass. A block strides over groups; each of its
/// warps multiplies the whole group with its own kQueries / kWarps queries.
template <std::uint32_t kQueries>
__global__ __launch_bounds__(kThreads, 2) void multiply(DeviceModel model, DeviceQueries queries,
                                                        float* __restrict__ maxima) {
    constexpr unsigned kTiles = kQueries / kWarps / 8;  // of 8 queries, a warp
    static_assert(kTiles * kWarps * 8 == kQueries && (kTiles == 1 || kTiles == 2));
    const std::uint32_t stride = model.stride;
    const unsigned vectors = stride / 4;
    const unsigned ld = leading(stride);
    const unsigned depth = ld - kSkew;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;

    extern __shared__ uint4 shared[];
    auto* const query_block = reinterpret_cast<__half*>(shared);  // (kQueries, ld)
    __half* const row_block = query_block + kQueries * ld;        // (kGroupRows, ld)
    // Two of each: one for the group at hand, one for the next.
    __shared__ float inverse[2][kGroupRows];
    __shared__ std::uint32_t ranks[2][kGroupRows];

    for (unsigned q = warp; q < kQueries; q += kWarps) {
        const auto* from =
            reinterpret_cast<const float4*>(queries.unit + static_cast<std::size_t>(q) * stride);
        for (unsigned i = lane; i < depth / 4; i += kWarp) {
            store_halves(query_block + q * ld + 4 * i,
                         q < queries.count && i < vectors ? from[i] : float4{0, 0, 0, 0});
        }
    }
    for (unsigned r = warp; r < kGroupRows; r += kWarps) {
        for (unsigned i = vectors + lane; i < depth / 4; i += kWarp)
            store_halves(row_block + r * ld + 4 * i, {0, 0, 0, 0});
    }

    const auto row_at = [&](std::uint32_t group, unsigned r) {
        const std::uint32_t row = min(group * kGroupRows + warp * kRowsPerWarp + r, model.rows - 1);
        return reinterpret_cast<const float4*>(row_of(model, row));
    };
    float4 ahead[kRowsPerWarp][kAhead];
    const auto load_ahead = [&](std::uint32_t group) {
#pragma unroll
        for (unsigned r = 0; r < kRowsPerWarp; ++r) {
#pragma unroll
            for (unsigned j = 0; j < kAhead; ++j) {
                const unsigned i = lane + j * kWarp;
                if (i < vectors) ahead[r][j] = __ldcs(row_at(group, r) + i);
            }
        }
    };
    const auto fetch_facts = [&](std::uint32_t group, unsigned which) {
        if (threadIdx.x >= kGroupRows) return;
        const std::uint32_t row = group * kGroupRows + threadIdx.x;
        inverse[which][threadIdx.x] = model.inverse_norms[row];  // padded to whole groups
        ranks[which][threadIdx.x] = queries.any_rank && row < model.rows ? model.ranks[row] : 0;
    };

    std::uint32_t group = blockIdx.x;
    unsigned which = 0;
    if (group < model.groups) {
        load_ahead(group);
        fetch_facts(group, which);
    }
    for (; group < model.groups; group += gridDim.x, which ^= 1) {
        __syncthreads();  // the last group is multiplied, and this one's facts are loaded
#pragma unroll
        for (unsigned r = 0; r < kRowsPerWarp; ++r) {
            const unsigned at = warp * kRowsPerWarp + r;
            const float factor = inverse[which][at];
            // Rows that are not eligible may hold anything; zeros keep infinities out of the
            // product.
            const auto scaled = [&](float4 v) {
                return isnan(factor)
                           ? float4{0, 0, 0, 0}
                           : float4{v.x * factor, v.y * factor, v.z * factor, v.w * factor};
            };
#pragma unroll
            for (unsigned j = 0; j < kAhead; ++j) {
                const unsigned i = lane + j * kWarp;
                if (i < vectors) store_halves(row_block + at * ld + 4 * i, scaled(ahead[r][j]));
            }
            for (unsigned i = lane + kAhead * kWarp; i < vectors; i += kWarp) {
                store_halves(row_block + at * ld + 4 * i, scaled(__ldcs(row_at(group, r) + i)));
            }
        }
        __syncthreads();
        const std::uint32_t next = group + gridDim.x;
        if (next < model.groups) {
            load_ahead(next);
            fetch_facts(next, which ^ 1);
        }

        float sums[2][kTiles][4] = {};
        const __half* const rows_from = row_block + (lane % 16) * ld + lane / 16 * 8;
        // One load takes the matrices (queries 0–7, k 0–7), (0–7, 8–15), then the same of queries
        // 8–15, where there are any.
        const __half* const queries_from =
            query_block + (warp * kTiles * 8 + lane % 8 + (kTiles == 2 ? lane / 16 * 8 : 0)) * ld +
            lane / 8 % 2 * 8;
#pragma unroll 2
        for (unsigned k = 0; k < depth; k += kStep) {
            std::uint32_t top[4];
            std::uint32_t bottom[4];
            std::uint32_t of_queries[4];
            load_matrices(top, rows_from + k);
            load_matrices(bottom, rows_from + 16 * ld + k);
            load_matrices(of_queries, queries_from + k);
#pragma unroll
            for (unsigned t = 0; t < kTiles; ++t) {
                multiply_add(sums[0][t], top, of_queries[2 * t], of_queries[2 * t + 1]);
                multiply_add(sums[1][t], bottom, of_queries[2 * t], of_queries[2 * t + 1]);
            }
        }

        // This lane's sums: rows lane / 4 + 8 {0, 1, 2, 3}, of each tile queries 2 (lane % 4) and
        // the next.
        float bias[4];
        std::uint32_t rank[4];
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            bias[i] = isnan(inverse[which][lane / 4 + 8 * i]) ? minus_infinity() : 0.0F;
            rank[i] = ranks[which][lane / 4 + 8 * i];
        }
#pragma unroll
        for (unsigned t = 0; t < kTiles; ++t) {
#pragma unroll
            for (unsigned c = 0; c < 2; ++c) {
                const unsigned q = warp * kTiles * 8 + t * 8 + lane % 4 * 2 + c;
                const float estimates[4] = {sums[0][t][c] + bias[0], sums[0][t][c + 2] + bias[1],
                                            sums[1][t][c] + bias[2], sums[1][t][c + 2] + bias[3]};
                float best = minus_infinity();
                if (queries.any_rank) {
                    const std::uint32_t below =
                        q < queries.count ? queries.queries[q].rank_below : 0;
#pragma unroll
                    for (unsigned i = 0; i < 4; ++i) {
                        if (rank[i] < below || below == ~std::uint32_t{0})
                            best = fmaxf(best, estimates[i]);
                    }
                } else {
                    best =
                        fmaxf(fmaxf(estimates[0], estimates[1]), fmaxf(estimates[2], estimates[3]));
                }
                for (unsigned distance = 4; distance < kWarp; distance *= 2) {
                    best = fmaxf(best, __shfl_xor_sync(kWholeWarp, best, distance));
                }
                if (lane < 4 && q < queries.count)
                    maxima[static_cast<std::size_t>(q) * model.groups + group] = best;
            }
        }
    }
}

template <std::uint32_t kQueries>
cudaError_t run_multiply(const DeviceModel& model, const DeviceQueries& queries,
                         const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const std::size_t shared = shared_bytes(kQueries, model.stride);
    // An attribute per device; setting it each time costs little.
    if (const auto error =
            cudaFuncSetAttribute(multiply<kQueries>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared));
        error != cudaSuccess) {
        return error;
    }
    constexpr std::size_t kReserved = 2048;  // what the driver and the static arrays take of each
                                             // block
    const unsigned blocks_per_processor =
        2 * (shared + kReserved) <= shape.shared_bytes_processor ? 2 : 1;
    const unsigned blocks =
        min(model.groups, static_cast<unsigned>(shape.processors) * blocks_per_processor);
    multiply<kQueries><<<blocks, kThreads, shared, stream>>>(model, queries, work.maxima);
    return cudaGetLastError();
}

}  // namespace

cudaError_t load_multiply_kernels() { return load_each(multiply<kSmallPass>, multiply<kMaxPass>); }

std::uint32_t multiply_capacity(std::uint32_t stride, const DeviceShape& shape) {
    constexpr std::size_t kStatic = 1024;
    if (shared_bytes(kMaxPass, stride) + kStatic <= shape.shared_bytes) return kMaxPass;
    return shared_bytes(kSmallPass, stride) + kStatic <= shape.shared_bytes ? kSmallPass : 0;
}

cudaError_t launch_multiply(const DeviceModel& model, const DeviceQueries& queries,
                            const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    return queries.count <= kSmallPass
               ? run_multiply<kSmallPass>(model, queries, work, shape, stream)
               : run_multiply<kMaxPass>(model, queries, work, shape, stream);
}

}  // namespace gloved::kernels::cuda
