// Reads the matrix of gloved-distmat: from text, from a NumPy file, or rows of a model by their
// words.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/files.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/distance/prepare.hpp"

namespace gloved::distmat {

struct ReadOptions {
    std::size_t threads = 0;  ///< that parse text, beside the calling thread, which reads; 0: it
                              ///< does both
    std::size_t chunk_bytes = std::size_t{4} << 20;  ///< of text that a thread parses at a time
    std::string member = {};                         ///< of a zip archive; empty: its only file
};

class Matrix {
  public:
    std::size_t rows() const { return rows_; }
    std::size_t dim() const { return dim_; }
    /// Shape (rows, dim), row-major. A view into the matrix or into its mapped file.
    kernels::distance::Values values() const;
    /// Names a row in messages: «m.txt: line 5», «m.npy: row 4 (counted from 0)», «words.txt: line
    /// 5 ("king")».
    std::string row_name(std::size_t row) const;
    /// The words of a model's rows, in order; empty for other matrices.
    const std::vector<std::string>& words() const { return words_; }
    /// Checks that a mapped file still has its size: the rest of a truncated page reads as zeros.
    /// Error: damaged.
    Status verify_size() const;

  private:
    friend class TextReader;
    friend Result<Matrix> read_matrix(const std::string&, const ReadOptions&,
                                      const std::atomic<bool>&);
    friend Result<Matrix> read_words(const std::string&, const format::Model&,
                                     const std::atomic<bool>&, const std::string&);

    /// Begin of a run of rows that stand on consecutive lines.
    struct LineOfRow {
        std::size_t row = 0;
        std::uint64_t line = 0;
    };

    std::string name_;
    std::size_t rows_ = 0;
    std::size_t dim_ = 0;
    std::variant<std::vector<float>, std::vector<double>> storage_;
    MappedFile mapped_;
    std::variant<std::monostate, kernels::distance::Values> view_;  // into mapped_
    std::vector<LineOfRow> lines_;                                  // empty: rows have no lines
    std::vector<std::string> words_;
};

/// Reads the file `path`, or stdin for «-», plain, gzip or in a zip archive; its content determines
/// the format. Takes 8 bytes of memory a number; an array in a plain file is mapped.
///
/// Text: a row a line, numbers separated by blanks (0x20) and TABs, as many in each row. Blank
/// lines, a CR before the LF and a byte order mark at the beginning are ignored. Numbers become the
/// nearest float64. NumPy's file (.npy): shape (rows, columns), float32 or float64, little-endian,
/// in C order, and no bytes after it. At least one row and one column. Errors name the file, the
/// line or byte, and the remedy: io, interrupted; bad_source, damaged or unsupported for other
/// content.
Result<Matrix> read_matrix(const std::string& path, const ReadOptions& options,
                           const std::atomic<bool>& stop);

/// Reads the rows of a model whose words are in the file `path`, one a line, or on stdin for «-»;
/// `member` is as in ReadOptions. Ignores empty lines and a CR before the LF; a word may be listed
/// twice. Errors: as above; unknown_word with its line.
Result<Matrix> read_words(const std::string& path, const format::Model& model,
                          const std::atomic<bool>& stop, const std::string& member = {});

}  // namespace gloved::distmat
