#include "common/wire/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "common/quoting.hpp"

namespace gloved::wire {
namespace {

/// Cuts the text before the next space off `rest`, and the space.
std::string_view take_word(std::string_view& rest) {
    const std::size_t length = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    return word;
}

}  // namespace

std::string_view code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::bad_request:
            return "bad_request";
        case ErrorCode::unknown_word:
            return "unknown_word";
        case ErrorCode::unknown_model:
            return "unknown_model";
        case ErrorCode::zero_vector:
            return "zero_vector";
        case ErrorCode::too_long:
            return "too_long";
        case ErrorCode::forbidden:
            return "forbidden";
        case ErrorCode::busy:
            return "busy";
        case ErrorCode::timeout:
            return "timeout";
        case ErrorCode::unavailable:
            return "unavailable";
        case ErrorCode::internal:
        case ErrorCode::io:
        case ErrorCode::damaged:
        case ErrorCode::mismatch:
        case ErrorCode::unsupported:
        case ErrorCode::bad_source:
        case ErrorCode::conflict:
        case ErrorCode::interrupted:
        case ErrorCode::device:
            break;
    }
    return "internal";
}

std::string ok_line(std::size_t lines, const std::vector<StatusField>& fields) {
    std::string line = fmt::format("OK {}", lines);
    for (const auto& [key, value] : fields) {
        line += ' ';
        line += key;
        line += '=';
        line += value;
    }
    line += '\n';
    return line;
}

std::string error_line(const Error& error) {
    std::string line = fmt::format("ERR {} {}", code_name(error.code), error.message);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    line += '\n';
    return line;
}

void append_score(std::string& out, double score) {
    const std::size_t begin = out.size();
    fmt::format_to(std::back_inserter(out), "{:.6f}", score);
    if (std::string_view(out).substr(begin) == "-0.000000") out.erase(begin, 1);
}

std::string quote_word(std::string_view word) { return printable(word, std::numeric_limits<std::size_t>::max()); }

std::string_view StatusLine::field(std::string_view key) const {
    for (const auto& [name, value] : fields) {
        if (name == key) return value;
    }
    return {};
}

Result<StatusLine> parse_status_line(std::string_view line) {
    const Error fault{ErrorCode::bad_request,
                      fmt::format("{} is not a status line: does a gloved answer there?", printable(line))};
    StatusLine status;
    std::string_view rest = line;
    const std::string_view kind = take_word(rest);
    if (kind == "ERR") {
        status.code = take_word(rest);
        status.message = rest;
        if (status.code.empty()) return fault;
        return status;
    }
    if (kind != "OK") return fault;
    status.ok = true;
    const std::string_view count = take_word(rest);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), status.lines);
    if (error != std::errc() || end != count.data() + count.size()) return fault;
    while (!rest.empty()) {
        const std::string_view field = take_word(rest);
        const std::size_t equals = field.find('=');
        if (equals == std::string_view::npos || equals == 0) return fault;
        status.fields.emplace_back(field.substr(0, equals), field.substr(equals + 1));
    }
    return status;
}

}  // namespace gloved::wire
