// Table: formats the results of gloved-bench as text or as CSV.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gloved::bench {

/// How to print a table: in columns for people, or as CSV for programs.
enum class TableFormat { text, csv };

/// Rows of cells under headings. In text the first column is left-aligned, the others
/// right-aligned, and each character beyond ASCII counts as one column. CSV is as in RFC 4180, but
/// with LF.
class Table {
  public:
    explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
    /// Adds a row with as many cells as headings.
    void add(std::vector<std::string> cells);
    /// Formats the table, with a final line end.
    std::string to_string(TableFormat format) const;
    /// Writes to_string to `to`.
    void print(std::FILE* to, TableFormat format) const;

    /// The rows, headings first.
    const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  private:
    std::vector<std::vector<std::string>> rows_;
};

/// A number with thousands separators, as «2,196,016».
std::string grouped(std::uint64_t number);

/// A number with four significant digits, or three decimals if it is small: «261.4», «0.863».
std::string figure(double value);

/// Prints a note beside a table on stdout; with TableFormat::csv as a line that begins with #.
void print_note(TableFormat format, std::string_view text);

}  // namespace gloved::bench
