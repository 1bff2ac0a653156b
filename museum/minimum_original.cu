// The reduction of the original: all values of an element side by side, a reduction kernel whose
// blocks of 1,024 threads each turn 2,048 of them into one and leave it where they began, a kernel
// that moves what is left together, and again until one value an element is left.
//
// Expected limit: the first round reads every number once, later ones a 2,048th of that, so that
// its computing alone is near the memory's bandwidth for many matrices; what it costs more is
// launches, the barriers of a tree that idles half of its threads at every step, and above all the
// layout: a transposition that reads and writes everything once more.
#include <utility>

#include "museum/minimum.hpp"

namespace gloved::museum {
namespace {

constexpr unsigned kThreads = kBlockValues / 2;
constexpr unsigned kTile = 32;
constexpr unsigned kTileRows = 8;
constexpr unsigned kGatherThreads = 256;

/// Through shared memory, so that both sides are read and written in lines.
__global__ void lay_out(const double* matrices, std::size_t count, std::size_t width,
                        double* laid_out) {
    __shared__ double tile[kTile][kTile + 1];
    const std::size_t tiles_across = (width + kTile - 1) / kTile;
    const std::size_t element = blockIdx.x % tiles_across * kTile;
    const std::size_t matrix = blockIdx.x / tiles_across * kTile;
    for (unsigned y = threadIdx.y; y < kTile; y += kTileRows) {
        if (matrix + y < count && element + threadIdx.x < width)
            tile[y][threadIdx.x] = matrices[(matrix + y) * width + element + threadIdx.x];
    }
    __syncthreads();
    for (unsigned y = threadIdx.y; y < kTile; y += kTileRows) {
        if (matrix + threadIdx.x < count && element + y < width)
            laid_out[(element + y) * count + matrix + threadIdx.x] = tile[threadIdx.x][y];
    }
}

/// Block b of an element: its values [2048 b, 2048 (b + 1)) become a smallest, at the first place
/// of them, and a largest, at the second.
__global__ void __launch_bounds__(kThreads)
    reduce(Lists lists, std::size_t count, std::size_t blocks) {
    __shared__ double lows[kThreads];
    __shared__ double highs[kThreads];
    const std::size_t begin = blockIdx.x % blocks * kBlockValues;
    const std::size_t here = min(count - begin, std::size_t{kBlockValues});
    double* const low = lists.low + blockIdx.x / blocks * lists.stride + begin;
    double* const high = lists.high + blockIdx.x / blocks * lists.stride + begin;
    // Threads without a value take the first one, which is in the result anyhow.
    const std::size_t one = threadIdx.x < here ? threadIdx.x : 0;
    const std::size_t two = threadIdx.x + kThreads < here ? threadIdx.x + kThreads : 0;
    lows[threadIdx.x] = fmin(low[one], low[two]);
    highs[threadIdx.x] = fmax(high[one], high[two]);
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        lows[threadIdx.x] = fmin(lows[threadIdx.x], lows[threadIdx.x + half]);
        highs[threadIdx.x] = fmax(highs[threadIdx.x], highs[threadIdx.x + half]);
    }
    // A single value is its own smallest and largest where it stands.
    if (threadIdx.x != 0 || here == 1) return;
    low[0] = lows[0];
    high[1] = highs[0];
}

__global__ void compact(Lists from, std::size_t count, std::size_t blocks, std::size_t width,
                        Lists to) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= width * blocks) return;
    const std::size_t at = i / blocks * from.stride + i % blocks * kBlockValues;
    const bool single = count - i % blocks * kBlockValues == 1;
    to.low[i] = from.low[at];
    to.high[i] = from.high[at + (single ? 0 : 1)];
}

std::size_t divided(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

}  // namespace

cudaError_t launch_lay_out(const double* matrices, std::size_t count, std::size_t width,
                           double* laid_out, cudaStream_t stream) {
    const std::size_t blocks = divided(width, kTile) * divided(count, kTile);
    if (blocks > 0x7FFFFFFF) return cudaErrorInvalidConfiguration;
    lay_out<<<static_cast<unsigned>(blocks), dim3(kTile, kTileRows), 0, stream>>>(matrices, count,
                                                                                  width, laid_out);
    return cudaGetLastError();
}

cudaError_t launch_minimum(double* laid_out, std::size_t count, std::size_t width, double* scratch,
                           double* low, double* high, cudaStream_t stream) {
    const std::size_t room = minimum_scratch(count, width) / 4;
    Lists lists{laid_out, laid_out, count};
    Lists next{scratch, scratch + room, 0};
    Lists after{scratch + 2 * room, scratch + 3 * room, 0};
    while (count > 1) {
        const std::size_t blocks = divided(count, kBlockValues);
        if (width * blocks > 0x7FFFFFFF) return cudaErrorInvalidConfiguration;
        reduce<<<static_cast<unsigned>(width * blocks), kThreads, 0, stream>>>(lists, count,
                                                                               blocks);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
        next.stride = blocks;
        compact<<<static_cast<unsigned>(divided(width * blocks, kGatherThreads)), kGatherThreads, 0,
                  stream>>>(lists, count, blocks, width, next);
        if (const auto error = cudaGetLastError(); error != cudaSuccess) return error;
        lists = next;
        std::swap(next, after);
        count = blocks;
    }
    const std::size_t bytes = width * sizeof(double);
    const auto copied = cudaMemcpyAsync(low, lists.low, bytes, cudaMemcpyDeviceToDevice, stream);
    if (copied != cudaSuccess) return copied;
    return cudaMemcpyAsync(high, lists.high, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace gloved::museum
