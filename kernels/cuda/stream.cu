// The float32 pass by bulk copies: one warp of each block has the copy engine load tile after tile
// of rows, and the other warps multiply the tiles in shared memory. The memory gets few, long,
// ordered requests: 1 to 2 % nearer to a plain read than the loads of `scan`
// (docs/performance-history.md).
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/stream.cuh"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kConsumers = 8;  // warps
constexpr unsigned kThreads = (kConsumers + 1) * kWarp;
constexpr unsigned kWarpsPerGroup = 4;
constexpr unsigned kRowsPerWarp = kGroupRows / kWarpsPerGroup;
/// Rows that all consumers take at once.
constexpr unsigned kBlockRows = kConsumers * kRowsPerWarp;
constexpr unsigned kLanes = 16;  // threads that share a row
constexpr unsigned kTeams = kWarp / kLanes;
[[maybe_unused]] constexpr unsigned kRows = kRowsPerWarp / kTeams;  // of a team; unused where the
                                                                    // kernel is empty

/// Tiles of a width: kBlocks * kBlockRows rows each, kStages of them in shared memory.
template <unsigned kVectors>
struct TileShape;
template <>
struct TileShape<7> {
    static constexpr unsigned kBlocks = 8, kStages = 3;
};
template <>
struct TileShape<13> {
    static constexpr unsigned kBlocks = 4, kStages = 3;
};
template <>
struct TileShape<25> {
    static constexpr unsigned kBlocks = 3, kStages = 2;
};
template <>
struct TileShape<50> {
    static constexpr unsigned kBlocks = 1, kStages = 3;
};
template <>
struct TileShape<75> {
    static constexpr unsigned kBlocks = 1, kStages = 2;
};

template <unsigned kVectors>
constexpr unsigned kTileRows = TileShape<kVectors>::kBlocks* kBlockRows;
template <unsigned kVectors>
constexpr std::size_t kTileBytes = std::size_t{kTileRows<kVectors>} * kVectors * sizeof(float4);

#if __CUDA_ARCH__ >= 900
/// Synchronises the kWarpsPerGroup warps of a group. Barrier 0 is __syncthreads.
__device__ void sync_group(unsigned group) {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(kWarpsPerGroup * kWarp) : "memory");
}
#endif

/// The query as a parameter of the kernel.
template <unsigned kVectors>
struct StreamQuery {
    float4 unit[kVectors];
    DeviceQuery query;
};

/// Estimates rows in float32, as `scan` does. kVectors: the stride in float4.
template <unsigned kVectors>
__global__ __launch_bounds__(kThreads, 1) void stream(DeviceModel model,
                                                      StreamQuery<kVectors> inlined,
                                                      float* __restrict__ maxima,
                                                      float* __restrict__ warp_maxima) {
#if __CUDA_ARCH__ >= 900
    constexpr unsigned kStages = TileShape<kVectors>::kStages;
    constexpr unsigned kBlocks = TileShape<kVectors>::kBlocks;
    constexpr unsigned kLoads = (kVectors + kLanes - 1) / kLanes;
    extern __shared__ __align__(128) float4 tiles[];  // (kStages, rows of a tile, kVectors)
    __shared__ std::uint64_t full[kStages];
    __shared__ std::uint64_t empty[kStages];
    __shared__ float partial[2][kConsumers];

    let_next_start();
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const std::uint32_t count = (model.rows + kTileRows<kVectors> - 1) / kTileRows<kVectors>;
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < kStages; ++s) {
            init_barrier(&full[s], 1);
            init_barrier(&empty[s], kConsumers);
        }
        publish_barriers();
    }
    __syncthreads();

    if (warp == kConsumers) {
        if (lane != 0) return;
        unsigned stage = 0;
        unsigned parity = 1;  // the phase before the first counts as over: every stage is empty
        for (std::uint32_t tile = blockIdx.x; tile < count; tile += gridDim.x) {
            wait(&empty[stage], parity);
            const std::uint32_t first = tile * kTileRows<kVectors>;
            const std::uint32_t rows = min(kTileRows<kVectors>, model.rows - first);
            copy_bulk(tiles + stage * kTileRows<kVectors> * kVectors, row_of(model, first),
                      rows * kVectors * static_cast<std::uint32_t>(sizeof(float4)), &full[stage]);
            if (++stage == kStages) {
                stage = 0;
                parity ^= 1;
            }
        }
        return;
    }

    const unsigned part = lane % kLanes;
    const unsigned team = lane / kLanes;
    float4 query[kLoads];
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
        const unsigned i = part + j * kLanes;
        query[j] = i < kVectors ? inlined.unit[i] : float4{0, 0, 0, 0};
    }
    const DeviceQuery& filter = inlined.query;
    // fl32(1 / norm) of this lane's row in a block of rows; NaN where it is not eligible.
    const auto inverse_of = [&](std::uint32_t tile, unsigned block) {
        const std::uint32_t row =
            (tile * kBlocks + block) * kBlockRows + warp * kRowsPerWarp + lane;
        const bool mine = lane < kRowsPerWarp && row < model.rows && admits(filter, model, row);
        return mine ? model.inverse_norms[row] : __int_as_float(0x7FC00000);
    };

    unsigned stage = 0;
    unsigned parity = 0;
    unsigned which = 0;
    float best_of_all = minus_infinity();
    for (std::uint32_t tile = blockIdx.x; tile < count; tile += gridDim.x) {
        float inverse[kBlocks];
#pragma unroll
        for (unsigned b = 0; b < kBlocks; ++b) inverse[b] = inverse_of(tile, b);
        wait(&full[stage], parity);
        const float4* const rows = tiles + stage * kTileRows<kVectors> * kVectors;
        float best[kBlocks];
#pragma unroll
        for (unsigned b = 0; b < kBlocks; ++b) {
            best[b] = minus_infinity();
#pragma unroll
            for (unsigned r = 0; r < kRows; ++r) {
                const unsigned at = r * kTeams + team;
                const float4* row = rows + (b * kBlockRows + warp * kRowsPerWarp + at) * kVectors;
                float dot = 0;
#pragma unroll
                for (unsigned j = 0; j < kLoads; ++j) {
                    const unsigned i = part + j * kLanes;
                    if (i < kVectors) dot = fused_dot(row[i], query[j], dot);
                }
                for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
                    dot += __shfl_xor_sync(kWholeWarp, dot, distance);
                }
                // fmaxf ignores NaN: rows that are not eligible, and old rows in a partly filled
                // tile.
                best[b] = fmaxf(best[b], dot * __shfl_sync(kWholeWarp, inverse[b], at));
            }
        }
        __syncwarp();
        if (lane == 0) arrive(&empty[stage]);
        if (++stage == kStages) {
            stage = 0;
            parity ^= 1;
        }
