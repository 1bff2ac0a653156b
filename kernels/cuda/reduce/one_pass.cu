// The one-pass reduction: one kernel reads every number once, in the order of the file, and a small
// one folds its blocks' results.
//
// Expected limit: the memory's read bandwidth; 50,000,000 matrices of 3 x 3 doubles are 3.6 GB,
// 1.16 ms at 3.1 TB/s. It writes little beside that: a row of `width` numbers a block, or
// for wide matrices some 256 loads a block.
//
// A thread takes 16 bytes at a time, eight loads under way at once. All its loads are a whole
// number of matrices apart, so that each of its two or four running minima and maxima belongs to
// one element throughout, and there is neither a transposition nor a division in the loop.
// Neighbouring blocks read neighbouring memory at about the same time.
//
// Numbers are compared as integers (order.cuh): some six instructions for each float, fifteen for
// each double, a third of what an H100 can issue in the time that the memory takes.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

#include "kernels/cuda/reduce/launches.hpp"
#include "kernels/cuda/reduce/order.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kLoadBytes = 16;
constexpr unsigned kLoadsUnderWay = 8;
constexpr unsigned kBlocksPerProcessor = 8;
/// Wide super-rows are some blocks wide at least, so that a last block that is nearly idle does not
/// count.
constexpr std::size_t kMinTiles = 16;
/// Where an odd width would make super-rows of several matrices longer than this, threads load
/// single numbers instead: the blocks' results, as long as a super-row, would take memory that the
/// matrices need.
constexpr std::size_t kMaxPeriod = std::size_t{1} << 22;
constexpr unsigned kFoldThreads = 256;
constexpr unsigned kFoldRows = 32;

template <class T>
constexpr unsigned kWide = kLoadBytes / sizeof(T);

/// Loads kLoad neighbouring numbers at once, marked to leave the caches first.
template <class T, unsigned kLoad>
struct Loaded {
    T numbers[kLoad];

    static __device__ Loaded from(const T* at) {
        Loaded loaded;
        if constexpr (kLoad == 1) {
            loaded.numbers[0] = __ldcs(at);
        } else {
            static_assert(sizeof(loaded) == sizeof(uint4));
            const uint4 word = __ldcs(reinterpret_cast<const uint4*>(at));
            memcpy(&loaded, &word, sizeof word);
        }
        return loaded;
    }
};

/// Block (tile, slice) takes kThreads * kLoad columns of the super-rows slice, slice + slices, …
template <class T, unsigned kLoad, bool kFolded>
__global__ void __launch_bounds__(kThreads)
    pass(const T* values, std::size_t count, std::size_t period, std::size_t width, T* partial_low,
         T* partial_high) {
    using Key = typename Order<T>::Key;
    Extremes<T> extremes[kLoad];
    const std::size_t tile_begin = std::size_t{blockIdx.x} * kThreads * kLoad;
    const std::size_t column = tile_begin + threadIdx.x * kLoad;
    const std::size_t slice = blockIdx.y;
    const std::size_t slices = gridDim.y;
    const bool mine = column < period;
    // Super-rows that have all numbers of this column's load, and those of them that are this
    // slice's.
    const std::size_t rows =
        mine && column + kLoad <= count ? (count - kLoad - column) / period + 1 : 0;
    std::size_t left = rows > slice ? (rows - slice + slices - 1) / slices : 0;
    const std::size_t step = slices * period;
    const T* at = values + slice * period + column;

    for (; left >= kLoadsUnderWay; left -= kLoadsUnderWay) {
        Loaded<T, kLoad> loaded[kLoadsUnderWay];
#pragma unroll
        for (unsigned l = 0; l < kLoadsUnderWay; ++l)
            loaded[l] = Loaded<T, kLoad>::from(at + l * step);
#pragma unroll
        for (unsigned l = 0; l < kLoadsUnderWay; ++l) {
#pragma unroll
            for (unsigned v = 0; v < kLoad; ++v) extremes[v].take(loaded[l].numbers[v]);
        }
        at += kLoadsUnderWay * step;
    }
    if (left > 0) {
        // As many under way: few super-rows are all that large matrices have.
        Loaded<T, kLoad> loaded[kLoadsUnderWay];
#pragma unroll
        for (unsigned l = 0; l < kLoadsUnderWay; ++l) {
            if (l < left) loaded[l] = Loaded<T, kLoad>::from(at + l * step);
        }
#pragma unroll
        for (unsigned l = 0; l < kLoadsUnderWay; ++l) {
#pragma unroll
            for (unsigned v = 0; v < kLoad; ++v) {
                if (l < left) extremes[v].take(loaded[l].numbers[v]);
            }
        }
    }
    // The last load of all may be cut off by the end.
    if (kLoad > 1 && mine && rows % slices == slice) {
        const std::size_t begin = rows * period + column;
#pragma unroll
        for (unsigned v = 0; v < kLoad; ++v) {
            if (begin + v < count) extremes[v].take(values[begin + v]);
        }
    }

    if constexpr (kFolded) {
        // Numbers a width apart are of the same element: the upper half of them is folded onto the
        // lower until a row is left.
        __shared__ Key lows[kThreads * kLoad];
        __shared__ Key highs[kThreads * kLoad];
#pragma unroll
        for (unsigned v = 0; v < kLoad; ++v) {
            lows[threadIdx.x * kLoad + v] = extremes[v].low;
            highs[threadIdx.x * kLoad + v] = extremes[v].high;
        }
        const auto row = static_cast<unsigned>(width);
        for (unsigned length = kThreads * kLoad; length > row;) {
            const unsigned half = ((length + row - 1) / row + 1) / 2 * row;
            __syncthreads();
            for (unsigned i = threadIdx.x; i + half < length; i += kThreads) {
                lows[i] = min(lows[i], lows[i + half]);
                highs[i] = max(highs[i], highs[i + half]);
            }
            length = half;
        }
        __syncthreads();
        const std::size_t block = slice * gridDim.x + blockIdx.x;
        const auto first = static_cast<unsigned>(tile_begin % width);
        for (unsigned i = threadIdx.x; i < row; i += kThreads) {
            const unsigned element = (first + i) % row;
            partial_low[block * row + element] = Order<T>::value(lows[i]);
            partial_high[block * row + element] = Order<T>::value(highs[i]);
        }
    } else if (mine) {
#pragma unroll
        for (unsigned v = 0; v < kLoad; ++v) {
            partial_low[slice * period + column + v] = Order<T>::value(extremes[v].low);
            partial_high[slice * period + column + v] = Order<T>::value(extremes[v].high);
        }
    }
}

