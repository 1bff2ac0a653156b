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

/// Limit on each line of a text reply. The longest, a row of a large MATRIX, has some 300 kB.
inline constexpr std::size_t kMaxReplyLineBytes = std::size_t{4} << 20;

/// Reads just enough of a reply to know its end: «OK n» or «ERR code», and n line ends; of JSON, an
/// object of any length on one line. It keeps only the beginning of a status line that is split
/// between two reads, and never allocates.
class ReplyFramer {
  public:
    /// Goes on with the current reply, or begins the next one. Returns the end of the reply within
    /// the bytes from `begin` to `end`, or nullptr if the reply goes on after them. Also nullptr
    /// if the peer does not speak the protocol (`broken`).
    const char* take(const char* begin, const char* end) {
        if (!in_reply_) {
            begin = take_head(begin, end);
            if (begin == nullptr) return nullptr;
            in_reply_ = true;
        }
        while (lines_left_ > 0) {
            begin = take_line(begin, end);
            if (begin == nullptr) return nullptr;
            --lines_left_;
        }
        in_reply_ = false;
        return begin;
    }

    /// Whether the current reply has begun, with its whole status line if it is text, and not
    /// ended.
    bool in_reply() const { return in_reply_; }
    /// Whether the current reply, or the one that `take` ended, is JSON: then there is no `ok` and
    /// no `code`.
    bool is_json() const { return is_json_; }
    /// Whether the reply that `take` ended is an OK.
    bool ok() const { return ok_; }
    /// The code of the ERR reply that `take` ended. Valid until the next call of `take`.
    std::string_view code() const { return {code_.data(), code_size_}; }
    /// Whether a status line was not of this protocol, or a line too long. The framer cannot be
    /// used afterwards.
    bool broken() const { return foreign_ || line_too_long_; }
    /// Whether a line of text has more than kMaxReplyLineBytes.
    bool line_too_long() const { return line_too_long_; }

  private:
    /// Of a status line: «OK » and a number, or «ERR » and a code. The rest does not matter.
    static constexpr std::size_t kHeadBytes = 32;

    /// Returns the end of the current line, or nullptr as `take`.
    const char* take_line(const char* begin, const char* end) {
        // memchr does not take a null pointer, and a reply may end where the bytes do.
        if (begin == end) return nullptr;
        const auto* const line_end = static_cast<const char*>(
            std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
        line_bytes_ += static_cast<std::size_t>((line_end != nullptr ? line_end : end) - begin);
        if (line_bytes_ > kMaxReplyLineBytes && !is_json_) {
            line_too_long_ = true;
            return nullptr;
        }
        if (line_end == nullptr) return nullptr;
        line_bytes_ = 0;
        return line_end + 1;
    }

    /// Returns where the lines of the reply begin, or nullptr as `take`.
    const char* take_head(const char* begin, const char* end) {
        if (head_size_ == 0) {
            is_json_ = begin != end && *begin == '{';
            if (is_json_) {
                lines_left_ = 1;
                return begin;
            }
        }
        const char* const lines = take_line(begin, end);
        if (line_too_long_) return nullptr;
        const auto size = static_cast<std::size_t>((lines != nullptr ? lines - 1 : end) - begin);
        if (lines != nullptr && head_size_ == 0) {
            read_status({begin, size});
        } else {
            const std::size_t kept = std::min(size, kHeadBytes - head_size_);
            if (kept > 0) std::memcpy(head_.data() + head_size_, begin, kept);
            head_size_ += kept;
            if (lines == nullptr) return nullptr;
            read_status({head_.data(), head_size_});
            head_size_ = 0;
        }
        return foreign_ ? nullptr : lines;
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
            foreign_ = fault != std::errc() || (more && *stop != ' ');
            return;
        }
        foreign_ = !line.starts_with("ERR ");
        if (foreign_) return;
        line.remove_prefix(4);
        const std::string_view code = line.substr(0, line.find(' '));
        code_size_ = std::min(code.size(), code_.size());
        std::copy_n(code.begin(), code_size_, code_.begin());
    }

    std::array<char, kHeadBytes> head_{};  // of a status line that is not complete
    std::size_t head_size_ = 0;
    std::size_t line_bytes_ = 0;  // of a line that is not complete
    std::size_t lines_left_ = 0;
    bool in_reply_ = false;
    bool is_json_ = false;
    bool ok_ = false;
    bool foreign_ = false;
    bool line_too_long_ = false;
    std::array<char, kHeadBytes> code_{};
    std::size_t code_size_ = 0;
};

}  // namespace gloved::wire
