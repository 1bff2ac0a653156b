// Reads gloved-matmin's text input: the number of matrices, then the matrices, separated by lines
// of ***.
#pragma once

#include <string>

#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// Reads text to the end of `input` and delivers its matrices as `begin` says (matrices.hpp).
///
/// The first line has the number of matrices. Each further line that is not blank is a row of a
/// matrix, numbers separated by blanks and TABs, or a separator, a line of *** alone. A separator
/// must stand between matrices, and may stand before the first and after the last. LF or CR LF ends
/// a line; a byte order mark (UTF-8) at the beginning is ignored. All matrices must have the rows
/// and columns of the first. Needs memory for a few blocks per thread and the longest text of a
/// matrix. Errors: those of Input::read, of `begin` and of the reducer; bad_source for other text,
/// with its line and the remedy. If several lines are wrong, reports the first, whatever the number
/// of threads.
template <class T>
Result<Reading<T>> read_text(source::Input& input, const ReadOptions& options,
                             const Begin<T>& begin);

}  // namespace gloved::matmin
