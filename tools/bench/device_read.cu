#include "tools/bench/device_read_launch.hpp"

namespace gloved::bench {
namespace {

/// A result that random data practically never have.
constexpr unsigned kNever = 0x5EEDF00DU;

static_assert(sizeof(uint4) == kReadWordBytes);

__device__ inline unsigned mixed(unsigned x) {
    x = (x ^ (x >> 16)) * 0x7FEB352DU;
    x = (x ^ (x >> 15)) * 0x846CA68BU;
    return x ^ (x >> 16);
}

__global__ void fill(uint4* words, std::size_t count) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
        const unsigned low = mixed(static_cast<unsigned>(i));
        words[i] = {low, mixed(low), mixed(low + 1), mixed(low + 2)};
    }
}

/// Exclusive or of all words: a block takes tiles, a grid apart; no shared memory. Writing the
/// result if it is `never` keeps the compiler from removing the loads.
__global__ void __launch_bounds__(kReadThreads)
    read(const uint4* words, std::size_t count, unsigned never, std::uint32_t* sink) {
    uint4 sum{0, 0, 0, 0};
    const std::size_t step = std::size_t{gridDim.x} * kReadTile;
    for (std::size_t tile = std::size_t{blockIdx.x} * kReadTile; tile < count; tile += step) {
        uint4 loaded[kReadLoads];
        const std::size_t at = tile + threadIdx.x;
        if (tile + kReadTile <= count) {
#pragma unroll
            for (unsigned l = 0; l < kReadLoads; ++l)
                loaded[l] = __ldcs(words + at + std::size_t{l} * kReadThreads);
        } else {
#pragma unroll
            for (unsigned l = 0; l < kReadLoads; ++l) {
                const std::size_t word = at + std::size_t{l} * kReadThreads;
                loaded[l] = word < count ? __ldcs(words + word) : uint4{0, 0, 0, 0};
            }
        }
#pragma unroll
        for (unsigned l = 0; l < kReadLoads; ++l) {
            sum.x ^= loaded[l].x;
            sum.y ^= loaded[l].y;
            sum.z ^= loaded[l].z;
            sum.w ^= loaded[l].w;
        }
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == never) *sink = sum.x;
}

}  // namespace

int launch_fill(void* words, std::size_t count, unsigned blocks, CUstream_st* stream) {
    fill<<<blocks, kReadThreads, 0, stream>>>(static_cast<uint4*>(words), count);
    return cudaGetLastError();
}

int launch_read(const void* words, std::size_t count, unsigned blocks, std::uint32_t* sink,
                CUstream_st* stream) {
    read<<<blocks, kReadThreads, 0, stream>>>(static_cast<const uint4*>(words), count, kNever,
                                              sink);
    return cudaGetLastError();
}

}  // namespace gloved::bench
