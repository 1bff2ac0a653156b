// LineSplitter: splits a byte stream into lines, in bounded memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/wire/request.hpp"

namespace gloved::wire {

/// Append bytes as they arrive, take lines out. Holds at most one line and what was appended after
/// it.
class LineSplitter {
  public:
    explicit LineSplitter(std::size_t max_line_bytes = kMaxLineBytes)
        : max_line_bytes_(max_line_bytes) {}

    /// Adds bytes.
    void append(std::string_view bytes);

    /// The next complete line, without its LF or CR LF; nothing if there is none or the line is too
    /// long. The view is valid until the next call of append, next or take_rest.
    std::optional<std::string_view> next();

    /// Whether the current line is too long, complete or not. Stays true: the stream cannot be
    /// trusted any more.
    bool too_long() const { return too_long_; }

    /// The incomplete line at the end.
    std::string_view partial() const { return std::string_view(buffer_).substr(begin_); }

    /// Removes and returns the bytes after the last line end, as a line.
    std::optional<std::string> take_rest();

  private:
    std::size_t max_line_bytes_;
    std::string buffer_;
    std::size_t begin_ = 0;    // of the current line
    std::size_t scanned_ = 0;  // no LF before this
    bool too_long_ = false;
};

}  // namespace gloved::wire
