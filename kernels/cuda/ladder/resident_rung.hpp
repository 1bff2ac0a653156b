// v2 and v3 but for their kernels: a search step by step over the resident model.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "kernels/cuda/ladder/clock.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/cuda/ladder/phases.hpp"
#include "kernels/cuda/ladder/resident.hpp"
#include "kernels/cuda/ladder/rungs.hpp"
#include "kernels/cuda/ladder/selection.hpp"
#include "kernels/cuda/ladder/stepwise.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::ladder {

class ResidentRung final : public Rung {
  public:
    static Result<std::unique_ptr<Rung>> create(const RungInfo& info, LaunchDot launch_dot,
                                                const RungParts& parts) {
        if (Status done = cuda::use_device(parts.resident->device); !done) return done.error();
        auto stream = cuda::Stream::create();
        if (!stream) return stream.error();
        auto phases = Phases::create();
        if (!phases) return phases.error();
        return std::unique_ptr<Rung>(new ResidentRung(info, launch_dot, parts.resident,
                                                      *std::move(stream), *std::move(phases)));
    }

    const RungInfo& info() const override { return info_; }

    Result<std::vector<Hit>> search(const QueryVector& query, std::size_t k,
                                    RungTimes* times) override {
        if (times != nullptr) *times = {};
        const auto start = Clock::now();
        if (Status done = cuda::use_device(model_->device); !done) return done.error();
        const StepwiseSearch search{launch_dot_,
                                    ListsIn::private_memory,
                                    model_->vectors.data(),
                                    model_->norms.data(),
                                    model_->rows,
                                    model_->dim};
        auto hits = run_stepwise(search, query, k, stream_, phases_, times);
        if (times != nullptr) times->total = ms_since(start);
        return hits;
    }

  private:
    ResidentRung(const RungInfo& info, LaunchDot launch_dot,
                 std::shared_ptr<const ResidentModel> model, cuda::Stream stream, Phases phases)
        : info_(info),
          launch_dot_(launch_dot),
          model_(std::move(model)),
          stream_(std::move(stream)),
          phases_(std::move(phases)) {}

    const RungInfo& info_;
    LaunchDot launch_dot_;
    std::shared_ptr<const ResidentModel> model_;
    cuda::Stream stream_;
    Phases phases_;
};

}  // namespace gloved::kernels::ladder
