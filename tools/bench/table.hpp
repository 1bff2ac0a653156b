// Results as text for people or as CSV for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::bench {

enum class TableFormat { text, csv };

/// Rows of cells under headings. In text the first column is left-aligned, the others
/// right-aligned, and characters beyond ASCII count as one column each. CSV is that of RFC 4180,
/// but for its line ends.
class Table {
  public:
    explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
    /// As many cells as headings; an empty cell stays empty.
    void add(std::vector<std::string> cells);
    /// Whole lines.
    std::string to_string(TableFormat format) const;
    void print(std::FILE* to, TableFormat format) const;

    /// The headings first.
    const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  private:
    std::vector<std::vector<std::string>> rows_;
};

/// «2,196,016»
std::string grouped(std::uint64_t number);

/// A figure with four digits that count, or three decimals where it is small: «261.4», «0.863».
std::string figure(double value);

/// Prints a line of prose about a table, as a comment where programs read.
void print_note(TableFormat format, std::string_view text);

}  // namespace gloved::bench
