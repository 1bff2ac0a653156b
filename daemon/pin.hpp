// Keeping a model's pages in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "common/format/model.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Locks the mapped values with mlock on a thread of its own, since that reads the whole file the first time, and
/// answers need not wait for it. The state is «off», «pending», «on» or «refused».
class Pinning {
  public:
    Pinning(std::shared_ptr<const format::Model> model, Pin pin, const std::atomic<std::uint64_t>& batches_answered);
    Pinning(const Pinning&) = delete;
    Pinning& operator=(const Pinning&) = delete;
    ~Pinning();

    /// Any thread.
    const char* state() const { return state_.load(); }

  private:
    void lock_pages(std::span<const std::byte> pages, bool asked_for);
    void wait_for_an_answer() const;

    const std::shared_ptr<const format::Model> model_;
    const std::atomic<std::uint64_t>& batches_answered_;
    std::atomic<const char*> state_{"off"};
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

}  // namespace gloved::daemon
