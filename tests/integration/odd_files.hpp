// odd_files.tsv: downloads of every odd kind, and what becomes of each.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::tests {

/// One row of the table; its columns are described at the top of the file.
struct OddFile {
    std::string name;
    std::string content;               ///< an expression, see content_of
    std::vector<std::string> options;  ///< with an expression behind «--words=»
    int exit_status = 0;
    std::string words;  ///< the keys file; empty where it is refused
    std::vector<std::string> fragments;
};

std::ostream& operator<<(std::ostream& out, const OddFile& file);

/// All rows. Throws std::runtime_error for a line that is none, naming it.
std::vector<OddFile> read_odd_files(const std::string& path);

/// The bytes that an expression of the table stands for. Throws std::runtime_error for what is
/// none.
std::string content_of(std::string_view expression);

}  // namespace gloved::tests
