#include "daemon/lost_pages.hpp"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/quoting.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

/// Set before: the handler may not call log_prefix_of_errors.
std::string_view prefix;

/// A line in a fixed buffer.
class Line {
  public:
    void add(std::string_view text) {
        const std::size_t length = std::min(text.size(), bytes_.size() - size_);
        std::copy_n(text.data(), length, bytes_.data() + size_);
        size_ += length;
    }
    /// Adds text as the log would write it (common/quoting.hpp).
    void add_visible(std::string_view text) {
        constexpr std::string_view kDigits = "0123456789ABCDEF";
        while (!text.empty()) {
            const std::size_t hidden = invisible_bytes(text);
            const std::size_t length = hidden != 0 ? hidden : utf8_sequence_length(text);
            if (hidden == 0) add(text.substr(0, length));
            for (const char byte : text.substr(0, hidden)) {
                const auto number = static_cast<unsigned char>(byte);
                const char escape[] = {'\\', 'x', kDigits[number >> 4], kDigits[number & 15]};
                add({escape, sizeof escape});
            }
            text.remove_prefix(length);
        }
    }
    std::string_view text() const { return {bytes_.data(), size_}; }

  private:
    std::array<char, 4 * PATH_MAX + 1024> bytes_{};
    std::size_t size_ = 0;
};

/// Reads /proc/self/maps without allocating, for a signal handler.
class Maps {
  public:
    Maps() : fd_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    Maps(const Maps&) = delete;
    Maps& operator=(const Maps&) = delete;
    ~Maps() { ::close(fd_); }

    /// The path that is mapped at `address`, or empty. It points into this object.
    std::string_view path_at(std::uintptr_t address) {
        while (next_line()) {
            std::size_t at = 0;
            const std::uintptr_t begin = hexadecimal(at);
            ++at;  // the hyphen
            const std::uintptr_t end = hexadecimal(at);
            if (address < begin || address >= end) continue;
            const std::string_view line(line_.data(), length_);
            const std::size_t slash = line.find('/');
            return slash == std::string_view::npos ? std::string_view() : line.substr(slash);
        }
        return {};
    }

  private:
    bool next_line() {
        length_ = 0;
        for (char byte = 0; next_byte(byte);) {
            if (byte == '\n') return true;
            if (length_ < line_.size()) line_[length_++] = byte;
        }
        return false;
    }

    bool next_byte(char& byte) {
        if (at_ == size_) {
            const ssize_t got = ::read(fd_, buffer_.data(), buffer_.size());
            if (got <= 0) return false;
            at_ = 0;
            size_ = static_cast<std::size_t>(got);
        }
        byte = buffer_[at_++];
        return true;
    }

    std::uintptr_t hexadecimal(std::size_t& at) const {
        std::uintptr_t value = 0;
        for (; at < length_; ++at) {
            const char digit = line_[at];
            if (digit >= '0' && digit <= '9') {
                value = value * 16 + static_cast<std::uintptr_t>(digit - '0');
            } else if (digit >= 'a' && digit <= 'f') {
                value = value * 16 + static_cast<std::uintptr_t>(digit - 'a' + 10);
            } else {
                break;
            }
        }
        return value;
    }

    const int fd_;
    std::array<char, 4096> buffer_;
    std::size_t at_ = 0;
    std::size_t size_ = 0;
    std::array<char, 4400> line_;  // numbers, and a path of PATH_MAX
    std::size_t length_ = 0;
};

/// Names the file on stderr and ends the process. Calls only what signal-safety(7) lists.
void on_bus_error(int number, siginfo_t* info, void* /*context*/) {
    if (info->si_code != BUS_ADRERR) {
        ::signal(number, SIG_DFL);
        ::raise(number);
        return;
    }
    // Several threads of a scan may come here at once.
    static std::atomic_flag is_told;
    while (is_told.test_and_set()) ::pause();
    Maps maps;
    const std::string_view path = maps.path_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
    static constinit Line line;
    line.add(prefix);
    line.add_visible(path.empty() ? "a mapped file" : path);
    line.add(
        ": cannot read a part of this file: it was cut short while in use, or its disk fails; "
        "exiting. Replace a model by renaming, as gloved-convert does, never in place\n");
    write_emergency_line(line.text());
    ::_exit(1);
}

}  // namespace

void install_sigbus_handler() {
    prefix = log_prefix_of_errors();
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    (void)::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gloved::daemon
