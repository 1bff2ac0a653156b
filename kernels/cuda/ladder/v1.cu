// v1: every query copies the whole model to the device, where one thread scores one row against a
// query in shared memory.
//
// Expected limit: the copy. 2.64 GB from pageable memory take 266 ms at the 9.9 GB/s of a staged
// copy over PCIe 5 (and allocating and giving back as much is some milliseconds more), a hundred
// times the search itself.
//
// Neighbouring threads read addresses a row apart: each of a warp's loads touches 32 sectors of 32
// bytes, of which it uses 4 bytes each. The other 28 are used by the thread's next seven loads if
// the L1 cache still holds them: 256 threads keep 32 KB of such sectors each block, so a cache of
// 64 KB (2018) loses many of them before use, and one of 256 KB (H100) few.
//
// Layout: vectors packed (rows, dim), any alignment. Shared memory: 4 dim bytes. Does not wait.
// Score: one fused multiply and add after the other, in order of elements: n roundings at most, the
// bound of score.hpp.

#include <utility>

#include "kernels/cuda/ladder/clock.hpp"
#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/resident.hpp"
#include "kernels/cuda/ladder/rungs.hpp"
#include "kernels/cuda/ladder/score.hpp"
#include "kernels/cuda/ladder/stepwise.hpp"

namespace gloved::kernels::ladder {
namespace {

__global__ void dot_product(const DotArguments arguments) {
    extern __shared__ float query[];
    for (unsigned i = threadIdx.x; i < arguments.dim; i += blockDim.x)
        query[i] = arguments.query[i];
    __syncthreads();

    const std::size_t slot = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (slot >= arguments.slots) return;
    if (slot >= arguments.rows) {
        arguments.entries[slot] = Entry();
        return;
    }
    const float* row = arguments.vectors + slot * arguments.dim;
    float dot = 0;
    for (unsigned i = 0; i < arguments.dim; ++i) dot = fmaf(query[i], row[i], dot);
    const float score = float_score(dot, arguments.query_norm, arguments.norms[slot]);
    arguments.entries[slot] = Entry{score, static_cast<std::uint32_t>(slot)};
}

Status launch_dot(const DotArguments& arguments, const cuda::Stream& stream) {
    return launch("v1 dot_product", dot_product, blocks_for(arguments.slots),
                  arguments.dim * sizeof(float), stream, arguments);
}

class V1 final : public Rung {
  public:
    V1(const RungParts& parts, cuda::Stream stream, Phases phases)
        : model_(parts.model),
          device_(parts.device),
          norms_(float_norms(parts.model)),
          stream_(std::move(stream)),
          phases_(std::move(phases)) {}

    const RungInfo& info() const override { return kV1; }

    Result<std::vector<Hit>> search(const QueryVector& query, std::size_t k,
                                    RungTimes* times) override {
        if (times != nullptr) *times = {};
        const auto start = Clock::now();
        auto hits = upload_and_search(query, k, times);
        if (times != nullptr) times->total = ms_since(start);
        return hits;
    }

  private:
    Result<std::vector<Hit>> upload_and_search(const QueryVector& query, std::size_t k,
                                               RungTimes* times) {
        if (Status done = cuda::use_device(device_); !done) return done.error();
        auto vectors = cuda::DeviceBuffer<float>::allocate(model_.vectors().size());
        if (!vectors) return vectors.error();
        auto norms = cuda::DeviceBuffer<float>::allocate(norms_.size());
        if (!norms) return norms.error();
        if (Status done = cuda::copy_async<float>(vectors->data(), model_.vectors().data(),
                                                  vectors->size(), stream_);
            !done) {
            return done.error();
        }
        if (Status done =
                cuda::copy_async<float>(norms->data(), norms_.data(), norms->size(), stream_);
            !done) {
            return done.error();
        }
        if (Status done = stream_.synchronize(); !done) return done.error();
        const StepwiseSearch search{launch_dot,    ListsIn::global_memory, vectors->data(),
                                    norms->data(), model_.rows(),          model_.dim()};
        return run_stepwise(search, query, k, stream_, phases_, times);
    }

    const format::Model& model_;
    int device_;
    std::vector<float> norms_;
    cuda::Stream stream_;
    Phases phases_;
};

}  // namespace

constinit const RungInfo kV1 = {
    "v1",
    "Every query copies the whole model to the device, where one thread scores one row "
    "against a query in shared memory.",
    "The copy from pageable memory, at about 10 GB/s.",
    false,
    false,
    ladder_score_bound};

Result<std::unique_ptr<Rung>> make_v1(const RungParts& parts) {
    if (Status done = cuda::use_device(parts.device); !done) return done.error();
    auto stream = cuda::Stream::create();
    if (!stream) return stream.error();
    auto phases = Phases::create();
    if (!phases) return phases.error();
    return std::unique_ptr<Rung>(
        std::make_unique<V1>(parts, *std::move(stream), *std::move(phases)));
}

}  // namespace gloved::kernels::ladder