#pragma unroll
        for (unsigned b = 0; b < kBlocks; ++b) {
            best[b] = fmaxf(best[b], __shfl_xor_sync(kWholeWarp, best[b], kLanes));
            best_of_all = fmaxf(best_of_all, best[b]);
            // Two sets of slots need one barrier a block only.
            if (lane == 0) partial[which][warp] = best[b];
            sync_group(warp / kWarpsPerGroup);
            const std::uint32_t group =
                (tile * kBlocks + b) * (kBlockRows / kGroupRows) + warp / kWarpsPerGroup;
            if (warp % kWarpsPerGroup == 0 && lane == 0 && group < model.groups) {
                const float* p = &partial[which][warp];
                maxima[group] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3]));
            }
            which ^= 1;
        }
    }
    if (lane == 0) warp_maxima[blockIdx.x * kConsumers + warp] = best_of_all;
#endif
}

template <unsigned kVectors>
std::uint32_t warps_of(const DeviceModel& model, const DeviceShape& shape) {
    const std::uint32_t tiles = (model.rows + kTileRows<kVectors> - 1) / kTileRows<kVectors>;
    return min(min(tiles, static_cast<unsigned>(shape.processors)), kMaxWarps / kConsumers) *
           kConsumers;
}

template <unsigned kVectors>
cudaError_t run(const DeviceModel& model, const DeviceQueries& queries, const Workspace& work,
                const DeviceShape& shape, std::uint32_t& warps, cudaStream_t on) {
    constexpr std::size_t kShared = kTileBytes<kVectors> * TileShape<kVectors>::kStages;
    warps = warps_of<kVectors>(model, shape);
    StreamQuery<kVectors> inlined;
    std::memcpy(inlined.unit, queries.host.unit, sizeof(inlined.unit));
    inlined.query = queries.host.queries[0];
    stream<kVectors><<<warps / kConsumers, kThreads, kShared, on>>>(model, inlined, work.maxima,
                                                                    work.warp_maxima);
    return cudaGetLastError();
}

/// Calls `use` with the number of float4 in a row as a constant; returns `otherwise` for a width
/// without TileShape.
template <typename Result, typename Use>
Result with_vectors(const DeviceModel& model, Result otherwise, const Use& use) {
    switch (model.stride / 4) {
        case 7:
            return use(std::integral_constant<unsigned, 7>{});
        case 13:
            return use(std::integral_constant<unsigned, 13>{});
        case 25:
            return use(std::integral_constant<unsigned, 25>{});
        case 50:
            return use(std::integral_constant<unsigned, 50>{});
        case 75:
            return use(std::integral_constant<unsigned, 75>{});
        default:
            return otherwise;
    }
}

constexpr std::size_t kMaxShared =
    std::max({kTileBytes<7> * TileShape<7>::kStages, kTileBytes<13>* TileShape<13>::kStages,
              kTileBytes<25>* TileShape<25>::kStages, kTileBytes<50>* TileShape<50>::kStages,
              kTileBytes<75>* TileShape<75>::kStages});

}  // namespace

cudaError_t load_stream_kernels() {
    return load_and_allow(stream<7>, stream<13>, stream<25>, stream<50>, stream<75>);
}

bool stream_is_built() {
    // Code for an older architecture, compiled for this one at load, has an empty body.
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, stream<75>) == cudaSuccess &&
           attributes.ptxVersion >= 90;
}

bool can_stream(const DeviceModel& model, const DeviceQueries& queries, const DeviceShape& shape) {
    constexpr std::size_t kStatic = 1024;
    const bool width = with_vectors(model, false, [](auto) { return true; });
    return shape.bulk_copies && width && queries.all_rows &&
           kMaxShared + kStatic <= shape.shared_bytes;
}

std::uint32_t stream_warps(const DeviceModel& model, const DeviceShape& shape) {
    return with_vectors(model, std::uint32_t{0},
                        [&](auto vectors) { return warps_of<vectors>(model, shape); });
}

cudaError_t launch_stream(const DeviceModel& model, const DeviceQueries& queries,
                          const Workspace& work, const DeviceShape& shape, std::uint32_t& warps,
                          cudaStream_t on) {
    return with_vectors(model, cudaErrorInvalidValue, [&](auto vectors) {
        return run<vectors>(model, queries, work, shape, warps, on);
    });
}

}  // namespace gloved::kernels::cuda
