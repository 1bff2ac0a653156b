// Computes the distances between the rows of a matrix file and writes them: all of gloved-distmat's
// work except its command line.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"
#include "tools/distmat/matrix.hpp"

namespace gloved::distmat {

/// How the output is written.
enum class Format {
    text,  ///< lines of numbers, or of row, index and distance
    csv,   ///< the same as a table (table_text) with commas, or with TABs; rows have labels
    tsv,
    npy,  ///< a NumPy array
};

/// The format that a file's name suggests: csv or npy by its end, otherwise text.
Format format_of(std::string_view path);

/// The options of gloved-distmat.
struct DistmatOptions {
    std::string input;   ///< file with a matrix, or with words if model_dir is set; «-» for stdin
    std::string output;  ///< file to write; «-» for text on stdout
    std::string model_dir = {};  ///< model from which the words' vectors are taken; or empty
    WordRules word_rules = {};   ///< for words of the input
    std::string member = {};     ///< name of the input file in an archive
    kernels::distance::Metric metric = kernels::distance::Metric::sqeuclidean;
    bool is_similarity = false;  ///< with the metric cosine: write the cosine, 1 − distance
    Format format = Format::text;
    std::string engine = "auto";
    kernels::distance::DistanceOptions engine_options = {};
    std::size_t threads = 1;  ///< for parsing, preparing, sorting and formatting
    std::size_t top = 0;      ///< number of nearest other rows to write per row; 0: all distances
    std::size_t block = 0;    ///< rows computed at a time, for an array as many columns; 0:
                              ///< what suits the output and the engine
    bool times = false;       ///< say how long each stage took
};

/// Reads, computes and writes:
///
/// - With top = 0 all distances: float32, shape (rows, rows); as text a line per row, with blanks
///   between the numbers; as a table with a column of labels, «word» or «row», and a heading for
///   each row.
/// - Otherwise the k nearest other rows of each row, nearest first, of equally near ones the lower
///   row number first; k is `top`, or rows − 1 if that is less. The array has shape (rows, k) and
///   fields («index», int64) and («distance», float32). Text has lines of row, TAB, index, TAB,
///   distance; with a model, words instead of row numbers. A table has the headings «word» or
///   «row», «neighbour» and «distance». Of similarities, the largest come first, and `distance` is
///   called `similarity`.
///
/// A word that the rules skip keeps its place. Its distances are NaN, in a table empty cells; of
/// its nearest rows, a table has one line with empty cells, an array −1 and NaN, and text no line.
///
/// Rows count from 0. An array of all distances cannot go to stdout. Numbers in text are the
/// shortest decimals that read back as the same float32. The output gets its name when it is
/// complete (OutputFile). All distances as an array are computed block by block in a mapped file,
/// so that memory holds the points and two blocks. Other outputs need some 64 MB besides the
/// points. Calls `say` with lines for people: what was done, and with options.times how long it
/// took.
///
/// Errors: those of read_matrix, read_words, prepare, make_distance_engine, Engine::run and
/// OutputFile; interrupted, once `stop` is true.
Status distmat(const DistmatOptions& options, const std::atomic<bool>& stop,
               const std::function<void(const std::string&)>& say);

}  // namespace gloved::distmat
