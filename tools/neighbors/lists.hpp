// Writes lists of neighbours in the formats that other programs read.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/output_file.hpp"
#include "common/result.hpp"
#include "common/table_text.hpp"
#include "kernels/engine.hpp"

namespace gloved::neighbors {

/// How lists are written. Where a list is shorter than k, npy and ivecs have −1 behind its end.
enum class ListFormat {
    tsv,    ///< a line per neighbour: name of the query, word, score; TABs between
    csv,    ///< the same as a table (table_text); a query without neighbours has a line too
    edges,  ///< the same with numbers: the query's, from 0, and the neighbour's row
    npy,    ///< a NumPy array of row numbers, int32, shape (queries, k)
    ivecs,  ///< for each query an int32 k, then k row numbers, int32; little-endian
};

/// The format that a file's name suggests: csv, npy or ivecs by its end, otherwise tsv.
ListFormat list_format_of(std::string_view path);

/// How the rows of a text are written.
inline RowStyle style_of(ListFormat format) { return format == ListFormat::csv ? kCsv : kTabLines; }

/// Whether a format is lines of text, with scores.
inline bool is_text(ListFormat format) {
    return format != ListFormat::npy && format != ListFormat::ivecs;
}

/// Where lists go, and how.
struct ListOutput {
    std::string path;  ///< «-»: stdout
    ListFormat format = ListFormat::tsv;
};

/// Makes the text of lists. Immutable: any number of threads may use it.
class ListText {
  public:
    /// At most `k` neighbours of a query are written.
    ListText(const format::Model& model, ListFormat format, std::size_t k)
        : model_(model), format_(format), k_(k) {}

    /// What stands before `lists` lists.
    std::string head(std::size_t lists) const;
    /// Appends the list of query `number`, from 0, called `name`.
    void append(std::string& out, std::size_t number, std::string_view name,
                std::span<const kernels::Hit> hits) const;

  private:
    const format::Model& model_;
    ListFormat format_;
    std::size_t k_;
};

/// Writes the first `k` neighbours of every word, with their canonical scores where the format has
/// scores. `threads` make the text. Errors: io, conflict, interrupted; damaged, for a list that
/// names a row that the model does not have.
Status write_lists(const format::Model& model, const format::Neighbors& neighbors, std::size_t k,
                   const ListOutput& output, std::size_t threads, const std::atomic<bool>& stop);

}  // namespace gloved::neighbors
