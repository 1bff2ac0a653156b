// Reads the query vectors of gloved-neighbors --queries: words of the model, or vectors from a
// file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "tools/distmat/matrix.hpp"

namespace gloved::neighbors {

/// What a file of queries holds.
enum class QueryFormat {
    words,    ///< words of the model, one per line
    glove,    ///< GloVe text: a line per query, its name and then the numbers
    numbers,  ///< text: a line of numbers per query; or a NumPy array of float32 or float64
    fvecs,    ///< records: an int32 dim, then dim float32, little-endian
};

/// The format that a file's name suggests: numbers for .npy, fvecs for .fvecs, otherwise words.
QueryFormat query_format_of(const std::string& path);

/// Queries with a name each, in the order of their file. Immutable once read.
class Queries {
  public:
    /// Reads the file `path`, or stdin for «-». It may be packed (source::Input). float64 is
    /// rounded to the nearest float32. `threads` parse text. Errors: io; interrupted; bad_source,
    /// damaged or unsupported, for content that is not as described or of another dim;
    /// unknown_word. Messages name the file, and the line or record. `rules` are for words.
    static Result<Queries> read(const std::string& path, QueryFormat format,
                                const distmat::WordRules& rules, const format::Model& model,
                                std::size_t threads, const std::atomic<bool>& stop);

    std::size_t size() const { return rows_.empty() ? values_.size() / dim_ : rows_.size(); }
    /// The word, the name in a GloVe text, or the query's number from 0.
    std::string name(std::size_t number) const;

    /// Makes the query for the k rows nearest to query `number`; nearest to a word, rows other than
    /// its own. Returns false if its vector is zero or the word was skipped. Error: bad_request,
    /// for a vector that is not finite; the message names the query.
    Result<bool> make(const format::Model& model, std::size_t number, std::size_t k,
                      kernels::Query& query) const;

  private:
    Queries(std::string path, std::size_t dim) : path_(std::move(path)), dim_(dim) {}
    Status read_fvecs(const std::atomic<bool>& stop);
    Status read_glove(std::size_t threads, const std::atomic<bool>& stop);
    Status read_matrix(std::size_t threads, const std::atomic<bool>& stop);
    Status read_words(const distmat::WordRules& rules, const format::Model& model,
                      const std::atomic<bool>& stop);

    std::string path_;
    std::size_t dim_;
    std::vector<float> values_;       // shape (size, dim); empty if the queries are words
    std::vector<format::Row> rows_;   // of the words, kNoRow if skipped; otherwise empty
    std::vector<std::string> names_;  // in the file; empty if it has none
};

}  // namespace gloved::neighbors
