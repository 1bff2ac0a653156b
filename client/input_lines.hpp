// Cuts what a user pipes in into request lines, in bounded memory. No files here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/wire/request.hpp"

namespace gloved::client {

/// Feed it what was read, take lines out. A line ends with LF, which is not part of it; a CR before
/// it is, as it stands. Of a line that is longer than a request may be, one byte more than that is
/// kept: the daemon refuses it all the same, and no input can fill the memory.
class InputLines {
  public:
    /// Adds bytes.
    void append(std::string_view bytes);
    /// The next line.
    std::optional<std::string> next();
    /// At the end of the input: what stands behind the last LF, as a line, if anything does.
    std::optional<std::string> finish();
    /// How much it holds now.
    std::size_t held_bytes() const { return buffer_.size(); }

  private:
    static constexpr std::size_t kKept = wire::kMaxLineBytes + 1;

    std::string buffer_;
    std::size_t begin_ = 0;    ///< of the line at hand
    std::size_t scanned_ = 0;  ///< no LF from `begin_` to here
};

}  // namespace gloved::client
