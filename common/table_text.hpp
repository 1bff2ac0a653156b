// Rows as text: tables that R, pandas and spreadsheets read by their defaults, with a line of
// headings and then one for each row; or lines for cut, grep and awk.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace gloved {

/// How rows are written.
struct RowStyle {
    char separator;  ///< between cells
    bool is_table;   ///< with headings, and quotes around cells that need them
};
inline constexpr RowStyle kCsv = {',', true};
inline constexpr RowStyle kTsv = {'\t', true};
/// Cells stand as they are.
inline constexpr RowStyle kTabLines = {'\t', false};
inline constexpr RowStyle kBlankLines = {' ', false};

/// Appends the text of one cell, in a table quoted by RFC 4180 if it must be: in double quotes,
/// with each quote inside doubled. That is a cell with the separator, a quote, CR or LF, or with a
/// blank at its beginning or end, since pandas skips a line of blanks.
void append_cell(std::string& out, std::string_view text, RowStyle style);

/// Appends a whole row. It ends with LF, not with the CR LF of RFC 4180: all readers take both, and
/// with CR the last cell would end in one for grep, cut and awk.
void append_row(std::string& out, std::initializer_list<std::string_view> cells, RowStyle style);

}  // namespace gloved
