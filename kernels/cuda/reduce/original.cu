// The reduction of the program that gloved-matmin replaces: all values of an element side by side,
// a reduction kernel whose blocks of 1,024 threads each turn 2,048 of them into one and leave it
// where they began, a kernel that moves what is left together, and again until one value an element
// is left.
//
// Expected limit: the first round reads every number once, later ones a 2,048th of that, so that
// its computing alone is near the memory's bandwidth for many matrices; what it costs more is
// launches, the barriers of a tree that idles half of its threads at every step, and above all the
// layout: a transposition that reads and writes everything once more.
#include <cstring>
#include <utility>

#include "kernels/cuda/reduce/launches.hpp"
#include "kernels/cuda/reduce/order.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = kOriginalValues / 2;
constexpr unsigned kTile = 32;
constexpr unsigned kTileRows = 8;
constexpr unsigned kGatherThreads = 256;

/// Through shared memory, so that both sides are read and written in lines.
template <class T>
__global__ void lay_out(const T* matrices, std::size_t count, std::size_t width, std::size_t at,
                        std::size_t capacity, T* laid_out) {
    __shared__ T tile[kTile][kTile + 1];
    const std::size_t tiles_across = (width + kTile - 1) / kTile;
    const std::size_t element = blockIdx.x % tiles_across * kTile;
    const std::size_t matrix = blockIdx.x / tiles_across * kTile;
    for (unsigned y = threadIdx.y; y < kTile; y += kTileRows) {
        if (matrix + y < count && element + threadIdx.x < width) {
            tile[y][threadIdx.x] = matrices[(matrix + y) * width + element + threadIdx.x];
        }
    }
    __syncthreads();
    for (unsigned y = threadIdx.y; y < kTile; y += kTileRows) {
        if (matrix + threadIdx.x < count && element + y < width) {
            laid_out[(element + y) * capacity + at + matrix + threadIdx.x] = tile[threadIdx.x][y];
        }
    }
}

/// One number of `blocks` for each of `width` elements, element e at e * stride: smallest and
/// largest in a list of their own, which in the first round are the same list.
template <class T>
struct Lists {
    T* low = nullptr;
    T* high = nullptr;
    std::size_t stride = 0;
};

/// Block b of an element: its values [2048 b, 2048 (b + 1)) become a smallest, at the first place
/// of them, and a largest, at the second.
template <class T>
__global__ void __launch_bounds__(kThreads)
    reduce(Lists<T> lists, std::size_t count, std::size_t blocks) {
    using Key = typename Order<T>::Key;
    __shared__ Key lows[kThreads];
    __shared__ Key highs[kThreads];
    const std::size_t element = blockIdx.x / blocks;
    const std::size_t begin = blockIdx.x % blocks * kOriginalValues;
    const std::size_t here = min(count - begin, std::size_t{kOriginalValues});
    T* const low = lists.low + element * lists.stride + begin;
    T* const high = lists.high + element * lists.stride + begin;
    Extremes<T> extremes;
    if (threadIdx.x < here) extremes.take(low[threadIdx.x], high[threadIdx.x]);
    if (threadIdx.x + kThreads < here)
        extremes.take(low[threadIdx.x + kThreads], high[threadIdx.x + kThreads]);
    lows[threadIdx.x] = extremes.low;
    highs[threadIdx.x] = extremes.high;
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            lows[threadIdx.x] = min(lows[threadIdx.x], lows[threadIdx.x + half]);
            highs[threadIdx.x] = max(highs[threadIdx.x], highs[threadIdx.x + half]);
        }
    }
    // A single value is its own smallest and largest where it stands.
    if (threadIdx.x != 0 || here == 1) return;
    low[0] = Order<T>::value(lows[0]);
    high[1] = Order<T>::value(highs[0]);
}

template <class T>
__global__ void compact(Lists<T> from, std::size_t count, std::size_t blocks, std::size_t width,
                        Lists<T> to) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= width * blocks) return;
    const std::size_t element = i / blocks;
    const std::size_t begin = i % blocks * kOriginalValues;
    to.low[element * to.stride + i % blocks] = from.low[element * from.stride + begin];
    to.high[element * to.stride + i % blocks] =
        from.high[element * from.stride + begin + (count - begin > 1 ? 1 : 0)];
}

template <class T>
__global__ void take_first(Lists<T> lists, std::size_t width, bool first, T* low, T* high) {
    const std::size_t element = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (element >= width) return;
    Extremes<T> extremes;
    extremes.take(lists.low[element * lists.stride], lists.high[element * lists.stride]);
    if (!first) extremes.take(low[element], high[element]);
    low[element] = Order<T>::value(extremes.low);
    high[element] = Order<T>::value(extremes.high);
}

std::size_t divided(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

/// Whether a grid can have that many blocks.
bool fits_grid(std::size_t blocks) { return blocks <= 0x7FFFFFFF; }

}  // namespace

template <class T>
cudaError_t launch_lay_out(const T* matrices, std::size_t count, std::size_t width, std::size_t at,
                           std::size_t capacity, T* laid_out, cudaStream_t stream) {
    const std::size_t blocks = divided(width, kTile) * divided(count, kTile);
    if (!fits_grid(blocks)) return cudaErrorInvalidConfiguration;
    lay_out<T><<<static_cast<unsigned>(blocks), dim3(kTile, kTileRows), 0, stream>>>(
        matrices, count, width, at, capacity, laid_out);
    return cudaGetLastError();
}

template <class T>
cudaError_t launch_original(T* laid_out, std::size_t count, std::size_t width, std::size_t capacity,
                            bool first, T* gathered, const ReduceResult<T>& result,
                            cudaStream_t stream) {
    const std::size_t room = original_scratch(capacity, width) / 4;
    Lists<T> lists{laid_out, laid_out, capacity};
    Lists<T> next{gathered, gathered + room, 0};
    Lists<T> after{gathered + 2 * room, gathered + 3 * room, 0};
    while (count > 1) {
        const std::size_t blocks = divided(count, kOriginalValues);
        if (!fits_grid(width * blocks)) return cudaErrorInvalidConfiguration;
        reduce<T>
            <<<static_cast<unsigned>(width * blocks), kThreads, 0, stream>>>(lists, count, blocks);
        if (const cudaError_t launched = cudaGetLastError(); launched != cudaSuccess)
            return launched;
        next.stride = blocks;
        compact<T><<<static_cast<unsigned>(divided(width * blocks, kGatherThreads)), kGatherThreads,
                     0, stream>>>(lists, count, blocks, width, next);
        if (const cudaError_t launched = cudaGetLastError(); launched != cudaSuccess)
            return launched;
        lists = next;
        std::swap(next, after);
        count = blocks;
    }
    take_first<T>
        <<<static_cast<unsigned>(divided(width, kGatherThreads)), kGatherThreads, 0, stream>>>(
            lists, width, first, result.low, result.high);
    return cudaGetLastError();
}

#define GLOVED_INSTANCES(T)                                                                      \
    template cudaError_t launch_lay_out<T>(const T*, std::size_t, std::size_t, std::size_t,      \
                                           std::size_t, T*, cudaStream_t);                       \
    template cudaError_t launch_original<T>(T*, std::size_t, std::size_t, std::size_t, bool, T*, \
                                            const ReduceResult<T>&, cudaStream_t)
GLOVED_INSTANCES(float);
GLOVED_INSTANCES(double);
GLOVED_INSTANCES(std::int32_t);
#undef GLOVED_INSTANCES

}  // namespace gloved::kernels::cuda
