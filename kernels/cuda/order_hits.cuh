// Ends a query on the device: the last of its blocks to be done puts what all have found in order.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// Counts this block as done, and tells whether all others were. What the block wrote is visible to
/// the last, and what all wrote is visible to it. All threads of the block call it.
__device__ inline bool is_last_block(std::uint32_t* done) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(done, 1U) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/// Orders the found rows of a query: a hit's place is the number of those before it. Writes the
/// answer and the hits, and sets the counters to 0. The last block calls it, with kThreads threads.
template <unsigned kThreads>
__device__ void order_hits(const DeviceQuery& query, double floor, const Workspace& work) {
    std::uint32_t* const counters = work.counters;
    const std::uint32_t count = __ldcg(counters + kFoundCounter);
    const std::uint32_t rescored = __ldcg(counters + kRescoredCounter);
    const std::uint32_t ruled_out = __ldcg(counters + kRuledOutCounter);
    __syncthreads();
    if (threadIdx.x == 0) {
        const std::uint32_t hits = count <= kFoundCapacity ? min(query.k, count) : 0;
        work.answers[0] = {floor, hits, count, rescored, rescored + ruled_out};
        for (std::uint32_t i = 0; i < kCounters; ++i) counters[i] = 0;
    }
    if (count > kFoundCapacity) return;
    const Found* const found = work.found;

    __shared__ Found tile[kThreads];
    for (std::uint32_t begin = 0; begin < count; begin += kThreads) {
        const std::uint32_t i = begin + threadIdx.x;
        Found mine;
        if (i < count) mine = found[i];
        std::uint32_t place = 0;
        for (std::uint32_t other = 0; other < count; other += kThreads) {
            __syncthreads();
            if (other + threadIdx.x < count) tile[threadIdx.x] = found[other + threadIdx.x];
            __syncthreads();
            const std::uint32_t size = min(kThreads, count - other);
            for (std::uint32_t j = 0; j < size; ++j) place += comes_before(tile[j], mine) ? 1 : 0;
        }
        if (i < count && place < query.k) work.hits[place] = mine;
    }
}

}  // namespace gloved::kernels::cuda
