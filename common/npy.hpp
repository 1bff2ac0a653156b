// NumPy's file of one array, as far as gloved reads and writes it: what its header says. The format
// is NumPy's NEP 1.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::npy {

/// Of one element; little-endian.
enum class Type { float32, float64, int32, other };

struct Header {
    std::string descr;  ///< as written: «<f4», or a list for a structured array
    Type type = Type::other;
    std::vector<std::size_t> shape;  ///< row-major
    std::size_t data_offset = 0;     ///< where the first element begins
    std::size_t data_bytes = 0;      ///< of all elements; 0 for Type::other
};

/// No header that gloved reads is longer. NumPy's own limit is 10,000 bytes.
inline constexpr std::size_t kMaxHeaderBytes = 1 << 16;

/// Whether a file that begins so calls itself an array of NumPy's.
bool is_npy(std::string_view prefix);

/// Reads a header from the file's first min(size, kMaxHeaderBytes) bytes; whether as many elements
/// follow as it says, the caller knows. Versions 1 to 3. Errors, with what NumPy call mends it:
/// damaged, where it is cut short or contradicts itself; unsupported, for columns that lie one
/// behind the other (Fortran order) and for big-endian numbers. `path` is what messages call the
/// file.
Result<Header> parse_header(std::string_view prefix, const std::string& path);

/// The header of a row-major array, a multiple of 64 bytes so that what follows is aligned. `descr`
/// is a Python literal without its quotes («<f4»), or a list of fields as it stands («[('index',
/// '<i8')]»).
std::string make_header(std::string_view descr, std::span<const std::size_t> shape);

}  // namespace gloved::npy
