// Computes the distances between the rows of a matrix file and writes them: all of gloved-distmat's
// work except its command line.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::distmat {

/// The options of gloved-distmat.
struct DistmatOptions {
    std::string input;   ///< file with a matrix, or with words if model_dir is set; «-» for stdin
    std::string output;  ///< file to write; «-» for text on stdout
    std::string model_dir = {};  ///< model from which the words' vectors are taken; or empty
    std::string member = {};     ///< name of the input file in an archive
    kernels::distance::Metric metric = kernels::distance::Metric::sqeuclidean;
    std::string engine = "auto";
    kernels::distance::DistanceOptions engine_options = {};
    std::size_t threads = 1;  ///< for parsing, preparing, sorting and formatting
    std::size_t top = 0;      ///< number of nearest other rows to write per row; 0: all distances
    std::size_t block = 0;    ///< rows computed at a time, for an array as many columns; 0:
                              ///< what suits the output and the engine
    bool times = false;       ///< say how long each stage took
};

/// Reads, computes and writes. An output whose name ends in «.npy» is a NumPy array, any other is
/// text:
///
/// - With top = 0 all distances: float32, shape (rows, rows); as text a line per row, with blanks
///   between the numbers.
/// - Otherwise the k nearest other rows of each row, nearest first, of equally near ones the lower
///   row number first; k is `top`, or rows − 1 if that is less. The array has shape (rows, k) and
///   fields («index», int64) and («distance», float32). Text has lines of row, TAB, index, TAB,
///   distance; with a model, words instead of row numbers.
///
/// Rows count from 0. Numbers in text are the shortest decimals that read back as the same float32.
/// The output gets its name when it is complete (OutputFile). All distances as an array are
/// computed block by block in a mapped file, so that memory holds the points and two blocks. Other
/// outputs need some 64 MB besides the points. Calls `say` with lines for people: what was done,
/// and with options.times how long it took.
///
/// Errors: those of read_matrix, read_words, prepare, make_distance_engine, Engine::run and
/// OutputFile; interrupted, once `stop` is true.
Status distmat(const DistmatOptions& options, const std::atomic<bool>& stop,
               const std::function<void(const std::string&)>& say);

}  // namespace gloved::distmat
