// Reads matrices from a NumPy file: one array of shape (matrices, rows, columns).
#pragma once

#include <string>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// Reads `input` to its end; `head` was read from it already and begins with `header`. If T is
/// float64, float32 and int32 are converted exactly; otherwise the array's type must be T. Errors:
/// those of Input::read, of `begin` and of the reducer; bad_source with a remedy for another shape
/// or type, for NaN, and for fewer or more bytes than the header says.
template <class T>
Result<Reading<T>> read_npy(source::Input& input, std::string head, const npy::Header& header,
                            const ReadOptions& options, const Begin<T>& begin);

}  // namespace gloved::matmin
