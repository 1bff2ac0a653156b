// v3: eight threads share a row, so that each load of theirs is one whole 32-byte sector; their
// sums meet in shared memory.
//
// Expected limit: reading the model once, as far as 4-byte loads keep enough of it in flight; then
// allocation and waiting.
//
// The discarded variants share a row among 4, 16 and 32 threads (16, 64 and 128 bytes). 4: each
// load uses half a sector and leaves the other half to the cache. 16 and 32: no fewer sectors, but
// more threads idle where a row ends (300 = 18 · 16 + 12 = 9 · 32 + 12), fewer rows a warp and one
// or two more steps of the sum. Eight is the smallest group that wastes no sector.
//
// Every step of the sum ends with __syncwarp(), which also orders the shared memory of the warp's
// threads. All threads of a warp take part in it, those of rows that do not exist too.
//
// Layout: vectors packed (rows, dim), any alignment; a row starts in the middle of a sector unless
// dim % 8 == 0. Shared memory: 4 dim bytes for the query, 4 bytes a thread for the sums. Does not
// wait. The score is valid in the first thread of a group. Score: each addition on a product's way
// brings in at least one other product, or exactly the zero of a thread without elements: n
// roundings at most, the bound of score.hpp.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/resident_rung.hpp"
#include "kernels/cuda/ladder/score.hpp"

namespace gloved::kernels::ladder {
namespace {

template <unsigned kThreadsARow>
__global__ void dot_product(const DotArguments arguments) {
    static_assert(kThreadsARow <= 32 && (kThreadsARow & (kThreadsARow - 1)) == 0,
                  "a group must lie within a warp");
    extern __shared__ float query[];
    __shared__ float sums[kBlockThreads];
    for (unsigned i = threadIdx.x; i < arguments.dim; i += kBlockThreads)
        query[i] = arguments.query[i];
    __syncthreads();

    const std::size_t slot =
        (static_cast<std::size_t>(blockIdx.x) * kBlockThreads + threadIdx.x) / kThreadsARow;
    const unsigned part = threadIdx.x % kThreadsARow;
    float sum = 0;
    if (slot < arguments.rows) {
        const float* row = arguments.vectors + slot * arguments.dim;
        for (unsigned i = part; i < arguments.dim; i += kThreadsARow)
            sum = fmaf(query[i], row[i], sum);
    }
    sums[threadIdx.x] = sum;
    __syncwarp();
    for (unsigned offset = kThreadsARow / 2; offset > 0; offset /= 2) {
        if (part < offset) sums[threadIdx.x] += sums[threadIdx.x + offset];
        __syncwarp();
    }
    if (part != 0 || slot >= arguments.slots) return;
    if (slot >= arguments.rows) {
        arguments.entries[slot] = Entry();
        return;
    }
    const float score = float_score(sums[threadIdx.x], arguments.query_norm, arguments.norms[slot]);
    arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

template <unsigned kThreadsARow>
Status launch_dot(const DotArguments& arguments, const cuda::Stream& stream) {
    return launch("v3 dot_product", dot_product<kThreadsARow>,
                  blocks_for(arguments.slots * kThreadsARow), arguments.dim * sizeof(float), stream,
                  arguments);
}

template <unsigned kThreadsARow>
constexpr const RungInfo& info_of() {
    if constexpr (kThreadsARow == 4) return kV3With16Bytes;
    if constexpr (kThreadsARow == 8) return kV3;
    if constexpr (kThreadsARow == 16) return kV3With64Bytes;
    if constexpr (kThreadsARow == 32) return kV3With128Bytes;
}

}  // namespace

constinit const RungInfo kV3 = {
    "v3",
    "Eight threads share a row, so that each load of theirs is one whole 32-byte sector; sums meet "
    "in shared memory.",
    "One read of the model, as far as 4-byte loads keep enough in flight.",
    false,
    true,
    ladder_score_bound};
constinit const RungInfo kV3With16Bytes = {
    "v3-16B",
    "v3 with four threads a row.",
    "Each load uses half a sector, and the cache must keep the other half for the next.",
    true,
    true,
    ladder_score_bound};
constinit const RungInfo kV3With64Bytes = {
    "v3-64B",
    "v3 with sixteen threads a row.",
    "No fewer sectors than v3, more idle threads at the end of a row and one step more to sum up.",
    true,
    true,
    ladder_score_bound};
constinit const RungInfo kV3With128Bytes = {
    "v3-128B",
    "v3 with a whole warp a row.",
    "No fewer sectors than v3, a quarter of its rows in flight and two steps more to sum up.",
    true,
    true,
    ladder_score_bound};

template <unsigned kThreadsARow>
Result<std::unique_ptr<Rung>> make_v3(const RungParts& parts) {
    return ResidentRung::create(info_of<kThreadsARow>(), launch_dot<kThreadsARow>, parts);
}
template Result<std::unique_ptr<Rung>> make_v3<4>(const RungParts& parts);
template Result<std::unique_ptr<Rung>> make_v3<8>(const RungParts& parts);
template Result<std::unique_ptr<Rung>> make_v3<16>(const RungParts& parts);
template Result<std::unique_ptr<Rung>> make_v3<32>(const RungParts& parts);

}  // namespace gloved::kernels::ladder
