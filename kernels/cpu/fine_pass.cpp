#include "kernels/cpu/fine_pass.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stop_token>
#include <system_error>

#include "common/elapsed.hpp"

namespace gloved::kernels::cpu {
namespace {

/// After a try that failed: a reload takes the room for a moment only.
constexpr std::chrono::minutes kPause{1};

}  // namespace

FinePass::FinePass(const format::Model& model, const DotKernel& kernel,
                   std::span<const Row> uncovered, const PlaneLoop& loop,
                   const EngineOptions& options, ThreadPool& pool)
    : model_(model), kernel_(kernel), uncovered_(uncovered), loop_(loop), options_(options) {
    if (options_.fine_plane == FinePlane::at_start) make(pool, {});
}

const PlanePass* FinePass::get() {
    const PlanePass* const made = made_;
    if (made != nullptr || is_making_ || options_.fine_plane != FinePlane::when_needed) return made;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_try_) return nullptr;
    next_try_ = now + kPause;
    is_making_ = true;
    try {
        // One thread, so that answers meanwhile keep most of the processors.
        thread_ = std::jthread([this](const std::stop_token& stop) {
            ThreadPool alone(1U);
            make(alone, stop);
            is_making_ = false;
        });
    } catch (const std::system_error&) {
        is_making_ = false;
    }
    return nullptr;
}

std::size_t FinePass::bytes() const {
    return made_ != nullptr ? plane_->bytes().size() : std::size_t{0};
}

void FinePass::make(ThreadPool& pool, const std::stop_token& stop) {
    const std::size_t bytes = planes::FinePlane::bytes_of({model_.rows(), model_.dim()});
    if (options_.has_room && !options_.has_room(bytes)) return;
    const auto begin = std::chrono::steady_clock::now();
    plane_.emplace(model_, pool, stop);
    if (stop.stop_requested()) return;
    pass_.emplace(model_, kernel_, view(*plane_, uncovered_, loop_));
    made_ = &*pass_;
    if (!options_.log) return;
    options_.log(fmt::format("7-bit plane, for batches: {:.1f} MB, built in {:.0f} ms",
                             static_cast<double>(bytes) / 1e6, ms_since(begin)));
}

}  // namespace gloved::kernels::cpu
