// ScratchDirectory: a temporary directory under $TMPDIR or /tmp.
#pragma once

#include <string>
#include <utility>

#include "common/result.hpp"

namespace gloved::bench {

/// Owns a temporary directory; the destructor removes it with its content.
class ScratchDirectory {
  public:
    /// Creates an empty directory. Error: io.
    static Result<ScratchDirectory> create();
    ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchDirectory& operator=(ScratchDirectory&&) = delete;
    ~ScratchDirectory();
    const std::string& path() const { return path_; }

  private:
    ScratchDirectory() = default;
    std::string path_;
};

}  // namespace gloved::bench
