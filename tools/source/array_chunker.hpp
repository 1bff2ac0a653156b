// Divides an array into batches of whole rows, each with the words of its rows.
#pragma once

#include <memory>

#include "tools/source/chunker.hpp"
#include "tools/source/input.hpp"

namespace gloved::source {

/// A chunker for the array options.detected.layout. A batch has the words of its rows, where
/// batch.places says, and behind them the numbers. An array in Fortran order is read twice: as it
/// comes, and each batch's part of every column once more by its place, so it needs
/// Input::plain_fd().
///
/// Errors of next(), beside those of Chunker: those of TokenList, with the input's name before
/// them; bad_source, if the source ends too early. With skip_faults that is no error: the last
/// batch has the rows that are there, and cut_bytes.
std::unique_ptr<Chunker> make_array_chunker(Input& input, ChunkerOptions options);

}  // namespace gloved::source
