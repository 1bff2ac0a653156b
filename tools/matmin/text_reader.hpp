// Reads text of many matrices: a count, then matrices separated by lines of ***.
#pragma once

#include <string>

#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// Reads `input` to its end; `head` was read from it already.
///
/// The first line holds the count. Each further line that is not blank is a row of a matrix,
/// numbers separated by blanks and tabs, or a separator: *** alone. Separators stand between
/// matrices, and may stand before the first and after the last. LF or CR LF ends a line; a byte
/// order mark (UTF-8) at the beginning is ignored. The first matrix defines rows and columns of
/// all. Memory: a few blocks for every thread, and the longest matrix. Errors: those of
/// Input::read, of `begin` and of the reducer; bad_source for any other text, with line and remedy.
/// Always reports the first fault, whatever the number of threads.
template <class T>
Result<Reading<T>> read_text(source::Input& input, std::string head, const ReadOptions& options,
                             const Begin<T>& begin);

}  // namespace gloved::matmin
