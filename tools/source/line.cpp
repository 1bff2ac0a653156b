#include "tools/source/line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/ascii.hpp"
#include "common/number.hpp"
#include "common/quoting.hpp"

namespace gloved::source {
namespace {

/// Fast path: parses a line whose key holds no blank, as nearly all do. False for any other line,
/// valid or not.
bool parse_plain_line(std::string_view line, std::size_t dim, std::string_view& key,
                      float* values) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return false;
    key = line.substr(0, blank);
    const char* p = line.data() + blank;
    const char* const last = line.data() + line.size();
    for (std::size_t i = 0; i < dim; ++i) {
        if (p == last || *p != ' ') return false;
        const auto number = parse_number<float>(p + 1, last);
        if (number.fault != NumberFault::none) return false;
        values[i] = number.value;
        p = number.end;
    }
    return p == last;
}

std::string_view without_outer_blanks(std::string_view word) {
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    word.remove_suffix(word.size() - word.find_last_not_of(' ') - 1);
    return word;
}

/// Whether the whole of `text` is a number.
bool is_number(std::string_view text) {
    const auto number = parse_number<float>(text.data(), text.data() + text.size());
    return number.fault != NumberFault::malformed && number.end == text.data() + text.size();
}

bool is_inf_or_nan(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const std::string lower = ascii_lower_case(text.substr(0, 9));
    return lower == "inf" || lower == "infinity" || lower.starts_with("nan");
}

LineProblem bad_field(std::string_view token, std::size_t field, std::size_t fields,
                      std::string_view key) {
    if (key.empty()) {
        return {
            LineFault::padded,
            fmt::format("field {} of {} is {}, which is not a number, and the line begins with "
                        "a blank; remove blanks at the beginning of lines first (sed 's/^ *//')",
                        field, fields, printable(token))};
    }
    const auto problem = [&](LineFault fault, std::string_view what) {
        return LineProblem{fault, fmt::format("field {} of {} is {}, {} (the word is {})", field,
                                              fields, printable(token), what, printable(key))};
    };
    if (token.empty())
        return problem(LineFault::padded,
                       "where a number should be: two blanks in a row; if the columns are padded, "
                       "replace each run of blanks by one first (tr -s ' ')");
    if (is_inf_or_nan(token)) return problem(LineFault::not_finite, "which is not finite");
    if (is_number(token)) return problem(LineFault::overflow, "which is too large for float32");
    return problem(LineFault::bad_number, "which is not a number");
}

LineProblem too_few_fields(std::string_view line, std::size_t dim, std::size_t fields) {
    const bool tabs = fields == 1 && line.find('\t') != std::string_view::npos;
    const std::string_view first = line.substr(0, std::min(line.find(' '), line.size()));
    return {LineFault::too_few_fields,
            fmt::format(
                "{} field{} found, a word and {} number{} expected; the line starts with {}{}",
                fields, fields == 1 ? "" : "s", dim, dim == 1 ? "" : "s", printable(first, 40),
                tabs ? "; it is separated by TABs: replace them with blanks first (tr '\\t' ' ')"
                     : "")};
}

/// Whether a key has two numbers at its end, as the beginning of a line of more numbers has.
bool ends_in_two_numbers(std::string_view key) {
    return ends_in_number(key) && ends_in_number(key.substr(0, key.rfind(' ')));
}

/// The value of one unit in a printed number's last decimal: 0.01 for «6.53», 1 for «7», 0.1 for
/// «1.25e1».
double last_decimal_unit(std::string_view printed) {
    const std::size_t mantissa_end = std::min(printed.find_first_of("eE"), printed.size());
    const std::size_t point = printed.substr(0, mantissa_end).find('.');
    const double decimals =
        point == std::string_view::npos ? 0 : static_cast<double>(mantissa_end - point - 1);
    const std::string_view exponent = printed.substr(std::min(mantissa_end + 1, printed.size()));
    const float power =
        parse_number<float>(exponent.data(), exponent.data() + exponent.size()).value;
    return std::pow(10.0, static_cast<double>(power) - decimals);
}

}  // namespace

