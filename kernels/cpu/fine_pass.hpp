// FinePass: the cpu engine's pass over a fine plane, which may be made while the engine answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <thread>

#include "common/format/model.hpp"
#include "kernels/cpu/dots.hpp"
#include "kernels/cpu/plane_pass.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/planes/fine_plane.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cpu {

/// A fine plane with its pass, made as EngineOptions::fine_plane says.
class FinePass {
  public:
    /// `uncovered`: the rows of the 4-bit plane that it does not cover. All arguments but `options`
    /// must outlive the FinePass. `loop` has a width. Throws std::bad_alloc.
    FinePass(const format::Model& model, const DotKernel& kernel, std::span<const Row> uncovered,
             const PlaneLoop& loop, const EngineOptions& options, ThreadPool& pool);
    FinePass(const FinePass&) = delete;
    FinePass& operator=(const FinePass&) = delete;

    /// The pass; nullptr while there is none. The first call has a thread begin to make it. If
    /// there was no room, or no thread to be had, a call a minute later tries again. For the
    /// engine's thread.
    const PlanePass* get();
    /// Bytes of the plane once it is made, before 0. Any thread.
    std::size_t bytes() const;

  private:
    void make(ThreadPool& pool, const std::stop_token& stop);

    const format::Model& model_;
    const DotKernel& kernel_;
    const std::span<const Row> uncovered_;
    const PlaneLoop& loop_;
    const EngineOptions options_;
    std::optional<planes::FinePlane> plane_;
    std::optional<PlanePass> pass_;
    std::atomic<const PlanePass*> made_ = nullptr;
    std::atomic<bool> is_making_ = false;
    std::chrono::steady_clock::time_point next_try_ = {};
    // Last: its thread uses the others, and its end is waited for first.
    std::jthread thread_;
};

}  // namespace gloved::kernels::cpu
