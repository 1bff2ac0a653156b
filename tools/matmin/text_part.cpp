#include "tools/matmin/text_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/ascii.hpp"
#include "common/number.hpp"
#include "common/quoting.hpp"

namespace gloved::matmin {
namespace {

const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

/// Returns what follows the LF if the line ends at `p`; else nullptr.
const char* skip_line_end(const char* p) {
    p += static_cast<int>(*p == '\r');
    return *p == '\n' ? p + 1 : nullptr;
}

/// Parses a row of `columns` numbers from `p`, which is not a blank. Returns what follows its LF;
/// nullptr for any other line. `end` is the end of the text.
template <class T>
const char* parse_row(const char* p, const char* end, std::size_t columns, T* out) {
    for (std::size_t column = 0;;) {
        const Number<T> number = parse_number<T>(p, end);
        if (number.fault != NumberFault::none) return nullptr;
        out[column] = number.value;
        p = number.end;
        if (++column == columns) return skip_line_end(skip_blanks(p));
        if (!is_blank(*p)) return nullptr;
        p = skip_blanks(p + 1);
    }
}

/// Describes why a word is not a T; empty if it is one.
template <class T>
std::string word_fault(std::string_view word) {
    const char* const end = word.data() + word.size();
    const Number<T> number = parse_number<T>(word.data(), end);
    if (number.end == end && number.fault == NumberFault::none) return {};
    const Number<double> wide = parse_number<double>(word.data(), end);
    const bool is_float64 = wide.end == end && wide.fault == NumberFault::none;
    if (number.end == end && number.fault == NumberFault::overflow) {
        return fmt::format(
            "{} is too large for {}{}", printable(word), kTypeName<T>,
            is_float64 ? "; give --type float64" : "; put a smaller one in its place");
    }
    if (is_float64)
        return fmt::format("{} is not of type {}; give --type float64", printable(word),
                           kTypeName<T>);
    const std::string lower =
        ascii_lower_case(word.starts_with('-') || word.starts_with('+') ? word.substr(1) : word);
    if (lower == "nan" || lower == "inf" || lower == "infinity") {
        return fmt::format("{} cannot be compared with numbers; put a number in its place",
                           printable(word));
    }
    if (word.find('*') != std::string_view::npos) {
        return fmt::format("{} is not a number; matrices are separated by a line of *** alone",
                           printable(word));
    }
    if (word.find(',') != std::string_view::npos) {
        return fmt::format(
            "{} is not a number; numbers are separated by blanks and have a decimal point: replace "
            "the comma",
            printable(word));
    }
    return fmt::format("{} is not a number; put one in its place", printable(word));
}

/// Describes what is wrong with a line that parse_row refuses: the first wrong word, else the
/// number of words.
template <class T>
std::string row_fault(std::string_view line, std::size_t columns) {
    std::size_t words = 0;
    for (std::size_t at = 0; at < line.size(); ++words) {
        const std::size_t word_end = std::min(line.find_first_of(" \t", at), line.size());
        if (std::string fault = word_fault<T>(line.substr(at, word_end - at)); !fault.empty())
            return fault;
        at = std::min(line.find_first_not_of(" \t", word_end), line.size());
    }
    assert(words != columns);
    return fmt::format(
        "{} number{} in this line, {} in the first line of the first matrix; all have as many",
        words, words == 1 ? "" : "s", columns);
}

}  // namespace

std::string_view trim(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
    return line;
}

std::size_t count_words(std::string_view trimmed) {
    std::size_t words = 0;
    bool within = false;
    for (const char c : trimmed) {
        words += static_cast<std::size_t>(!within && !is_blank(c));
        within = !is_blank(c);
    }
    return words;
}

std::uint64_t line_of_matrix(std::string_view text, std::uint64_t index) {
    std::uint64_t separators = 0;
    for (std::uint64_t line = 0;; ++line) {
        const std::size_t end = text.find('\n');
        assert(end != std::string_view::npos);
        const std::string_view trimmed = trim(text.substr(0, end));
        if (is_separator(trimmed)) {
            ++separators;
        } else if (separators == index && !trimmed.empty()) {
            return line;
        }
        text.remove_prefix(end + 1);
    }
}

template <class T>
std::optional<TextFault> parse_part(std::string_view text, Shape shape, Intake<T>& intake,
                                    std::uint64_t& lines) {
    assert(text.empty() || text.ends_with('\n'));
    const char* p = text.data();
    const char* const end = p + text.size();
    std::uint64_t line = 0;
    std::size_t row = 0;  // of the matrix at hand
    const auto fault = [&](std::string message) { return TextFault{line, std::move(message)}; };
    const auto line_from = [&](const char* at) {
        const auto begin = static_cast<std::size_t>(at - text.data());
        return text.substr(begin, text.find('\n', begin) - begin);
    };
    for (; p != end; ++line) {
        const char* const first = skip_blanks(p);
        if (const char* const next = skip_line_end(first)) {  // a blank line
            p = next;
            continue;
        }
        if (*first == '*') {
            const std::string_view stars = line_from(first);
            if (is_separator(trim(stars))) {
                if (row == 0)
                    return fault(
                        "nothing stands between this line of *** and the one before; remove one of "
                        "them");
                if (row != shape.rows) {
                    return fault(
                        fmt::format("the matrix ends after {} row{}, the first one has {}; "
                                    "complete it, or remove it and correct the count",
                                    row, row == 1 ? "" : "s", shape.rows));
                }
                row = 0;
                intake.end_matrices(1);
                p = first + stars.size() + 1;
                continue;
            }
        }
        if (row == shape.rows) {
            return fault(
                fmt::format("row {} of a matrix, the first one has {}; a line of *** is missing "
                            "before it, or the row is too much",
                            row + 1, shape.rows));
        }
        const char* const next = parse_row(first, end, shape.columns, intake.next(shape.columns));
        if (next == nullptr) return fault(row_fault<T>(trim(line_from(first)), shape.columns));
        p = next;
        ++row;
    }
    if (row != 0) {
        if (row != shape.rows) {
            --line;
            return fault(
                fmt::format("the text ends within a matrix: {} of {} rows are there; complete it, "
                            "or remove it and correct the count",
                            row, shape.rows));
        }
        intake.end_matrices(1);
    }
    intake.end();
    lines = line;
    return std::nullopt;
}

template std::optional<TextFault> parse_part(std::string_view, Shape, Intake<float>&,
                                             std::uint64_t&);
template std::optional<TextFault> parse_part(std::string_view, Shape, Intake<double>&,
                                             std::uint64_t&);
template std::optional<TextFault> parse_part(std::string_view, Shape, Intake<std::int32_t>&,
                                             std::uint64_t&);

}  // namespace gloved::matmin
