// Splits input into request lines in bounded memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/wire/request.hpp"

namespace gloved::client {

/// Append what was read and take lines out. A line ends with LF, which is not part of it; a CR
/// before the LF is. A line that is longer than a request may be is cut one byte beyond that limit:
/// the daemon refuses it all the same, and no input can fill the memory.
class InputLines {
  public:
    /// Adds bytes.
    void append(std::string_view bytes);
    /// The next line.
    std::optional<std::string> next();
    /// At the end of the input: the bytes after the last LF, if any.
    std::optional<std::string> finish();
    /// Bytes of memory in use.
    std::size_t held_bytes() const { return buffer_.size(); }

  private:
    static constexpr std::size_t kKept = wire::kMaxLineBytes + 1;

    std::string buffer_;
    std::size_t begin_ = 0;    ///< of the current line
    std::size_t scanned_ = 0;  ///< no LF from `begin_` to here
};

}  // namespace gloved::client
