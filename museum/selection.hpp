// The selection of v1 to v4: FirstMerge, then BotchedMergeSort. With N = the number of hits wanted:
//
//   FirstMerge         one thread sorts one chunk of N entries, by insertion.
//   BotchedMergeSort   rounds: one thread merges two sorted lists of N and keeps the N best, until
//                      one list is left. «Botched», since a merge sort that throws half away at
//                      every merge sorts nothing.
//
// Expected limit: FirstMerge reads and writes all entries once, 16 bytes a row, but a thread's list
// is N · 8 bytes apart from its neighbour's, so a warp's access touches up to 32 sectors. The
// rounds are log2(rows / N) launches (18 for N = 10); the last dozen have less work than a launch
// costs.
#pragma once

#include <cstddef>

#include "common/result.hpp"
#include "kernels/cuda/runtime.hpp"
#include "museum/search.hpp"

namespace gloved::museum {

/// Chunks of `wanted` entries (1 to kMaxHits) that hold `rows` rows; the last one is filled up with
/// default entries.
inline std::size_t lists_for(std::size_t rows, std::size_t wanted) {
    return (rows + wanted - 1) / wanted;
}

/// Sorts each of `lists` chunks of `entries`, shape (lists, wanted), device memory: in place with
/// `in_global_memory` (v1), otherwise in an array of each thread's own, written back once. Enqueues
/// on `stream`, does not wait.
Status first_merge(bool in_global_memory, Entry* entries, std::size_t lists, std::size_t wanted,
                   const kernels::cuda::Stream& stream);

/// Leaves the `wanted` best of `lists` sorted lists in the first one, in order. Enqueues every
/// round on `stream`; with `wait_each_round` it waits for one before it launches the next.
Status botched_merge_sort(bool in_global_memory, Entry* entries, std::size_t lists,
                          std::size_t wanted, bool wait_each_round,
                          const kernels::cuda::Stream& stream);

}  // namespace gloved::museum
