// Formats the result of gloved-matmin as text.
#pragma once

#include <span>
#include <string>

#include "tools/matmin/matrices.hpp"

namespace gloved::matmin {

/// Formats `numbers`, shape (rows, columns), a line for each row, with one blank between numbers:
/// the shortest decimals that read back as the same T, in any locale. −0 is «-0».
template <class T>
std::string matrix_text(std::span<const T> numbers, Shape shape);

}  // namespace gloved::matmin
