#include "tools/distmat/text_rows.hpp"

#include <fmt/format.h>

#include <cstring>

#include "common/ascii.hpp"
#include "common/number.hpp"
#include "common/quoting.hpp"

namespace gloved::distmat {
namespace {

constexpr std::size_t kShownBytes = 40;

/// Describes why [first, last) does not begin with a number.
std::string what_is_wrong(const char* first, const char* last, NumberFault fault) {
    const char* end = first;
    while (end != last && !is_blank(*end)) ++end;
    const std::string shown =
        printable({first, static_cast<std::size_t>(end - first)}, kShownBytes);
    if (fault == NumberFault::overflow)
        return fmt::format("{} is beyond float64; scale the numbers", shown);
    std::string_view remedy = "take out what is not a number, or name the --model of words";
    const std::string_view token(first, static_cast<std::size_t>(end - first));
    if (token.find(',') != std::string_view::npos || token.find(';') != std::string_view::npos) {
        remedy = "numbers are separated by blanks or tabs: tr ',;' '  '";
    } else if (token.find_first_not_of("+-naifNAIFty") == std::string_view::npos) {
        remedy = "distances need numbers that are finite: leave such rows out, or fill them in";
    }
    return fmt::format("{} is not a number; {}", shown, remedy);
}

}  // namespace

void parse_text_rows(std::string_view text, TextRows& rows) {
    rows.values.clear();
    rows.rows = 0;
    rows.dim = 0;
    rows.lines = 0;
    rows.line_of_row.clear();
    rows.fault.reset();
    const char* at = text.data();
    const char* const end = at + text.size();
    for (; at != end; ++rows.lines) {
        const auto* const newline =
            static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
        const char* last = newline == nullptr ? end : newline;
        const char* const next = newline == nullptr ? end : newline + 1;
        if (last != at && last[-1] == '\r') --last;
        std::size_t count = 0;
        for (;;) {
            while (at != last && is_blank(*at)) ++at;
            if (at == last) break;
            const auto number = parse_number<double>(at, last);
            if (number.fault != NumberFault::none ||
                (number.end != last && !is_blank(*number.end))) {
                rows.fault = {rows.lines, 0, what_is_wrong(at, last, number.fault)};
                rows.values.resize(rows.rows * rows.dim);
                return;
            }
            rows.values.push_back(number.value);
            at = number.end;
            ++count;
        }
        at = next;
        if (count == 0) continue;
        if (rows.rows == 0) {
            rows.dim = count;
        } else if (count != rows.dim) {
            rows.fault = {rows.lines, count, {}};
            rows.values.resize(rows.rows * rows.dim);
            return;
        }
        if (rows.rows == 0 ||
            rows.line_of_row.back().second + (rows.rows - rows.line_of_row.back().first) !=
                rows.lines) {
            rows.line_of_row.emplace_back(rows.rows, rows.lines);
        }
        ++rows.rows;
    }
}

}  // namespace gloved::distmat
