// Finds the array of word vectors in a NumPy file (.npy) or a safetensors file, and converts its
// numbers. Such a file holds no words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gloved::source {

enum class NumberType { float16, bfloat16, float32, float64 };

/// An array of shape (rows, dim) in a file: one row for each word.
struct ArrayLayout {
    NumberType type = NumberType::float32;
    bool big_endian = false;
    bool fortran_order = false;  ///< column by column
    std::string dtype;           ///< the type as the file names it: «<f4», «BF16»
    std::string tensor;          ///< name in a safetensors file; empty in .npy
    bool alone = true;           ///< the file holds no other tensor
    std::uint64_t rows = 0;
    std::size_t dim = 0;
    std::uint64_t offset = 0;      ///< of the first number, in the unpacked source
    std::uint64_t file_bytes = 0;  ///< where the source ends

    std::size_t number_bytes() const {
        return type == NumberType::float64 ? 8 : type == NumberType::float32 ? 4 : 2;
    }
    std::size_t row_bytes() const { return dim * number_bytes(); }
};

/// Maximum size of a safetensors header. The format allows 100 MB.
inline constexpr std::size_t kMaxTensorHeaderBytes = 4 << 20;

/// Whether a source that begins with `head` is a safetensors file.
bool is_safetensors(std::string_view head);

/// Finds the array in a file of NumPy or safetensors by its first bytes, `head`, as detect() gets
/// them. `tensor` names one in a safetensors file, or is empty if it has but one. Checks the header
/// and that no size overflows; the caller compares `file_bytes`. Error: bad_source, without the
/// source's name, for a damaged header and for an array of another shape or type.
Result<ArrayLayout> find_array(std::string_view head, const std::string& tensor);

/// Converts `array.dim` numbers, not aligned, to float32, correctly rounded. A float64 beyond
/// float32 becomes infinite. Safe for concurrent use.
void convert_numbers(const char* numbers, const ArrayLayout& array, float* values);

/// The number `i` of those, where their type is float64.
double float64_at(const char* numbers, const ArrayLayout& array, std::size_t i);

}  // namespace gloved::source
