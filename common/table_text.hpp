// Tables as text that R, pandas and spreadsheets read by their defaults: a line of headings, then a
// line for each row.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace gloved {

/// What stands between the cells of a row.
inline constexpr char kCsvSeparator = ',';
inline constexpr char kTsvSeparator = '\t';

/// Appends the text of one cell, quoted by RFC 4180 if it must be: in double quotes, with each
/// quote inside doubled. That is a cell with the separator, a quote, CR or LF, or with a blank at
/// its beginning or end, since pandas skips a line of blanks.
void append_cell(std::string& out, std::string_view text, char separator);

/// Appends a whole row. It ends with LF, not with the CR LF of RFC 4180: all readers take both, and
/// with CR the last cell would end in one for grep, cut and awk.
void append_row(std::string& out, std::initializer_list<std::string_view> cells, char separator);

}  // namespace gloved
