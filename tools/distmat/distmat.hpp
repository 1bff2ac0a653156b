// Computes all distances between the rows of a matrix file and writes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::distmat {

struct DistmatOptions {
    std::string input;   ///< a matrix, or words if there is a model; «-» for stdin
    std::string output;  ///< a file; «-» for text on stdout
    std::string model_dir = {};
    std::string member = {};  ///< of the input, if it is a zip archive
    kernels::distance::Metric metric = kernels::distance::Metric::sqeuclidean;
    std::string engine = "auto";
    kernels::distance::DistanceOptions engine_options = {};
    std::size_t threads = 1;  ///< that parse, prepare, rank and print
    std::size_t top = 0;      ///< how many nearest others of each row; 0: all distances
    std::size_t block = 0;    ///< rows and columns computed at a time for a mapped output; 0: the
                              ///< engine's best
    bool times = false;
};

/// Reads, computes and writes. An output whose name ends in «.npy» is a NumPy array, any other is
/// text:
///
/// - all distances: float32, shape (rows, rows); as text a line a row, numbers separated by one
///   blank.
/// - `top`: the nearest others of each row, nearest first, of equal ones the lower row first. Shape
///   (rows, k) of fields («index», int64) and («distance», float32); as text lines of row, TAB,
///   index, TAB, distance, with words instead of row numbers if there is a model. k is `top`, or
///   rows − 1 if that is less.
///
/// Rows are counted from 0, and numbers are the shortest decimals that read back as the same
/// float32. The output gets its name when it is complete (OutputFile). All distances as an array
/// are computed in blocks of a mapped file: memory holds the points and two blocks. All else takes
/// some 64 MB beside the points. Calls `say` with what was done, and with `times` how long it took,
/// in lines for people.
///
/// Errors: those of read_matrix, read_words, prepare, make_distance_engine, Engine::run and
/// OutputFile.
Status distmat(const DistmatOptions& options, const std::atomic<bool>& stop,
               const std::function<void(const std::string&)>& say);

}  // namespace gloved::distmat
