// Writes the log's lines to standard error, without ever waiting for the reader.
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

/// Writes lines to a descriptor. Keeps lines that the reader has no room for, up to
/// kMaxPendingBytes, and tries again; further lines are lost and counted. Lines of up to 4,096
/// bytes reach a pipe whole or not at all. After a line that a full disk cut, writes an LF first.
/// Not safe for concurrent use but where noted.
class LogOutput {
  public:
    static constexpr std::size_t kMaxPendingBytes = std::size_t{1} << 20;

    /// `fd` stays the caller's. Other processes share its flags, so they stay as they are: a pipe
    /// or terminal is opened once more, without blocking. If that fails (it is another user's,
    /// say), a thread writes to it. `descriptors`: the directory where the process's descriptors
    /// can be opened again.
    explicit LogOutput(int fd, const std::string& descriptors = "/proc/self/fd");

    /// `line` ends with LF.
    void write(std::string_view line) noexcept;
    /// Writes pending lines as far as the reader has room.
    void flush() noexcept;
    /// The same for a few milliseconds, while the reader continues to read.
    void catch_up() noexcept;
    /// The same, and waits for the reader, `limit` at most.
    void finish(std::chrono::milliseconds limit) noexcept;
    bool has_pending_lines() const { return !pending_.empty(); }

    /// Lines that were lost. Any thread.
    std::uint64_t lost() const { return lost_; }
    /// Why lines were lost last: an errno, or 0 if the reader was too slow. Any thread.
    int reason() const { return reason_; }
    /// Successful writes. Any thread.
    std::uint64_t taken() const { return taken_; }

    /// Tries to write one line ahead of the pending ones, for 0.1 s at most. Allocates nothing and
    /// is safe in a signal handler.
    void write_emergency_line(std::string_view text) const noexcept;

  private:
    /// How writes avoid waiting.
    enum class Mode {
        direct,  ///< by write: a file, or a descriptor of our own that does not block
        send,    ///< by send with MSG_DONTWAIT: a socket
        thread   ///< by a WriterThread: what could not be opened once more
    };

    struct WriterThread;

    static std::string_view next_piece(std::string_view lines);
    /// As write(2), with EAGAIN instead of waiting.
    long write_now(std::string_view text) const noexcept;
    /// Whether the WriterThread has written everything.
    bool all_written() const noexcept;
    void wait_for_room(int milliseconds) const noexcept;
    /// Counts lines as lost; `reason`: an errno.
    void drop_lines(std::string_view lines, int reason) noexcept;

    int fd_;
    Mode mode_ = Mode::direct;
    UniqueFd own_;
    std::shared_ptr<WriterThread> writer_;
    std::string pending_;
    /// Whether the last byte written was not LF.
    mutable std::atomic<bool> within_line_{false};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<int> reason_{0};
};

}  // namespace gloved::daemon