/// low[e], high[e] = those of column e of (rows, width), and of what they were unless `first`.
/// Blocks of (x, y) threads take x columns.
template <class T>
__global__ void fold(const T* partial_low, const T* partial_high, std::size_t rows,
                     std::size_t width, bool first, T* low, T* high) {
    using Key = typename Order<T>::Key;
    __shared__ Key lows[kFoldThreads * 4];
    __shared__ Key highs[kFoldThreads * 4];
    const std::size_t element = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    Extremes<T> extremes;
    if (element < width) {
#pragma unroll 4
        for (std::size_t row = threadIdx.y; row < rows; row += blockDim.y) {
            extremes.take(partial_low[row * width + element], partial_high[row * width + element]);
        }
    }
    lows[threadIdx.y * blockDim.x + threadIdx.x] = extremes.low;
    highs[threadIdx.y * blockDim.x + threadIdx.x] = extremes.high;
    __syncthreads();
    if (threadIdx.y != 0 || element >= width) return;
    for (unsigned y = 1; y < blockDim.y; ++y) {
        extremes.take_low(lows[y * blockDim.x + threadIdx.x]);
        extremes.take_high(highs[y * blockDim.x + threadIdx.x]);
    }
    if (!first) extremes.take(low[element], high[element]);
    low[element] = Order<T>::value(extremes.low);
    high[element] = Order<T>::value(extremes.high);
}

}  // namespace

template <class T>
ReducePlan plan_reduce(std::size_t width, std::size_t values, int processors) {
    assert(width > 0);
    const std::size_t block_numbers = std::size_t{kThreads} * kWide<T>;
    ReducePlan plan;
    plan.width = width;
    plan.load = kWide<T>;
    plan.folded = width <= block_numbers;
    if (plan.folded) {
        plan.period = std::lcm(width, block_numbers);
    } else {
        plan.period = std::lcm(width, std::size_t{plan.load});
        if (plan.period > kMaxPeriod && plan.period != width) {
            plan.load = 1;
            plan.period = width;
        }
        plan.period *= std::max<std::size_t>(1, kMinTiles * block_numbers / plan.period);
    }
    const std::size_t tile = std::size_t{kThreads} * plan.load;
    plan.tiles = static_cast<unsigned>((plan.period + tile - 1) / tile);
    const std::size_t blocks =
        static_cast<std::size_t>(std::max(processors, 1)) * kBlocksPerProcessor;
    const std::size_t super_rows =
        std::max<std::size_t>(1, (values + plan.period - 1) / plan.period);
    plan.slices =
        static_cast<unsigned>(std::clamp<std::size_t>(blocks / plan.tiles, 1, super_rows));
    plan.partial_rows =
        plan.folded ? std::size_t{plan.tiles} * plan.slices : plan.slices * (plan.period / width);
    return plan;
}

template <class T>
cudaError_t launch_one_pass(const ReducePlan& plan, const T* values, std::size_t count, bool first,
                            const ReduceResult<T>& result, cudaStream_t stream) {
    const auto kernel = plan.folded      ? pass<T, kWide<T>, true>
                        : plan.load == 1 ? pass<T, 1, false>
                                         : pass<T, kWide<T>, false>;
    kernel<<<dim3(plan.tiles, plan.slices), kThreads, 0, stream>>>(
        values, count, plan.period, plan.width, result.partial_low, result.partial_high);
    if (const cudaError_t launched = cudaGetLastError(); launched != cudaSuccess) return launched;
    unsigned rows = 1;
    while (rows < kFoldRows && rows * 2 <= plan.partial_rows) rows *= 2;
    const unsigned columns = std::max(32U, kFoldThreads / rows);
    static_assert(kFoldRows * 32 == kFoldThreads * 4);
    const auto blocks = static_cast<unsigned>((plan.width + columns - 1) / columns);
    fold<T><<<blocks, dim3(columns, rows), 0, stream>>>(result.partial_low, result.partial_high,
                                                        plan.partial_rows, plan.width, first,
                                                        result.low, result.high);
    return cudaGetLastError();
}

#define GLOVED_INSTANCES(T)                                                                 \
    template ReducePlan plan_reduce<T>(std::size_t, std::size_t, int);                      \
    template cudaError_t launch_one_pass<T>(const ReducePlan&, const T*, std::size_t, bool, \
                                            const ReduceResult<T>&, cudaStream_t)
GLOVED_INSTANCES(float);
GLOVED_INSTANCES(double);
GLOVED_INSTANCES(std::int32_t);
#undef GLOVED_INSTANCES

}  // namespace gloved::kernels::cuda
