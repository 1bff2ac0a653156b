// A matrix as gloved-distmat reads it: numbers from text or from NumPy's file, or the rows of a
// model by their words.
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
    std::size_t threads = 0;  ///< that parse text beside the one that reads it; 0: the same
    std::size_t chunk_bytes = std::size_t{4} << 20;  ///< of text that a thread parses at a time
    std::string member = {};  ///< of a zip archive; none is needed where it has one file
};

class Matrix {
  public:
    std::size_t rows() const { return rows_; }
    std::size_t dim() const { return dim_; }
    /// Shape (rows, dim), row-major. Views into the matrix, or the file that it maps.
    kernels::distance::Values values() const;
    /// What messages call a row: «m.txt: line 5», «m.npy: row 4 (counted from 0)», «words.txt: line
    /// 5 ("king")».
    std::string row_name(std::size_t row) const;
    /// The words of a model's rows, in order; empty for other matrices.
    const std::vector<std::string>& words() const { return words_; }
    /// That a file which is mapped is as long as it was: what is cut off would have read as zeros.
    /// The error is damaged.
    Status verify_size() const;

  private:
    friend class TextReader;
    friend Result<Matrix> read_matrix(const std::string&, const ReadOptions&,
                                      const std::atomic<bool>&);
    friend Result<Matrix> read_words(const std::string&, const format::Model&,
                                     const std::atomic<bool>&, const std::string&);

    /// Where a run of rows on lines without a gap begins.
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
    std::vector<LineOfRow> lines_;                                  // none: rows have no lines
    std::vector<std::string> words_;
};

/// Reads the file `path`, or stdin for «-», packed by gzip or in a zip archive or not; what it is,
/// its content says. Memory takes 8 bytes a number, but for an array in a plain file, which is
/// mapped.
///
/// Text: a row a line, numbers separated by blanks (0x20) and TABs, as many in each; lines of
/// nothing else are passed over, a CR before the LF belongs to nothing, nor does a byte order mark
/// at the beginning. Numbers become the nearest float64. NumPy's file (.npy): shape (rows,
/// columns), float32 or float64, little-endian, in C order, nothing behind it. At least one row and
/// one column. Errors name the file, the line or byte, and the remedy: io, interrupted; bad_source,
/// damaged or unsupported for other content.
Result<Matrix> read_matrix(const std::string& path, const ReadOptions& options,
                           const std::atomic<bool>& stop);

/// The rows of a model whose words stand one a line in the file `path`, or on stdin for «-»;
/// `member` is as in ReadOptions. Empty lines are passed over, a CR before the LF belongs to
/// nothing, and a word may stand there twice. Errors: as above; unknown_word with its line.
Result<Matrix> read_words(const std::string& path, const format::Model& model,
                          const std::atomic<bool>& stop, const std::string& member = {});

}  // namespace gloved::distmat
