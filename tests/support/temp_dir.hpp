// A directory that a test may fill, and that goes with it.
#pragma once

#include <string>

namespace gloved::tests {

/// A fresh directory under $TMPDIR (or /tmp), removed with all its content at the end.
class TempDir {
  public:
    TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir();

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

/// The whole content of a file; fails the running test when it cannot be read.
std::string read_file(const std::string& path);
/// Writes a new file; fails the running test when it cannot be written.
void write_file(const std::string& path, const std::string& content);

/// The project's source folder, for data files and the pages that tests check.
std::string source_path(const std::string& relative);

}  // namespace gloved::tests
