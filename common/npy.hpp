// Reads and writes the header of NumPy's array files, .npy (NumPy's NEP 1), as far as gloved needs
// it. The elements follow the header.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::npy {

/// Type of an element, little-endian; `other`: one that gloved cannot read.
enum class Type { float32, float64, int32, other };

/// What an array file's header says.
struct Header {
    std::string descr;  ///< the type as the file writes it: «<f4», or a list for a structured array
    Type type = Type::other;
    std::vector<std::size_t> shape;
    bool fortran_order = false;   ///< several dimensions, of which the first varies fastest
    std::size_t data_offset = 0;  ///< of the first element in the file
    std::size_t data_bytes = 0;   ///< size of all elements; 0 for Type::other
};

/// Maximum size of a header that gloved reads. NumPy's own limit is 10,000 bytes.
inline constexpr std::size_t kMaxHeaderBytes = 1 << 16;

/// Whether a file that begins with `prefix` is a NumPy array.
bool is_npy(std::string_view prefix);

/// Parses a header, versions 1 to 3, from the file's first min(size, kMaxHeaderBytes) bytes. The
/// caller checks that `data_bytes` bytes follow. Error: damaged, if truncated or contradictory. The
/// message begins with the file's name, `path`, unless that is empty, and has the NumPy call that
/// repairs it.
Result<Header> parse_header(std::string_view prefix, const std::string& path);

/// Checks that the elements are in C order and little-endian. Error: unsupported, with a message as
/// above.
Status check_plain(const Header& header, const std::string& path);

/// Makes the header of a row-major array. Its size is a multiple of 64 bytes, so that the data is
/// aligned. `descr` is a Python literal without quotes («<f4»), or a list of fields («[('index',
/// '<i8')]»).
std::string make_header(std::string_view descr, std::span<const std::size_t> shape);

}  // namespace gloved::npy
