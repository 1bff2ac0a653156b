// Makes a table of the reply to a request: headings, and the words of the request as labels.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/table_text.hpp"
#include "common/wire/line_splitter.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {

/// Takes the lines of a text reply as they arrive, and appends the rows of a table (table_text).
/// The headings are the names that the members have in JSON. Every row has as many cells as there
/// are headings. Words of MATRIX and VEC that the model does not have get rows, and columns, of
/// empty cells.
class ReplyTable {
  public:
    /// `line` is the request. Errors: bad_request if it is no request, or its answer no table.
    static Result<ReplyTable> create(std::string_view line, RowStyle style);

    /// What to ask first, if lines of the reply may be missing: HAS for the same words. Otherwise
    /// empty.
    const std::string& first_request() const { return first_request_; }
    /// Takes lines, or parts of lines, of the reply to `first_request`.
    void take_first(std::string_view bytes);

    /// Takes lines, or parts of lines, of the reply.
    void take(std::string_view bytes, std::string& out);
    /// Takes the end of the reply. An empty one has headings all the same.
    void finish(std::string& out);

  private:
    explicit ReplyTable(RowStyle style) : style_(style) {}
    void describe(const wire::Request& request);
    void add_label(std::initializer_list<std::string_view> cells);
    void add_line(std::string_view line, std::string& out);
    void add_missing_rows(std::string& out);
    void add_row(std::optional<std::string_view> line, std::string& out);

    RowStyle style_;
    wire::Verb verb_ = wire::Verb::near;
    std::string first_request_;
    std::vector<std::string> headings_;
    std::size_t label_cells_ = 0;
    std::vector<std::string> labels_;  ///< text of each row's first cells; of no row if empty
    std::vector<bool> known_;          ///< whether the reply has a line for a label
    bool is_numbers_ = false;          ///< lines are numbers, one for each column without a label
    bool is_begun_ = false;            ///< the headings are written
    std::size_t row_ = 0;              ///< the next one
    wire::LineSplitter lines_{std::numeric_limits<std::size_t>::max()};  ///< a reply's are long
};

}  // namespace gloved::client
