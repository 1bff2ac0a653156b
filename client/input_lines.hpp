// Splits a client's input into request lines, in bounded memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {

/// Append bytes as they are read, then take lines until `next` returns nullopt. A line is returned
/// without its LF, but with a CR before the LF, since the daemon takes both. A byte order mark
/// before the first line is dropped. (TextLines waits for its input; this does not.) A line longer
/// than kMaxLineBytes is cut to one byte more than that: the daemon refuses it all the same, and no
/// input can fill the memory.
class InputLines {
  public:
    /// Adds bytes.
    void append(std::string_view bytes);
    /// Takes the next complete line; nullopt if more bytes must be appended first. Error: that of
    /// begin_of_text, with the first line.
    Result<std::optional<std::string>> next();
    /// Takes the bytes after the last LF, if any. Call it at the end of the input. Errors as
    /// `next`.
    Result<std::optional<std::string>> finish();
    /// Bytes of memory in use.
    std::size_t held_bytes() const { return buffer_.size(); }

  private:
    static constexpr std::size_t kKept = wire::kMaxLineBytes + 1;

    Result<std::optional<std::string>> take(std::size_t end);

    std::string buffer_;
    std::size_t begin_ = 0;    ///< of the current line
    std::size_t scanned_ = 0;  ///< no LF from `begin_` to here
    bool is_first_ = true;     ///< the current line is the first
};

}  // namespace gloved::client
