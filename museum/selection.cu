#include <cstdint>

#include "museum/selection.hpp"

namespace gloved::museum {
namespace {

__device__ std::size_t thread_of_grid() {
    return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Puts `entry` in its place in list[0, count), whose end moves on by one place: into list[count],
/// which is overwritten.
__device__ void insert(Entry* list, unsigned count, Entry entry) {
    unsigned place = count;
    for (; place > 0 && comes_before(entry, list[place - 1]); --place)
        list[place] = list[place - 1];
    list[place] = entry;
}

__global__ void first_merge_in_global_memory(Entry* entries, std::size_t lists, unsigned wanted) {
    const std::size_t list = thread_of_grid();
    if (list >= lists) return;
    Entry* chunk = entries + list * wanted;
    for (unsigned i = 1; i < wanted; ++i) insert(chunk, i, chunk[i]);
}

__global__ void first_merge_in_private_memory(Entry* entries, std::size_t lists, unsigned wanted) {
    const std::size_t list = thread_of_grid();
    if (list >= lists) return;
    Entry* chunk = entries + list * wanted;
    Entry sorted[kMaxHits];
    for (unsigned i = 0; i < wanted; ++i) insert(sorted, i, chunk[i]);
    for (unsigned i = 0; i < wanted; ++i) chunk[i] = sorted[i];
}

// A round merges list t with list t + kept, for every t that has such a partner, into list t. Both
// belong to thread t alone, so a round needs no second buffer, and what is left stays together at
// the front.

__global__ void merge_in_global_memory(Entry* entries, std::size_t lists, std::size_t kept,
                                       unsigned wanted) {
    const std::size_t list = thread_of_grid();
    if (list + kept >= lists) return;
    Entry* into = entries + list * wanted;
    const Entry* from = entries + (list + kept) * wanted;
    for (unsigned i = 0; i < wanted && comes_before(from[i], into[wanted - 1]); ++i)
        insert(into, wanted - 1, from[i]);
}

__global__ void merge_in_private_memory(Entry* entries, std::size_t lists, std::size_t kept,
                                        unsigned wanted) {
    const std::size_t list = thread_of_grid();
    if (list + kept >= lists) return;
    Entry* left = entries + list * wanted;
    const Entry* right = entries + (list + kept) * wanted;
    Entry merged[kMaxHits];
    unsigned l = 0;
    unsigned r = 0;
    // l + r < wanted: neither list can run out before the merged one is full.
    for (unsigned i = 0; i < wanted; ++i)
        merged[i] = comes_before(right[r], left[l]) ? right[r++] : left[l++];
    for (unsigned i = 0; i < wanted; ++i) left[i] = merged[i];
}

}  // namespace

Status first_merge(bool in_global_memory, Entry* entries, std::size_t lists, std::size_t wanted,
                   const kernels::cuda::Stream& stream) {
    const auto kernel =
        in_global_memory ? first_merge_in_global_memory : first_merge_in_private_memory;
    kernel<<<blocks_for(lists), kBlockThreads, 0, stream.get()>>>(entries, lists,
                                                                  static_cast<unsigned>(wanted));
    return kernels::cuda::check(cudaGetLastError(), "launch of first_merge");
}

Status botched_merge_sort(bool in_global_memory, Entry* entries, std::size_t lists,
                          std::size_t wanted, bool wait_each_round,
                          const kernels::cuda::Stream& stream) {
    const auto kernel = in_global_memory ? merge_in_global_memory : merge_in_private_memory;
    while (lists > 1) {
        const std::size_t kept = (lists + 1) / 2;
        kernel<<<blocks_for(lists - kept), kBlockThreads, 0, stream.get()>>>(
            entries, lists, kept, static_cast<unsigned>(wanted));
        Status launched = kernels::cuda::check(cudaGetLastError(), "launch of botched_merge_sort");
        if (!launched) return launched;
        if (wait_each_round) {
            if (Status done = stream.synchronize(); !done) return done;
        }
        lists = kept;
    }
    return {};
}

}  // namespace gloved::museum