std::optional<LineProblem> check_key(std::string_view key) {
    if (key.empty()) return LineProblem{LineFault::bad_key, "the word before the numbers is empty"};
    if (key.size() > kMaxWordBytes) {
        return LineProblem{
            LineFault::bad_key,
            fmt::format("the word {} is longer than {} KiB; no request could name it",
                        printable(key, 40), kMaxWordBytes >> 10)};
    }
    const auto forbidden = [](char c) { return c == '\0' || c == '\t' || c == '\n' || c == '\r'; };
    const auto found = std::ranges::find_if(key, forbidden);
    if (found == key.end()) return std::nullopt;
    const char* what = *found == '\0'   ? "a NUL byte"
                       : *found == '\t' ? "a TAB"
                       : *found == '\n' ? "an LF"
                                        : "a CR";
    return LineProblem{LineFault::bad_key,
                       fmt::format("the word {} holds {}, which no key may", printable(key), what)};
}

bool ends_in_number(std::string_view key) {
    const std::size_t blank = key.rfind(' ');
    if (blank == std::string_view::npos) return false;
    const std::string_view tail = key.substr(blank + 1);
    return tail.find_first_of(".eE") != std::string_view::npos && is_number(tail);
}

std::string_view trim_line_end(std::string_view line) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    return line;
}

std::size_t count_fields(std::string_view line) {
    return line.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(line, ' '));
}

std::optional<LineProblem> parse_line(std::string_view line, std::size_t dim, std::string_view& key,
                                      float* values, bool dim_is_certain) {
    if (parse_plain_line(line, dim, key, values)) return check_key(key);

    if (line.empty()) return LineProblem{LineFault::blank, "the line is blank"};
    const std::size_t fields = count_fields(line);
    if (fields < dim + 1) return too_few_fields(line, dim, fields);
    std::size_t split = line.size();
    for (std::size_t i = 0; i < dim; ++i) split = line.rfind(' ', split - 1);
    key = without_outer_blanks(line.substr(0, split));

    std::size_t at = split + 1;
    for (std::size_t i = 0; i < dim; ++i) {
        const std::string_view token =
            line.substr(at, std::min(line.find(' ', at), line.size()) - at);
        const auto number = parse_number<float>(token.data(), token.data() + token.size());
        if (number.fault != NumberFault::none || number.end != token.data() + token.size())
            return bad_field(token, fields - dim + i + 1, fields, key);
        values[i] = number.value;
        at += token.size() + 1;
    }
    if (dim_is_certain ? ends_in_two_numbers(key) : ends_in_number(key)) {
        return LineProblem{
            LineFault::too_many_fields,
            fmt::format("{} fields found, a word and {} numbers expected: the number {} stands "
                        "before the last {}; if the lines have more numbers, the header or --dim "
                        "says too few; a word that ends in one number is kept if --dim {} is given "
                        "and most words end otherwise",
                        fields, dim, printable(key.substr(key.rfind(' ') + 1), 40), dim, dim)};
    }
    return check_key(key);
}

std::optional<LineProblem> parse_line_with_norm(std::string_view line, std::size_t dim,
                                                std::string_view& key, float* values,
                                                bool dim_is_certain) {
    if (auto problem = parse_line(line, dim + 1, key, values, dim_is_certain)) return problem;
    const double printed = values[0];
    // Moved in place: the rows of a batch are stored back to back.
    std::copy(values + 1, values + 1 + dim, values);
    double sum = 0;
    for (std::size_t i = 0; i < dim; ++i) sum += static_cast<double>(values[i]) * values[i];
    const double norm = std::sqrt(sum);
    const auto key_end = static_cast<std::size_t>(key.data() - line.data()) + key.size();
    const std::size_t first = line.find_first_not_of(' ', key_end);
    const std::string_view token = line.substr(first, line.find(' ', first) - first);
    const double tolerance =
        1e-4 * norm + std::min(last_decimal_unit(token), std::max(0.01 * norm, 1e-6));
    if (std::abs(printed - norm) <= tolerance) return std::nullopt;
    return LineProblem{
        LineFault::norm_mismatch,
        fmt::format("the norm is given as {}, but that of the {} numbers behind it is {:.6g} (the "
                    "word is {}); if the file holds no norms, --format glove takes it",
                    printable(token, 40), dim, norm, printable(key))};
}

}  // namespace gloved::source
