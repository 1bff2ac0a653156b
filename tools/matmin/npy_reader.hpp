// Matrices from NumPy's file of one array, of shape (matrices, rows, columns).
#pragma once

#include <string>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// Reads `input` to its end; `head` is what was read from it already, and `header` what it begins
/// with. float32 and int32 are taken as float64, exactly, where T is that; all else must be what T
/// is. Errors: those of Input::read, of `begin` and of the reducer; bad_source for an array of
/// another shape or type, for one with NaN, and where there are fewer or more bytes than the header
/// says, with a remedy.
template <class T>
Result<Reading<T>> read_npy(source::Input& input, std::string head, const npy::Header& header,
                            const ReadOptions& options, const Begin<T>& begin);

}  // namespace gloved::matmin
