// A thread keeps 8 x 8 distances in registers, a block of 256 threads a square of 128 x 128; only
// slices of the points pass through shared memory, and of a square rectangle only the upper
// triangle is computed.
//
// Expected limit: arithmetic. For every component a thread reads 16 words in four loads, and
// subtracts and multiplies 64 times each: 128 instructions, so that loads of all kinds are some 4 %
// of the instructions. 64 sums, 16 operands, and a slice's 8 words that are being loaded
// fit the 128 registers of two blocks a multiprocessor.
//
// Slices have 8 components, stored component by component, so that a thread's operands are
// neighbours. There are two: one is used while the next one is loaded. Points beyond the rectangle
// are copies of its last, so that the loop needs no test; components beyond the end of a
// row are zeros, which add nothing (launches.hpp). Rows of more than a block of the canonical sum
// leave their sums in `out` between blocks, where the same thread finds them: registers are full,
// and it happens once in 512 components.
//
// A warp is 8 threads high and 4 wide: it writes 64 bytes or more in a row of `out` and 128 in a
// row of its mirror image, whole sectors of memory both, with no detour.
//
// Few points make few squares of 128, and most multiprocessors would idle. Then the same kernel
// takes squares of 64 or 32.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/distance/finish.cuh"
#include "kernels/cuda/distance/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kEdgeThreads = 16;  // a block's square is as many threads wide and high
constexpr unsigned kWarpWidth = 4;
constexpr unsigned kWarpHeight = 8;
constexpr unsigned kSlice = 8;
constexpr unsigned kBlockSlices = static_cast<unsigned>(distance::kBlock) / kSlice;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned kBlocksAProcessor = 1;  // 7.5: what does not fit 128 registers there would go to
                                           // memory
#else
constexpr unsigned kBlocksAProcessor = 2;
#endif
static_assert(distance::kBlock % kSlice == 0 && kPointPadding % kSlice == 0);

/// kEdge: distances of a thread in each direction.
template <unsigned kEdge>
struct Shape {
    static constexpr unsigned kTile = kEdgeThreads * kEdge;
    static constexpr unsigned kVector = kEdge < 4 ? kEdge : 4;  // neighbouring ones
    static constexpr unsigned kGroups = kEdge / kVector;
    static constexpr unsigned kQuads = 2 * kTile * kSlice / 4;  // loads of 16 bytes that bring a
                                                                // slice of both operands
    static constexpr unsigned kLoads = (kQuads + kThreads - 1) / kThreads;

    /// Where, in the block's square, the thread at `at` of kEdgeThreads has its distance number
    /// `i`.
    static __device__ unsigned place(unsigned at, unsigned i) {
        return i / kVector * (kEdgeThreads * kVector) + at * kVector + i % kVector;
    }
};

template <unsigned kVector>
struct alignas(kVector * sizeof(float)) Vector {
    float at[kVector];
};

/// As many of `values` as `left` says, at once where memory allows.
template <unsigned kVector>
__device__ inline void store(float* to, const Vector<kVector>& values, std::size_t left) {
    if (left >= kVector && reinterpret_cast<std::uintptr_t>(to) % sizeof values == 0) {
        // An intrinsic: of an assignment the compiler makes one store for each number, since the
        // other branch has these too.
        if constexpr (kVector == 4) {
            __stwb(reinterpret_cast<float4*>(to),
                   float4{values.at[0], values.at[1], values.at[2], values.at[3]});
        } else {
            static_assert(kVector == 2);
            __stwb(reinterpret_cast<float2*>(to), float2{values.at[0], values.at[1]});
        }
        return;
    }
#pragma unroll
    for (unsigned v = 0; v < kVector; ++v) {
        if (v < left) to[v] = values.at[v];
    }
}

/// Row and column of square number `t` in the upper triangle, column by column.
__device__ inline void find_in_triangle(unsigned t, unsigned& row, unsigned& column) {
    column = static_cast<unsigned>((sqrtf(8.0F * static_cast<float>(t) + 1.0F) - 1.0F) / 2.0F);
    const auto before = [](unsigned c) { return std::uint64_t{c} * (c + 1) / 2; };
    while (before(column) > t) --column;
    while (before(column + 1) <= t) ++column;
    row = t - static_cast<unsigned>(before(column));
}

/// Where a thread's sums belong: at S::place(down, i), S::place(across, j) of a tile.
struct Place {
    std::size_t first_row;  ///< of the tile, in the rectangle
    std::size_t first_column;
    unsigned down;  ///< of the thread, in the tile
    unsigned across;
};

