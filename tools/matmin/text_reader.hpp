// Text of many matrices: a count, then matrices separated by lines of ***.
#pragma once

#include <string>

#include "common/result.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {

/// Reads `input` to its end; `head` is what was read from it already.
///
/// The first line holds the count. Each further line that is not blank is a row of a matrix,
/// numbers separated by blanks and tabs, or a separator: *** alone. Separators stand between
/// matrices, and may stand before the first one and behind the last. LF or CR LF ends a line; a
/// byte order mark (UTF-8) at the beginning is passed over. The first matrix tells rows and columns
/// of all.
///
/// Holds a few blocks for every thread, and as much as the longest matrix takes. Errors: those of
/// Input::read, of `begin` and of the reducer; bad_source for text that is anything else, with its
/// line and a remedy, always the same one, whatever the number of threads.
template <class T>
Result<Reading<T>> read_text(source::Input& input, std::string head, const ReadOptions& options,
                             const Begin<T>& begin);

}  // namespace gloved::matmin
