// All distances of a matrix's rows, from its file to theirs.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::distmat {

struct DistmatOptions {
    std::string input;   ///< a matrix, or words where there is a model; «-» for stdin
    std::string output;  ///< a file; «-» for text on stdout
    std::string model_dir = {};
    std::string member = {};  ///< of the input, where that is a zip archive
    kernels::distance::Metric metric = kernels::distance::Metric::sqeuclidean;
    std::string engine = "auto";
    kernels::distance::EngineOptions engine_options = {};
    std::size_t threads = 1;  ///< that parse, prepare, rank and print
    std::size_t top = 0;    ///< 0: all distances; otherwise those to so many nearest others of each
                            ///< row
    std::size_t block = 0;  ///< rows and columns at a time, of an output that is mapped; 0: as fits
                            ///< the engine
    bool times = false;
};

/// Reads, computes and writes. An output whose name ends in «.npy» is NumPy's array, another is
/// text:
///
/// - all distances: float32, shape (rows, rows); as text a line a row, numbers separated by one
///   blank.
/// - `top`: the nearest others of each row, nearest first, of equal ones the lower row first. Shape
///   (rows, k) of fields («index», int64) and («distance», float32); as text lines of row, TAB,
///   index, TAB, distance, with words for numbers where there is a model. k is `top`, or all the
///   others where those are fewer.
///
/// Rows are counted from 0, and numbers are the shortest decimals that read back as the same
/// float32. The output has its name when it is whole (OutputFile). All distances as an array are
/// computed in blocks of a mapped file, so that memory takes the points and two blocks; all else
/// takes some 64 MB beside the points. `say` is told what was done, and with `times` how long it
/// took, in lines for people.
///
/// Errors: those of read_matrix, read_words, prepare, make_distance_engine, Engine::run and
/// OutputFile.
Status distmat(const DistmatOptions& options, const std::atomic<bool>& stop,
               const std::function<void(const std::string&)>& say);

}  // namespace gloved::distmat
