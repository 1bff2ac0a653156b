// Reads the matrix whose rows gloved-distmat compares: from text, from a NumPy file, or as vectors
// of words from a model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/distance/prepare.hpp"

namespace gloved::distmat {

/// How to read a matrix.
struct ReadOptions {
    /// Number of threads for parsing text, while the calling thread reads; 0: the calling thread
    /// does both.
    std::size_t threads = 0;
    /// Size of the pieces of text that a thread parses at a time.
    std::size_t chunk_bytes = std::size_t{4} << 20;
    /// Name of the file to read in an archive; empty: its only file.
    std::string member = {};
};

/// How the words of a file are found in a model.
struct WordRules {
    bool skips_unknown = false;  ///< a word that is not there is no error, but has no numbers
    bool ignores_case = false;   ///< CaseIndex::find_in_other_case, if a word is not there
};

/// A matrix, and where its rows come from, for messages. read_matrix and read_words make it.
class Matrix {
  public:
    std::size_t rows() const { return rows_; }
    std::size_t dim() const { return dim_; }
    /// The numbers, shape (rows, dim), row-major: a view into this object's memory or mapped file,
    /// valid as long as the Matrix is not moved or destroyed.
    kernels::distance::Values values() const;
    /// Names a row in messages: «m.txt: line 5», «m.npy: row 4 (counted from 0)», «words.txt: line
    /// 5 ("king")».
    std::string row_name(std::size_t row) const;
    /// The word of each row, if read_words made the matrix; otherwise empty.
    const std::vector<std::string>& words() const { return words_; }
    /// The model's row for each word; kNoRow for words that it does not have, whose numbers are
    /// those of another word. Empty if read_words did not make the matrix.
    const std::vector<format::Row>& model_rows() const { return model_rows_; }
    /// Checks that a mapped file has kept its size; if it was cut short, numbers may have been read
    /// as zeros. Call it after the numbers were used. Error: damaged.
    Status verify_size() const;

  private:
    friend class ArrayFile;
    friend class TextReader;
    friend Result<Matrix> read_matrix(const std::string&, const ReadOptions&,
                                      const std::atomic<bool>&);
    friend Result<Matrix> read_words(const std::string&, const format::Model&, const WordRules&,
                                     const std::atomic<bool>&, const std::string&);

    /// The first row, and its line, of a run of rows that stand on consecutive lines of the text.
    struct LineOfRow {
        std::size_t row = 0;
        std::uint64_t line = 0;
    };

    std::string name_;
    std::size_t rows_ = 0;
    std::size_t dim_ = 0;
    MappedFile mapped_;
    /// In memory, or in mapped_.
    std::variant<std::vector<float>, std::vector<double>, std::span<const float>,
                 std::span<const double>>
        numbers_;
    std::vector<LineOfRow> lines_;  // empty for .npy, whose rows are not lines
    std::vector<std::string> words_;
    std::vector<format::Row> model_rows_;
};

/// Reads the file `path`, or stdin for «-». It may be packed (source::Input); its content
/// determines the format. An array in a plain file is mapped. Otherwise the numbers are kept in
/// memory, as float64, or in the type of the array.
///
/// Text has one row per line, with numbers separated by blanks (0x20) and TABs, equally many in
/// each row. Blank lines, a CR before the LF and a byte order mark at the beginning are ignored.
/// Numbers become the nearest float64. A NumPy file (.npy) has shape (rows, columns), type float32
/// or float64, little-endian, in C order, and ends after the array. There must be at least one row
/// and one column. Errors: io; interrupted, once `stop` is true; bad_source, damaged or
/// unsupported, for content that is not as described. Messages name the file, the line or byte, and
/// the remedy.
Result<Matrix> read_matrix(const std::string& path, const ReadOptions& options,
                           const std::atomic<bool>& stop);

/// Reads words from the file `path`, or stdin for «-», one per line, and makes a matrix of their
/// vectors in `model`, in the order of the lines. `member` is as in ReadOptions. Reads lines as
/// TextLines does; ignores empty ones; a word may occur twice. Says on stderr if the first word
/// looks like a heading, and which words were skipped. Errors as read_matrix; those of TextLines;
/// unknown_word, with the line, also if all words were to be skipped.
Result<Matrix> read_words(const std::string& path, const format::Model& model,
                          const WordRules& rules, const std::atomic<bool>& stop,
                          const std::string& member = {});

}  // namespace gloved::distmat
