// Reads matrices from a NumPy file: one array of shape (matrices, rows, columns).
#pragma once

#include <string>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// Reads an array to the end of `input` and delivers its matrices as `begin` says (matrices.hpp).
/// It begins with the file's header, parsed in `header`. An array of T is read as it is; if T is
/// double, float32 and int32 are converted, exactly. Errors: those of Input::read, of `begin` and
/// of the reducer; bad_source, with the remedy, for another shape or type, for NaN, and for fewer
/// or more bytes than the header says.
template <class T>
Result<Reading<T>> read_npy(source::Input& input, const npy::Header& header,
                            const ReadOptions& options, const Begin<T>& begin);

}  // namespace gloved::matmin
