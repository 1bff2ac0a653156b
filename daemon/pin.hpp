// Locks a model's files in memory (mlock), as --pin asks, so that the system cannot evict them.
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

/// How many bytes this process may lock in all (RLIMIT_MEMLOCK); nullopt: any number.
std::optional<std::uint64_t> memlock_limit();
/// Such a limit as text: «8388608», or «unlimited».
std::string describe(const std::optional<std::uint64_t>& limit);

/// Locks the model's values and planes files in memory and waits until they are read. Error:
/// unavailable; the message says how to raise the limit, and nothing stays locked.
Status lock_values(const format::Model& model);

enum class PinState { off, pending, on, refused };
/// «off», «pending», «on» or «refused», as STATS and `STATS prometheus` show it.
std::string_view to_string(PinState state);

/// Locks a model's values and planes files on a thread of its own: mlock reads the whole files, and
/// queries are answered meanwhile. With MLOCK_ONFAULT the call would return at once, but each word
/// would wait for the disk when it is first asked for.
class Pinning {
  public:
    /// Pin::automatic starts the thread, which waits for the first answered batch (2 s at most)
    /// before it locks. Pin::off locks nothing. Pin::on means that the caller has called
    /// lock_values. `batches_answered`, a counter of the model's worker, must outlive the Pinning.
    Pinning(std::shared_ptr<const format::Model> model, Pin pin,
            const std::atomic<std::uint64_t>& batches_answered);
    Pinning(const Pinning&) = delete;
    Pinning& operator=(const Pinning&) = delete;
    /// Ends the thread, which first locks the rest of its piece, at most 64 MiB. Unlocks nothing:
    /// unmapping the model does.
    ~Pinning();

    /// `pending` until all is locked; `refused` if the system refuses. Any thread.
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
