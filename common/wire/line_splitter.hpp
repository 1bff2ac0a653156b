// LineSplitter: splits the bytes that a connection receives into request lines, in bounded memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/wire/request.hpp"

namespace gloved::wire {

/// Append bytes as they arrive, then take lines until `next` returns nullopt, before the next
/// append. So it holds at most one incomplete line and the bytes of one append.
class LineSplitter {
  public:
    explicit LineSplitter(std::size_t max_line_bytes = kMaxLineBytes)
        : max_line_bytes_(max_line_bytes) {}

    /// Adds bytes. Ignored once a line is too long.
    void append(std::string_view bytes);

    /// Takes the next complete line, without its LF or CR LF. nullopt if more bytes must arrive
    /// first, or if a line is too long (see `too_long`). The view is valid until the next call of
    /// append, next or take_rest.
    std::optional<std::string_view> next();

    /// Whether `next` has met a line longer than max_line_bytes, not counting the LF. From then on
    /// next and take_rest return nullopt.
    bool too_long() const { return too_long_; }

    /// The bytes after the last line taken: the incomplete line, once `next` has returned nullopt.
    std::string_view partial() const { return std::string_view(buffer_).substr(begin_); }

    /// Takes the incomplete line that `partial` shows, without a CR at its end; nullopt if it is
    /// empty. Call it at the end of the stream, after `next` has returned nullopt.
    std::optional<std::string> take_rest();

  private:
    std::size_t max_line_bytes_;
    std::string buffer_;
    std::size_t begin_ = 0;    // of the next line in buffer_
    std::size_t scanned_ = 0;  // no LF between begin_ and here
    bool too_long_ = false;
};

}  // namespace gloved::wire
