#include "daemon/log_output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

namespace gloved::daemon {
namespace {

/// A pipe holds 64 KiB, and a reader takes that in some 50 µs.
constexpr std::chrono::milliseconds kMaxCatchUpTime{5};
constexpr int kEmergencyPauseMs = 20;
constexpr int kEmergencyTries = 5;

bool may_be_tried_again(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

/// The buffer between LogOutput and the thread that writes it to a blocking descriptor.
struct LogOutput::WriterThread {
    static constexpr int kNone = 0;
    static constexpr int kBeingFilled = -1;

    /// Length of the piece in `bytes`, or one of the above.
    std::atomic<int> size{kNone};
    /// The last write's errno; 0 on success.
    std::atomic<int> error{0};
    std::array<char, PIPE_BUF> bytes;

    /// Takes a piece to write; false while there is another one. Safe in a signal handler.
    bool take(std::string_view text) noexcept {
        int none = kNone;
        if (!size.compare_exchange_strong(none, kBeingFilled)) return false;
        text.copy(bytes.data(), text.size());
        size = static_cast<int>(text.size());
        size.notify_one();
        return true;
    }

    [[noreturn]] void write_all(int fd) noexcept {
        while (true) {
            size.wait(kNone);
            const int length = size;
            if (length == kBeingFilled) size.wait(kBeingFilled);
            if (length > 0) {
                error = write_piece(fd, {bytes.data(), static_cast<std::size_t>(length)});
                size = kNone;
            }
        }
    }

    static int write_piece(int fd, std::string_view piece) noexcept {
        while (!piece.empty()) {
            const ssize_t written = ::write(fd, piece.data(), piece.size());
            if (written > 0) {
                piece.remove_prefix(static_cast<std::size_t>(written));
            } else if (written < 0 && may_be_tried_again(errno)) {
                pollfd room{fd, POLLOUT, 0};
                (void)::poll(&room, 1, -1);
            } else {
                return written < 0 ? errno : EIO;
            }
        }
        return 0;
    }
};

LogOutput::LogOutput(int fd, const std::string& descriptors) : fd_(fd) {
    // No allocation later. Pages that are never written cost nothing.
    pending_.reserve(kMaxPendingBytes);
    struct stat status {};
    if (::fstat(fd, &status) != 0) return;  // writing will fail, and be counted
    if (S_ISSOCK(status.st_mode)) {
        mode_ = Mode::send;
    } else if (S_ISFIFO(status.st_mode) || ::isatty(fd) == 1) {
        const std::string path = descriptors + "/" + std::to_string(fd);
        own_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
        if (own_) {
            fd_ = own_.get();
            return;
        }
        // Another user's terminal or pipe, or no /proc. Polling for room would not do: a line may
        // need more than there is, and other processes write there too.
        mode_ = Mode::thread;
        writer_ = std::make_shared<WriterThread>();
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        // Detached: the end of the process does not wait for it.
        std::thread([writer = writer_, fd] { writer->write_all(fd); }).detach();
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
}

void LogOutput::write(std::string_view line) noexcept {
    flush();
    if (pending_.empty()) {
        // The rest of the last line is lost.
        if (within_line_ && write_now("\n") != 1) return drop_lines(line, errno);
        const long written = write_now(line);
        if (written < 0 && !may_be_tried_again(errno)) return drop_lines(line, errno);
        if (written > 0) ++taken_;
        line.remove_prefix(static_cast<std::size_t>(std::max(written, 0L)));
    }
    if (line.size() > kMaxPendingBytes - pending_.size()) return drop_lines(line, 0);
    pending_.append(line);
}

void LogOutput::flush() noexcept {
    std::size_t done = 0;
    while (done < pending_.size()) {
        const std::string_view piece = next_piece(std::string_view(pending_).substr(done));
        const long written = write_now(piece);
        if (written > 0) {
            done += static_cast<std::size_t>(written);
            ++taken_;
        } else if (written < 0 && may_be_tried_again(errno)) {
            break;
        } else {
            drop_lines(std::string_view(pending_).substr(done), errno);
            done = pending_.size();
        }
    }
    pending_.erase(0, done);
}

void LogOutput::catch_up() noexcept {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + kMaxCatchUpTime;
    for (std::size_t before = pending_.size(); before > 0; before = pending_.size()) {
        flush();
        if (pending_.empty() || pending_.size() == before || Clock::now() >= end) return;
        wait_for_room(1);
    }
}

void LogOutput::finish(std::chrono::milliseconds limit) noexcept {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + limit;
    for (flush(); !pending_.empty() || !all_written(); flush()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
        if (left.count() <= 0) return;
        wait_for_room(static_cast<int>(left.count()));
    }
}

void LogOutput::write_emergency_line(std::string_view text) const noexcept {
    if (within_line_) (void)write_now("\n");
    for (int tries = 0; tries < kEmergencyTries && !(text.empty() && all_written()); ++tries) {
        const long written = text.empty() ? 0 : write_now(text);
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
            continue;
        }
        if (written < 0 && !may_be_tried_again(errno)) return;
        (void)::poll(nullptr, 0, kEmergencyPauseMs);
    }
}

/// The next lines to write together: as many as a pipe takes whole, or one.
std::string_view LogOutput::next_piece(std::string_view lines) {
    if (lines.size() <= PIPE_BUF) return lines;
    const std::size_t end = lines.rfind('\n', PIPE_BUF - 1);
    return lines.substr(0, (end != std::string_view::npos ? end : lines.find('\n')) + 1);
}

long LogOutput::write_now(std::string_view text) const noexcept {
    long written = 0;
    if (mode_ == Mode::send) {
        written = ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (mode_ == Mode::thread) {
        text = text.substr(0, PIPE_BUF);
        errno = writer_->error.exchange(0);
        if (errno != 0) return -1;
        errno = EAGAIN;
        if (!writer_->take(text)) return -1;
        written = static_cast<long>(text.size());
    } else {
        written = ::write(fd_, text.data(), text.size());
    }
    if (written > 0) within_line_ = text[static_cast<std::size_t>(written) - 1] != '\n';
    return written;
}

bool LogOutput::all_written() const noexcept {
    return mode_ != Mode::thread || writer_->size == WriterThread::kNone;
}

void LogOutput::wait_for_room(int milliseconds) const noexcept {
    if (mode_ == Mode::thread) {
        (void)::poll(nullptr, 0, 1);
        return;
    }
    pollfd room{fd_, POLLOUT, 0};
    (void)::poll(&room, 1, milliseconds);
}

void LogOutput::drop_lines(std::string_view lines, int reason) noexcept {
    lost_ += static_cast<std::uint64_t>(std::ranges::count(lines, '\n'));
    reason_ = may_be_tried_again(reason) ? 0 : reason;
}

}  // namespace gloved::daemon
