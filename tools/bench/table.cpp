#include "tools/bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

#include "common/quoting.hpp"

namespace gloved::bench {
namespace {

/// Number of characters of UTF-8 text: all bytes but continuation bytes.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
    return quoted + '"';
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    assert(cells.size() == rows_.front().size());
    // Names of engines and files must not end a line.
    for (std::string& cell : cells) cell = without_control_bytes(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::to_string(TableFormat format) const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
    }
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            if (format == TableFormat::csv) {
                if (c > 0) line += ',';
                line += csv_cell(row[c]);
                continue;
            }
            const std::size_t padding = widths[c] - width(row[c]);
            if (c > 0) line.append(padding + 2, ' ');
            line += row[c];
            if (c == 0) line.append(padding, ' ');
        }
        if (format == TableFormat::text) line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}

void Table::print(std::FILE* to, TableFormat format) const {
    fmt::print(to, "{}", to_string(format));
}

std::string grouped(std::uint64_t number) {
    std::string text = fmt::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

std::string figure(double value) {
    const double size = std::abs(value);
    return fmt::format("{:.{}f}", value,
                       size >= 999.95   ? 0
                       : size >= 99.995 ? 1
                       : size >= 9.9995 ? 2
                                        : 3);
}

void print_note(TableFormat format, std::string_view text) {
    fmt::print("{}{}\n", format == TableFormat::csv ? "# " : "", without_control_bytes(text));
}

}  // namespace gloved::bench
