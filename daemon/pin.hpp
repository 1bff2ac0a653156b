// Locks a model's pages in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Bytes that this process may lock (RLIMIT_MEMLOCK); nothing: no limit.
std::optional<std::uint64_t> memlock_limit();
/// «8388608», or «unlimited».
std::string describe(const std::optional<std::uint64_t>& limit);

/// Locks the model's values and planes in memory. Error: unavailable, with the remedy.
Status lock_values(const format::Model& model);

enum class PinState { off, pending, on, refused };
/// «off», «pending», «on» or «refused», as STATS and METRICS show it.
std::string_view to_string(PinState state);

/// Locks them on a thread of its own: mlock reads the whole files, and answers need not wait.
class Pinning {
  public:
    /// Pin::on: they are locked already.
    Pinning(std::shared_ptr<const format::Model> model, Pin pin,
            const std::atomic<std::uint64_t>& batches_answered);
    Pinning(const Pinning&) = delete;
    Pinning& operator=(const Pinning&) = delete;
    ~Pinning();

    /// Any thread.
    PinState state() const { return state_.load(); }

  private:
    void lock_pages();
    void wait_for_an_answer() const;

    const std::shared_ptr<const format::Model> model_;
    const std::atomic<std::uint64_t>& batches_answered_;
    std::atomic<PinState> state_ = PinState::off;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

}  // namespace gloved::daemon