/// Writes the distances to the rows of `out`, for each row of the tile.
template <unsigned kEdge>
__device__ void store_rows(const DistanceTask& task, const Place& place,
                           const float (&distances)[kEdge][kEdge]) {
    using S = Shape<kEdge>;
    using Part = Vector<S::kVector>;
#pragma unroll
    for (unsigned i = 0; i < kEdge; ++i) {
        const std::size_t row = place.first_row + S::place(place.down, i);
        if (row >= task.rectangle.rows) continue;
#pragma unroll
        for (unsigned g = 0; g < S::kGroups; ++g) {
            const std::size_t column = place.first_column + S::place(place.across, g * S::kVector);
            if (column >= task.rectangle.columns) continue;
            Part part;
#pragma unroll
            for (unsigned v = 0; v < S::kVector; ++v) part.at[v] = distances[i][g * S::kVector + v];
            store(task.out + row * task.stride + column, part, task.rectangle.columns - column);
        }
    }
}

/// Writes them to the columns of `mirror`.
template <unsigned kEdge>
__device__ void store_columns(const DistanceTask& task, const Place& place,
                              const float (&distances)[kEdge][kEdge], float* mirror,
                              std::size_t mirror_stride) {
    using S = Shape<kEdge>;
    using Part = Vector<S::kVector>;
#pragma unroll
    for (unsigned j = 0; j < kEdge; ++j) {
        const std::size_t column = place.first_column + S::place(place.across, j);
        if (column >= task.rectangle.columns) continue;
#pragma unroll
        for (unsigned g = 0; g < S::kGroups; ++g) {
            const std::size_t row = place.first_row + S::place(place.down, g * S::kVector);
            if (row >= task.rectangle.rows) continue;
            Part part;
#pragma unroll
            for (unsigned v = 0; v < S::kVector; ++v) part.at[v] = distances[g * S::kVector + v][j];
            store(mirror + column * mirror_stride + row, part, task.rectangle.rows - row);
        }
    }
}

/// half: the rectangle is square, and blocks are of its upper triangle.
template <unsigned kEdge>
__global__ void __launch_bounds__(kThreads, kBlocksAProcessor)
    distances(DistanceTask task, bool half) {
    using S = Shape<kEdge>;
    using Part = Vector<S::kVector>;
    __shared__ __align__(16) float slices[2][2][kSlice][S::kTile];  // of rows and of columns, twice

    unsigned tile_row;
    unsigned tile_column;
    if (half) {
        find_in_triangle(blockIdx.x, tile_row, tile_column);
    } else {
        const auto across =
            static_cast<unsigned>((task.rectangle.columns + S::kTile - 1) / S::kTile);
        tile_row = blockIdx.x / across;
        tile_column = blockIdx.x % across;
    }
    const std::size_t first_row = std::size_t{tile_row} * S::kTile;  // of the rectangle
    const std::size_t first_column = std::size_t{tile_column} * S::kTile;

    // What this thread brings: neighbours of a warp bring neighbouring points, so that they write
    // to different banks. A thread that brings twice brings the same part of rows and of columns.
    constexpr unsigned kHalf = S::kQuads / 2;
    const unsigned point_of_tile = threadIdx.x % S::kTile;
    const unsigned component = threadIdx.x / S::kTile % 2 * 4;
    const bool brings = S::kQuads >= kThreads || threadIdx.x < S::kQuads;
    const float* from[S::kLoads];
#pragma unroll
    for (unsigned l = 0; l < S::kLoads; ++l) {
        const unsigned operand = (threadIdx.x + l * kThreads) / kHalf % 2;
        const std::size_t point =
            operand == 0
                ? task.rectangle.first_row + min(first_row + point_of_tile, task.rectangle.rows - 1)
                : task.rectangle.first_column +
                      min(first_column + point_of_tile, task.rectangle.columns - 1);
        from[l] = task.points + point * task.point_stride + component;
    }
    float* to = &slices[0][threadIdx.x / kHalf % 2][component][point_of_tile];
    float4 coming[S::kLoads];
    const auto fetch = [&] {
        if (!brings) return;
#pragma unroll
        for (unsigned l = 0; l < S::kLoads; ++l) {
            coming[l] = __ldg(reinterpret_cast<const float4*>(from[l]));
            from[l] += kSlice;
        }
    };
    const auto put = [&](unsigned slice) {
        if (!brings) return;
#pragma unroll
        for (unsigned l = 0; l < S::kLoads; ++l) {
            float* const at = to + (slice % 2 * 2 + l) * (kSlice * S::kTile);
            at[0] = coming[l].x;
            at[S::kTile] = coming[l].y;
            at[2 * S::kTile] = coming[l].z;
            at[3 * S::kTile] = coming[l].w;
        }
    };

    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    constexpr unsigned kWarpsAcross = kEdgeThreads / kWarpWidth;
    const unsigned across = warp % kWarpsAcross * kWarpWidth + lane % kWarpWidth;
    const unsigned down = warp / kWarpsAcross * kWarpHeight + lane / kWarpWidth;

    float acc[kEdge][kEdge] = {};
    const auto slice_count = static_cast<unsigned>((task.dim + kSlice - 1) / kSlice);
    fetch();
    put(0);
    __syncthreads();
    for (unsigned slice = 0;;) {
        const unsigned end = min(slice_count, slice + kBlockSlices);
        for (; slice < end; ++slice) {
            if (slice + 1 < slice_count) fetch();
            const float* const row_parts = &slices[slice % 2][0][0][down * S::kVector];
            const float* const column_parts = &slices[slice % 2][1][0][across * S::kVector];
#pragma unroll
            for (unsigned k = 0; k < kSlice; ++k) {
                Part x[S::kGroups];
                Part y[S::kGroups];
#pragma unroll
                for (unsigned g = 0; g < S::kGroups; ++g) {
                    const unsigned at = k * S::kTile + g * kEdgeThreads * S::kVector;
                    x[g] = *reinterpret_cast<const Part*>(row_parts + at);
                    y[g] = *reinterpret_cast<const Part*>(column_parts + at);
                }
#pragma unroll
                for (unsigned i = 0; i < kEdge; ++i) {
#pragma unroll
                    for (unsigned j = 0; j < kEdge; ++j) {
                        const float d = __fsub_rn(x[i / S::kVector].at[i % S::kVector],
                                                  y[j / S::kVector].at[j % S::kVector]);
                        acc[i][j] = __fmaf_rn(d, d, acc[i][j]);
                    }
                }
            }
            if (slice + 1 < slice_count) put(slice + 1);
            __syncthreads();
        }
        const bool first = slice <= kBlockSlices;
        const bool last = slice == slice_count;
        if (first && last) break;
            // The sum of the blocks so far is in `out`.
#pragma unroll
        for (unsigned i = 0; i < kEdge; ++i) {
#pragma unroll
            for (unsigned j = 0; j < kEdge; ++j) {
                const std::size_t row = first_row + S::place(down, i);
                const std::size_t column = first_column + S::place(across, j);
                if (row >= task.rectangle.rows || column >= task.rectangle.columns) continue;
                float* const sum = task.out + row * task.stride + column;
                if (!first) acc[i][j] = __fadd_rn(*sum, acc[i][j]);
                if (last) continue;
                *sum = acc[i][j];
                acc[i][j] = 0;
            }
        }
        if (last) break;
    }

#pragma unroll
    for (unsigned i = 0; i < kEdge; ++i) {
#pragma unroll
        for (unsigned j = 0; j < kEdge; ++j) acc[i][j] = finish(task.metric, acc[i][j]);
    }
    const Place place{first_row, first_column, down, across};
    store_rows(task, place, acc);
    float* const mirror = half ? task.out : task.mirror;
    const std::size_t mirror_stride = half ? task.stride : task.mirror_stride;
    if (mirror == nullptr || (half && tile_row == tile_column)) return;
    store_columns(task, place, acc, mirror, mirror_stride);
}

