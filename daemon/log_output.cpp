#include "daemon/log_output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gloved::daemon {
namespace {

/// A pipe holds 64 KiB, and a reader takes that in some 50 µs.
constexpr std::chrono::milliseconds kLongestCatchUp{5};
constexpr int kLastWordsPauseMs = 20;
constexpr int kLastWordsTries = 5;

bool may_be_tried_again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

LogOutput::LogOutput(int fd) : fd_(fd) {
    // No memory is asked for later. Pages that are never written cost nothing.
    kept_.reserve(kMaxKeptBytes);
    struct stat status {};
    if (::fstat(fd, &status) != 0) return;  // writing will fail, and be counted
    if (S_ISSOCK(status.st_mode)) {
        way_ = Way::message;
    } else if (S_ISFIFO(status.st_mode) || ::isatty(fd) == 1) {
        const std::string path = "/proc/self/fd/" + std::to_string(fd);
        own_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
        if (own_) fd_ = own_.get();
        // Another user's terminal or pipe, or there is no /proc.
        if (!own_) way_ = Way::polled;
    }
}

void LogOutput::write(std::string_view line) noexcept {
    flush();
    if (kept_.empty()) {
        const long written = write_now(line);
        if (written < 0 && !may_be_tried_again(errno)) return lose(line);
        if (written > 0) ++taken_;
        line.remove_prefix(static_cast<std::size_t>(std::max(written, 0L)));
    }
    if (line.size() > kMaxKeptBytes - kept_.size()) return lose(line);
    kept_.append(line);
}

void LogOutput::flush() noexcept {
    std::size_t done = 0;
    while (done < kept_.size()) {
        const std::string_view piece = next_piece(std::string_view(kept_).substr(done));
        const long written = write_now(piece);
        if (written > 0) {
            done += static_cast<std::size_t>(written);
            ++taken_;
        } else if (written < 0 && may_be_tried_again(errno)) {
            break;
        } else {
            lose(std::string_view(kept_).substr(done));
            done = kept_.size();
        }
    }
    kept_.erase(0, done);
}

void LogOutput::catch_up() noexcept {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + kLongestCatchUp;
    for (std::size_t before = kept_.size(); before > 0; before = kept_.size()) {
        flush();
        if (kept_.empty() || kept_.size() == before || Clock::now() >= end) return;
        pollfd room{fd_, POLLOUT, 0};
        (void)::poll(&room, 1, 1);
    }
}

void LogOutput::finish(std::chrono::milliseconds limit) noexcept {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + limit;
    for (flush(); !kept_.empty(); flush()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
        if (left.count() <= 0) return;
        pollfd room{fd_, POLLOUT, 0};
        (void)::poll(&room, 1, static_cast<int>(left.count()));
    }
}

void LogOutput::write_last_words(std::string_view text) const noexcept {
    for (int tries = 0; tries < kLastWordsTries && !text.empty(); ++tries) {
        const long written = write_now(text);
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
            continue;
        }
        if (written < 0 && !may_be_tried_again(errno)) return;
        (void)::poll(nullptr, 0, kLastWordsPauseMs);
    }
}

/// What is to be written at once: whole lines that a pipe takes whole, or else one line.
std::string_view LogOutput::next_piece(std::string_view lines) {
    if (lines.size() <= PIPE_BUF) return lines;
    const std::size_t end = lines.rfind('\n', PIPE_BUF - 1);
    return lines.substr(0, (end != std::string_view::npos ? end : lines.find('\n')) + 1);
}

long LogOutput::write_now(std::string_view text) const noexcept {
    if (way_ == Way::message) return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (way_ == Way::polled) {
        pollfd room{fd_, POLLOUT, 0};
        if (::poll(&room, 1, 0) != 1) {
            errno = EAGAIN;
            return -1;
        }
        text = text.substr(0, PIPE_BUF);
    }
    return ::write(fd_, text.data(), text.size());
}

void LogOutput::lose(std::string_view lines) noexcept {
    lost_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
}

}  // namespace gloved::daemon
