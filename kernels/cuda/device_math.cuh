// Device functions that several kernels of the cuda engine share: reductions over a warp, canonical
// dot products, tests whether a row is eligible, and launches that overlap.
#pragma once

#include <cstdint>

#include "kernels/canonical.hpp"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {

/// The mask of all threads of a warp, and their number.
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFU;
inline constexpr unsigned kWarp = 32;

__device__ inline float minus_infinity() { return __int_as_float(static_cast<int>(0xFF800000U)); }

/// The largest value of a warp's threads; all threads call it and get the result.
__device__ inline float warp_max(float value) {
    for (unsigned step = kWarp / 2; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, step));
    return value;
}

__device__ inline std::uint32_t warp_max(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(kWholeWarp, value);
#else
    for (unsigned step = kWarp / 2; step > 0; step /= 2)
        value = max(value, __shfl_xor_sync(kWholeWarp, value, step));
    return value;
#endif
}

/// The sum of the values of a warp's threads; all threads call it and get the result.
__device__ inline std::uint32_t warp_sum(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(kWholeWarp, value);
#else
    for (unsigned step = kWarp / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(kWholeWarp, value, step);
    return value;
#endif
}

/// Adds the sums of a team's eight threads in canonical_dot's order. A team is kCanonicalLanes
/// neighbouring threads of a warp.
__device__ inline double sum_of_team(double sum) {
    static_assert(kCanonicalLanes == 8);
    sum = __dadd_rn(sum, __shfl_xor_sync(kWholeWarp, sum, 4));
    sum = __dadd_rn(sum, __shfl_xor_sync(kWholeWarp, sum, 2));
    return __dadd_rn(sum, __shfl_xor_sync(kWholeWarp, sum, 1));
}

/// Asks for the memory at an address of the device, so that a later load finds it in the L2 cache.
__device__ inline void prefetch(const float* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

/// The canonical dot product of `a` and `b`, computed by a team; each of its threads gets the
/// result. Thread `lane` (0 to 7) sums the components of that lane in canonical_dot, and the sums
/// are added in canonical_dot's order. (Addition commutes, so both threads of an exchange get the
/// same bits.) All threads of the warp call it; a team that is not `active` reads nothing.
/// `prefetches`: whether to ask for parts of a long `b` before they are loaded.
__device__ inline double team_dot(const float* __restrict__ a, const float* __restrict__ b,
                                  std::uint32_t dim, unsigned lane, bool active,
                                  bool prefetches = false) {
    // Many loads at a time: waiting for one from memory takes as long as hundreds of products.
    constexpr unsigned kAtOnce = 20;
    constexpr std::uint32_t kRound = kAtOnce * kCanonicalLanes;
    // Registers hold no more loads. Of a long row, the cache holds what comes next.
    constexpr std::uint32_t kAhead = 8 * kRound;
    constexpr std::uint32_t kLine = 128 / sizeof(float);
    static_assert(kRound <= kCanonicalLanes * kLine);
    double sum = 0;
    prefetches = prefetches && active && dim > 2 * kRound;
    if (prefetches) {
        for (std::uint32_t i = lane * kLine; i < min(dim, kAhead); i += kCanonicalLanes * kLine)
            prefetch(b + i);
    }
    if (active) {
        for (std::uint32_t begin = lane; begin < dim; begin += kRound) {
            const std::uint32_t ahead = begin - lane + kAhead + lane * kLine;
            if (prefetches && lane * kLine < kRound && ahead < dim) prefetch(b + ahead);
            float x[kAtOnce];
            float y[kAtOnce];
#pragma unroll
            for (unsigned j = 0; j < kAtOnce; ++j) {
                const std::uint32_t i = begin + j * kCanonicalLanes;
                x[j] = i < dim ? a[i] : 0.0F;
                y[j] = i < dim ? b[i] : 0.0F;
            }
#pragma unroll
            for (unsigned j = 0; j < kAtOnce; ++j) {
                // A product of floats is exact, so that a fused operation gives the same bits.
                // Beyond the end +0 is added, which changes no sum that began at +0.
                sum = __fma_rn(static_cast<double>(x[j]), static_cast<double>(y[j]), sum);
            }
        }
    }
    return sum_of_team(sum);
}

/// The address of a local row's vector.
__device__ inline const float* row_of(const DeviceModel& model, std::uint32_t row) {
    return model.vectors + static_cast<std::size_t>(row) * model.stride;
}

/// Components that a thread loads from host memory at once.
inline constexpr unsigned kHostComponents = 4;

/// Loads kAtOnce components of a row in host memory for each thread of a team: x[j] is component
/// begin + 8 j + lane, or 0 behind the last. A team loads 128 bytes at once, which the bus
/// transfers several times faster than the 32 bytes of eight components. Each thread loads four
/// neighbouring components at a time, and gets those of its lane from the other threads. The row is
/// 16-byte aligned, dim a multiple of 4. All threads of the warp call it.
template <unsigned kAtOnce>
__device__ inline void load_host_components(const float* __restrict__ row, std::uint32_t dim,
                                            std::uint32_t begin, unsigned lane, bool active,
                                            float (&x)[kAtOnce]) {
    static_assert(kCanonicalLanes == 8 && kAtOnce % kHostComponents == 0);
    constexpr unsigned kLoads = kAtOnce / kHostComponents;
    float4 four[kLoads];
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
        const std::uint32_t i = begin + kHostComponents * (j * kCanonicalLanes + lane);
        four[j] =
            active && i < dim ? *reinterpret_cast<const float4*>(row + i) : float4{0, 0, 0, 0};
    }
#pragma unroll
    for (unsigned j = 0; j < kLoads; ++j) {
#pragma unroll
        for (unsigned g = 0; g < kHostComponents; ++g) {
            // Component 8 g + lane of these 32 is the (lane % 4)-th of the thread 2 g + lane / 4.
            const unsigned from = 2 * g + lane / kHostComponents;
            const float of_x = __shfl_sync(kWholeWarp, four[j].x, from, kCanonicalLanes);
            const float of_y = __shfl_sync(kWholeWarp, four[j].y, from, kCanonicalLanes);
            const float of_z = __shfl_sync(kWholeWarp, four[j].z, from, kCanonicalLanes);
            const float of_w = __shfl_sync(kWholeWarp, four[j].w, from, kCanonicalLanes);
            x[j * kHostComponents + g] =
                (lane & 2) != 0 ? ((lane & 1) != 0 ? of_w : of_z) : ((lane & 1) != 0 ? of_y : of_x);
        }
    }
}

/// Whether load_host_components can load the rows of a model.
__device__ inline bool loads_from_host(const DeviceModel& model) {
    return model.vectors_on_host && model.dim % kHostComponents == 0;
}

/// As load_host_components, for a row in device or host memory.
template <unsigned kAtOnce>
__device__ inline void load_components(const DeviceModel& model, const float* __restrict__ row,
                                       std::uint32_t begin, unsigned lane, bool active,
                                       float (&x)[kAtOnce]) {
    if (loads_from_host(model)) {
        load_host_components(row, model.dim, begin, lane, active, x);
        return;
    }
#pragma unroll
    for (unsigned j = 0; j < kAtOnce; ++j) {
        const std::uint32_t i = begin + j * kCanonicalLanes + lane;
        x[j] = active && i < model.dim ? row[i] : 0.0F;
    }
}

/// As team_dot, with the same bits, for a row `b` that load_host_components can load.
__device__ inline double host_row_dot(const float* __restrict__ a, const float* __restrict__ b,
                                      std::uint32_t dim, unsigned lane, bool active) {
    constexpr unsigned kAtOnce = 10 * kHostComponents;
    double sum = 0;
    for (std::uint32_t begin = 0; begin < dim; begin += kAtOnce * kCanonicalLanes) {
        float x[kAtOnce];
        load_host_components(b, dim, begin, lane, active, x);
#pragma unroll
        for (unsigned j = 0; j < kAtOnce; ++j) {
            const std::uint32_t i = begin + j * kCanonicalLanes + lane;
            const float other = active && i < dim ? a[i] : 0.0F;
            sum = __fma_rn(static_cast<double>(other), static_cast<double>(x[j]), sum);
        }
    }
    return sum_of_team(sum);
}

/// The canonical dot product of a vector with a local row, whose vector may be in device or host
/// memory. Called as team_dot.
__device__ inline double row_dot(const DeviceModel& model, const float* __restrict__ vector,
                                 std::uint32_t row, unsigned lane, bool active) {
    const float* const values = row_of(model, row);
    if (loads_from_host(model)) return host_row_dot(vector, values, model.dim, lane, active);
    return team_dot(vector, values, model.dim, lane, active, !model.vectors_on_host);
}

/// Scores the rows row_at(0) … row_at(count - 1) canonically, one row a team, and calls take(i,
/// row, score) for each, eligible or not. All threads of the block, kThreads, call it.
template <unsigned kThreads, typename RowAt, typename Take>
__device__ void score_rows(const DeviceModel& model, const DeviceQuery& query, const float* raw,
                           std::uint32_t count, const RowAt& row_at, const Take& take) {
    constexpr unsigned kTeams = kThreads / kCanonicalLanes;
    const unsigned canonical_lane = threadIdx.x % kCanonicalLanes;
    for (std::uint32_t base = 0; base < count; base += kTeams) {
        const std::uint32_t i = base + threadIdx.x / kCanonicalLanes;
        const bool active = i < count;
        const std::uint32_t row = active ? row_at(i) : 0;
        const double norm = active ? model.norms[row] : 0;
        const double dot = row_dot(model, raw, row, canonical_lane, active);
        if (active && canonical_lane == 0) take(i, row, score_from_dot(dot, query.norm, norm));
    }
}

/// Whether a local row is eligible by the query's range, limit on ranks and lists. (is_excluded
/// tests the excluded rows.)
__device__ inline bool admits(const DeviceQuery& query, const DeviceModel& model,
                              std::uint32_t row) {
    if (row < query.first || row >= query.last) return false;
    if (query.rank_below != ~std::uint32_t{0} && model.ranks[row] >= query.rank_below) return false;
    if ((query.within | query.without) == 0) return true;
    const ListMask of_row = model.memberships[row];
    return (of_row & query.within) == query.within && (of_row & query.without) == 0;
}

/// Whether a local row is one of the query's excluded rows, in any order; `excluded` is
/// DeviceQueries::excluded.
__device__ inline bool is_named(const DeviceQuery& query, const std::uint32_t* excluded,
                                std::uint32_t row) {
    bool named = false;
    for (std::uint32_t i = 0; i < query.excluded_count; ++i)
        named = named || excluded[query.excluded_begin + i] == row;
    return named;
}

/// The same for sorted rows.
__device__ inline bool is_excluded(const DeviceQuery& query, const std::uint32_t* excluded,
                                   std::uint32_t row) {
    const std::uint32_t* first = excluded + query.excluded_begin;
    std::uint32_t count = query.excluded_count;
    while (count > 0) {
        const std::uint32_t half = count / 2;
        if (first[half] == row) return true;
        if (first[half] < row) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return false;
}

/// Waits until the stream's previous kernel has ended and its writes are visible. For a kernel that
/// launch_early may have started before.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the stream's next kernel start now, if launch_early launched it.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// How a launch is configured. `attribute` is one of it where `applies` is true, and lives until
/// the launch. `shared`: bytes of dynamic shared memory.
inline cudaLaunchConfig_t launch_config(dim3 blocks, dim3 threads, std::size_t shared,
                                        cudaStream_t stream, cudaLaunchAttribute& attribute,
                                        bool applies) {
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = applies ? 1 : 0;
    return config;
}

/// Launches a kernel that may start before the stream's previous kernel ends, where the device can
/// do that. The kernel must call wait_for_previous before it reads results of the previous one.
/// `shared`: bytes of dynamic shared memory.
template <class... Parameters, class... Arguments>
cudaError_t launch_early(const DeviceShape& shape, void (*kernel)(Parameters...), dim3 blocks,
                         dim3 threads, std::size_t shared, cudaStream_t stream,
                         Arguments... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    // Other code has no wait_for_previous.
    const cudaLaunchConfig_t config =
        launch_config(blocks, threads, shared, stream, attribute, shape.early_launches);
    return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

/// Launches a kernel whose blocks wait for one another: it starts when all fit onto the device
/// together. `shared`: bytes of dynamic shared memory.
template <class... Parameters, class... Arguments>
cudaError_t launch_together(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                            std::size_t shared, cudaStream_t stream,
                            const Arguments&... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    const cudaLaunchConfig_t config =
        launch_config(blocks, threads, shared, stream, attribute, true);
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Loads kernels onto the current device, which the runtime would do at the first launch of each.
template <class... Kernels>
cudaError_t load_each(Kernels*... kernels) {
    cudaFuncAttributes attributes{};
    cudaError_t error = cudaSuccess;
    ((error = error == cudaSuccess ? cudaFuncGetAttributes(&attributes, kernels) : error), ...);
    return error;
}

/// As load_each, and lets the kernels have all the dynamic shared memory that a block may have on
/// the current device. Only this sets attributes: they belong to a kernel on a device, and one that
/// a launch set for its model would hold for launches of other models too.
template <class... Kernels>
cudaError_t load_and_allow(Kernels*... kernels) {
    int device = 0;
    int most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    const auto allow = [&](auto* kernel) {
        cudaFuncAttributes attributes{};
        const cudaError_t loaded = cudaFuncGetAttributes(&attributes, kernel);
        if (loaded != cudaSuccess) return loaded;
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    most - static_cast<int>(attributes.sharedSizeBytes));
    };
    ((error = error == cudaSuccess ? allow(kernels) : error), ...);
    return error;
}

/// Whether `a` comes before `b` in an answer, as comes_before of kernels/engine.hpp.
__device__ inline bool comes_before(const Found& a, const Found& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

}  // namespace gloved::kernels::cuda
