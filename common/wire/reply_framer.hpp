// ReplyFramer: finds where the text replies of a stream end, at millions a second.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>

namespace gloved::wire {

/// Reads just enough of a reply to know its end: «OK n» or «ERR code», and n line ends. It keeps
/// only the beginning of a status line that is split between two reads, and never allocates.
class ReplyFramer {
  public:
    /// Goes on with the current reply, or begins the next one. Returns the end of the reply within
    /// the bytes from `begin` to `end`, or nullptr if the reply goes on after them. Also nullptr
    /// if the peer does not speak the protocol (`broken`).
    const char* take(const char* begin, const char* end) {
        if (!in_lines_) {
            begin = take_status(begin, end);
            if (begin == nullptr) return nullptr;
        }
        while (lines_left_ > 0) {
            const char* const line_end = find_line_end(begin, end);
            if (line_end == nullptr) {
                in_lines_ = true;
                return nullptr;
            }
            begin = line_end + 1;
            --lines_left_;
        }
        in_lines_ = false;
        return begin;
    }

    /// Whether the reply that `take` ended is an OK.
    bool ok() const { return ok_; }
    /// The code of the ERR reply that `take` ended. Valid until the next call of `take`.
    std::string_view code() const { return {code_.data(), code_size_}; }
    /// Whether a status line was not of this protocol. The framer cannot be used afterwards.
    bool broken() const { return broken_; }

  private:
    /// Of a status line: «OK » and a number, or «ERR » and a code. The rest does not matter.
    static constexpr std::size_t kHeadBytes = 32;

    static const char* find_line_end(const char* begin, const char* end) {
        // memchr does not take a null pointer, and a reply may end where the bytes do.
        if (begin == end) return nullptr;
        return static_cast<const char*>(
            std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
    }

    /// Returns the end of the status line, or nullptr as `take`.
    const char* take_status(const char* begin, const char* end) {
        const char* const line_end = find_line_end(begin, end);
        const auto size = static_cast<std::size_t>((line_end != nullptr ? line_end : end) - begin);
        if (line_end != nullptr && head_size_ == 0) {
            read_status({begin, size});
        } else {
            const std::size_t kept = std::min(size, kHeadBytes - head_size_);
            if (kept > 0) std::memcpy(head_.data() + head_size_, begin, kept);
            head_size_ += kept;
            if (line_end == nullptr) return nullptr;
            read_status({head_.data(), head_size_});
            head_size_ = 0;
        }
        return broken_ ? nullptr : line_end + 1;
    }

    /// Reads a status line, of which at least kHeadBytes are there if it is longer.
    void read_status(std::string_view line) {
        lines_left_ = 0;
        ok_ = line.starts_with("OK ");
        if (ok_) {
            line.remove_prefix(3);
            const auto [stop, fault] =
                std::from_chars(line.data(), line.data() + line.size(), lines_left_);
            const bool more = stop != line.data() + line.size();
            broken_ = fault != std::errc() || (more && *stop != ' ');
            return;
        }
        broken_ = !line.starts_with("ERR ");
        if (broken_) return;
        line.remove_prefix(4);
        const std::string_view code = line.substr(0, line.find(' '));
        code_size_ = std::min(code.size(), code_.size());
        std::copy_n(code.begin(), code_size_, code_.begin());
    }

    std::array<char, kHeadBytes> head_{};  // of a status line that is not complete
    std::size_t head_size_ = 0;
    std::size_t lines_left_ = 0;
    bool in_lines_ = false;  // the status line of the current reply is read
    bool ok_ = false;
    bool broken_ = false;
    std::array<char, kHeadBytes> code_{};
    std::size_t code_size_ = 0;
};

}  // namespace gloved::wire
