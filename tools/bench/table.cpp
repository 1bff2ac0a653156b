#include "tools/bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace gloved::bench {

void Table::add(std::vector<std::string> cells) {
    assert(cells.size() == rows_.front().size());
    rows_.push_back(std::move(cells));
}

void Table::print(std::FILE* to, TableFormat format) const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            if (format == TableFormat::csv) {
                // No cell has a quote in it; only headings and names may have a comma.
                const bool quote = row[c].find(',') != std::string::npos;
                fmt::print(to, "{}{}{}{}", c == 0 ? "" : ",", quote ? "\"" : "", row[c], quote ? "\"" : "");
            } else if (c == 0) {
                fmt::print(to, "{:<{}}", row[c], widths[c]);
            } else {
                fmt::print(to, "  {:>{}}", row[c], widths[c]);
            }
        }
        fmt::print(to, "\n");
    }
}

std::string grouped(std::uint64_t number) {
    std::string text = fmt::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
    return text;
}

}  // namespace gloved::bench
