// Where the log's lines go: standard error, without ever waiting for whoever reads it.
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

/// Writes lines to a descriptor. A line that the reader has no room for is kept, up to
/// kMaxKeptBytes in all, and tried again; what does not fit there either is lost and counted. Lines
/// of up to 4,096 bytes reach a pipe whole or not at all. A line that a full disk cuts is ended
/// before the next one. One thread at a time, where nothing else is said.
class LogOutput {
  public:
    static constexpr std::size_t kMaxKeptBytes = std::size_t{1} << 20;

    /// `fd` stays the caller's. The flags of what it is open to are shared with other processes, so
    /// they stay as they are: a pipe or terminal is opened once more, to be written without
    /// waiting. One that cannot be, another user's for example, is written by a thread that may
    /// wait. `descriptors`: the directory where the process's descriptors can be opened again.
    explicit LogOutput(int fd, const std::string& descriptors = "/proc/self/fd");

    /// `line` ends with LF.
    void write(std::string_view line) noexcept;
    /// Writes what is kept, as far as the reader takes it.
    void flush() noexcept;
    /// The same as long as the reader goes on taking lines, for a few milliseconds. One that takes
    /// none is not waited for.
    void catch_up() noexcept;
    /// The same, and waits for the reader, for as long as that at most.
    void finish(std::chrono::milliseconds limit) noexcept;
    bool keeps_lines() const { return !kept_.empty(); }

    /// How many lines were lost. Any thread.
    std::uint64_t lost() const { return lost_; }
    /// Why lines were lost last: an errno, or 0 where the reader was too slow. Any thread.
    int reason() const { return reason_; }
    /// How many writes the reader has taken. Any thread.
    std::uint64_t taken() const { return taken_; }

    /// Tries to write one line, `text`, past what is kept, for 0.1 s at most. Allocates nothing,
    /// and may be called in a signal handler.
    void write_last_words(std::string_view text) const noexcept;

  private:
    /// How a write is kept from waiting.
    enum class Way {
        plain,    ///< nothing to do: a file, or a descriptor of our own that does not wait
        message,  ///< a socket: the call says so
        handed    ///< what could not be opened once more: another thread writes it
    };

    struct Handed;

    static std::string_view next_piece(std::string_view lines);
    /// As write(2), with EAGAIN instead of waiting.
    long write_now(std::string_view text) const noexcept;
    /// Whether all that was handed to the other thread is written.
    bool all_written() const noexcept;
    void wait_for_room(int milliseconds) const noexcept;
    /// `reason` as `reason()` has it.
    void lose(std::string_view lines, int reason) noexcept;

    int fd_;
    Way way_ = Way::plain;
    UniqueFd own_;
    std::shared_ptr<Handed> handed_;
    std::string kept_;
    /// Whether the last byte that was written was no LF.
    mutable std::atomic<bool> within_line_{false};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<int> reason_{0};
};

}  // namespace gloved::daemon
