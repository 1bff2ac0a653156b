// LogOutput: writes the log's lines to standard error. Does not wait for whoever reads them, except
// in functions that say so, and there only for a limited time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/files.hpp"

namespace gloved::daemon {

/// Writes lines to a descriptor. Keeps lines that the reader (of a pipe, say) has no room for, up
/// to kMaxPendingBytes; further lines are lost and counted. Lines of up to 4,096 bytes reach a pipe
/// whole or not at all. If a line was cut, as by a full disk, an LF is written before the next. Not
/// safe for concurrent use, except where a function says «Any thread».
class LogOutput {
  public:
    static constexpr std::size_t kMaxPendingBytes = std::size_t{1} << 20;

    /// Writes to `fd`, which stays the caller's. Writes must not block, but O_NONBLOCK on `fd`
    /// would change it for all processes that share it. So a pipe or terminal is opened a second
    /// time, with O_NONBLOCK. If that fails (because it belongs to another user, say), a thread
    /// makes the blocking writes. `descriptors` is the directory with the process's open files;
    /// tests pass another.
    explicit LogOutput(int fd, const std::string& descriptors = "/proc/self/fd");

    /// Writes `line`, which ends with LF, or keeps it until the next `flush`.
    void write(std::string_view line) noexcept;
    /// Writes the kept lines as far as the reader has room.
    void flush() noexcept;
    /// Flushes repeatedly for up to 5 ms, as long as the reader makes room. Call it after a burst
    /// of lines.
    void catch_up() noexcept;
    /// Flushes until all lines are written, waiting for the reader up to `limit`. Call it at the
    /// end of the process.
    void finish(std::chrono::milliseconds limit) noexcept;
    bool has_pending_lines() const { return !pending_.empty(); }

    /// Number of lines that were lost. Any thread.
    std::uint64_t lost() const { return lost_; }
    /// Why the last lost line was lost: an errno, or 0 if the reader was too slow. Any thread.
    int reason() const { return reason_; }
    /// Number of successful writes: it grows if the reader takes anything. Any thread.
    std::uint64_t taken() const { return taken_; }

    /// Tries for up to 0.1 s to write `text`, a line that ends with LF, ahead of the kept lines.
    /// Allocates nothing and is safe in a signal handler. Any thread.
    void write_emergency_line(std::string_view text) const noexcept;

  private:
    /// How writes avoid waiting.
    enum class Mode {
        direct,  ///< write(2), to a file or to what was opened again with O_NONBLOCK
        send,    ///< send(2) with MSG_DONTWAIT, to a socket
        thread   ///< by a WriterThread, to what could not be opened again
    };

    struct WriterThread;

    /// The first lines of `lines` to write together: as many as a pipe takes whole, or one.
    static std::string_view next_piece(std::string_view lines);
    /// As write(2), but instead of waiting returns −1 with errno EAGAIN.
    long write_now(std::string_view text) const noexcept;
    /// Whether the WriterThread has written everything.
    bool all_written() const noexcept;
    void wait_for_room(int milliseconds) const noexcept;
    /// Counts `lines` as lost; `reason` is an errno.
    void drop_lines(std::string_view lines, int reason) noexcept;

    int fd_;
    Mode mode_ = Mode::direct;
    UniqueFd own_;
    std::shared_ptr<WriterThread> writer_;
    std::string pending_;
    /// Whether a line is begun: the last byte written was not LF.
    mutable std::atomic<bool> within_line_{false};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<int> reason_{0};
};

}  // namespace gloved::daemon
