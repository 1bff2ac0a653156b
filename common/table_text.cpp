#include "common/table_text.hpp"

#include <algorithm>

#include "common/ascii.hpp"

namespace gloved {

void append_cell(std::string& out, std::string_view text, RowStyle style) {
    const auto is_special = [&](char c) {
        return c == style.separator || c == '"' || c == '\r' || c == '\n';
    };
    const bool is_plain = !style.is_table || text.empty() ||
                          (!is_blank(text.front()) && !is_blank(text.back()) &&
                           std::ranges::none_of(text, is_special));
    if (is_plain) {
        out += text;
        return;
    }
    out += '"';
    for (const char c : text) out.append(c == '"' ? 2 : 1, c);
    out += '"';
}

void append_row(std::string& out, std::initializer_list<std::string_view> cells, RowStyle style) {
    for (const std::string_view cell : cells) {
        append_cell(out, cell, style);
        out += style.separator;
    }
    out.back() = '\n';
}

}  // namespace gloved