std::size_t tiles_of(const distance::Rectangle& rectangle, std::size_t tile) {
    const std::size_t down = (rectangle.rows + tile - 1) / tile;
    const std::size_t across = (rectangle.columns + tile - 1) / tile;
    return rectangle.on_diagonal() ? down * (down + 1) / 2 : down * across;
}

template <unsigned kEdge>
cudaError_t launch(const DistanceTask& task, cudaStream_t stream) {
    const std::size_t tiles = tiles_of(task.rectangle, Shape<kEdge>::kTile);
    if (tiles > 0x7FFFFFFF) return cudaErrorInvalidConfiguration;
    distances<kEdge>
        <<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(task, task.rectangle.on_diagonal());
    return cudaGetLastError();
}

/// The tile whose blocks are done soonest if each multiprocessor has one at a time: a smaller one
/// costs more for each distance, since its threads load more for each.
unsigned choose_tile(const DistanceTask& task) {
    struct Choice {
        unsigned tile;
        double cost;
    };
    constexpr Choice kChoices[] = {{128, 1.0}, {64, 1.6}, {32, 3.0}};
    const auto processors = static_cast<std::size_t>(std::max(task.processors, 1));
    unsigned best = 0;
    double least = 0;
    for (const Choice& choice : kChoices) {
        const std::size_t rounds =
            (tiles_of(task.rectangle, choice.tile) + processors - 1) / processors;
        const double cost = static_cast<double>(rounds) * choice.tile * choice.tile * choice.cost;
        if (best == 0 || cost < least) {
            best = choice.tile;
            least = cost;
        }
    }
    return best;
}

}  // namespace

cudaError_t launch_register_tiled(const DistanceTask& task, unsigned tile, cudaStream_t stream) {
    switch (tile != 0 ? tile : choose_tile(task)) {
        case 32:
            return launch<2>(task, stream);
        case 64:
            return launch<4>(task, stream);
        default:
            return launch<8>(task, stream);
    }
}

}  // namespace gloved::kernels::cuda
