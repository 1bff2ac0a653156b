// The canonical pass: float64 scores of every row, for the kinds of query and the sizes of answer
// that the bounded passes do not serve. Expected limit: memory on data-centre GPUs, float64
// arithmetic on others. Plain queries do not come here.
#include "kernels/cuda/device_math.cuh"
#include "kernels/cuda/launches.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerProcessor = 8;
constexpr unsigned kTeamsPerWarp = kWarp / kCanonicalLanes;

/// Computes the canonical values of launch_score, one team a row. All vectors are multiplied with a
/// row while it is in the cache.
__global__ __launch_bounds__(kThreads) void score(DeviceModel model, DeviceQueries queries,
                                                  ScorePart part, bool first,
                                                  std::uint32_t first_row, std::uint32_t last_row,
                                                  Workspace work) {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warps = gridDim.x * (kThreads / kWarp);
    const unsigned warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    double* values = part == ScorePart::divide_by ? work.denominators : work.scores;
    const std::uint32_t count = last_row - first_row;
    for (std::uint32_t base = warp * kTeamsPerWarp; base < count; base += warps * kTeamsPerWarp) {
        const std::uint32_t i = base + lane / kCanonicalLanes;
        const bool active = i < count;
        const std::uint32_t row = active ? first_row + i : first_row;
        const double norm = model.norms[row];
        double value = first || part == ScorePart::cosine ? 1.0 : values[row];
        for (std::uint32_t v = 0; v < queries.count; ++v) {
            const float* raw = queries.raw + static_cast<std::size_t>(v) * model.stride;
            const double dot = row_dot(model, raw, row, lane % kCanonicalLanes, active);
            const double cosine = score_from_dot(dot, queries.queries[v].norm, norm);
            value = part == ScorePart::cosine ? cosine : __dmul_rn(value, cosmul_part(cosine));
        }
        if (active && lane % kCanonicalLanes == 0) values[row] = value;
    }
}

/// Ends a query as launch_finish_scores says. One warp a group, one lane a row.
__global__ __launch_bounds__(kThreads) void finish_scores(DeviceModel model, DeviceQueries queries,
                                                          bool divide, Workspace work) {
    const DeviceQuery query = queries.queries[0];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warps = gridDim.x * (kThreads / kWarp);
    const unsigned warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    for (std::uint32_t group = warp; group < model.groups; group += warps) {
        const std::uint32_t row = group * kGroupRows + lane;
        float best = minus_infinity();
        if (row < model.rows) {
            double value = __longlong_as_double(0x7FF8000000000000LL);
            if (admits(query, model, row)) {
                const double scored = divide
                                          ? cosmul_score(work.scores[row], work.denominators[row])
                                          : work.scores[row];
                if (scored >= query.min_score) value = scored;
            }
            work.scores[row] = value;
            // Rounded down, so that a maximum stays a score that is reached. fmaxf ignores NaN.
            best = fmaxf(best, __double2float_rd(value));
        }
        best = warp_max(best);
        if (lane == 0) work.maxima[group] = best;
    }
}

}  // namespace

cudaError_t load_score_kernels() { return load_each(score, finish_scores); }

cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries, ScorePart part,
                         bool first, std::uint32_t first_row, std::uint32_t last_row,
                         const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    if (first_row == last_row) return cudaSuccess;
    const unsigned blocks =
        blocks_of_rounds(static_cast<unsigned>(shape.processors) * kBlocksPerProcessor,
                         kThreads / kWarp * kTeamsPerWarp);
    score<<<blocks, kThreads, 0, stream>>>(model, queries, part, first, first_row, last_row, work);
    return cudaGetLastError();
}

cudaError_t launch_finish_scores(const DeviceModel& model, const DeviceQueries& queries,
                                 bool divide, const Workspace& work, const DeviceShape& shape,
                                 cudaStream_t stream) {
    const unsigned blocks =
        blocks_of_rounds(static_cast<unsigned>(shape.processors) * kBlocksPerProcessor,
                         kThreads / kWarp * kGroupRows);
    finish_scores<<<blocks, kThreads, 0, stream>>>(model, queries, divide, work);
    return cudaGetLastError();
}

}  // namespace gloved::kernels::cuda
