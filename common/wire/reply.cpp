#include "common/wire/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <system_error>

#include "common/base64.hpp"
#include "common/quoting.hpp"
#include "common/wire/json_string.hpp"

namespace gloved::wire {
namespace {

/// Removes and returns the text before the next space, and removes the space.
std::string_view take_word(std::string_view& rest) {
    const std::size_t length = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    return word;
}

/// Whether a byte would end the field or its line early.
bool tears_line(std::string_view field) {
    return std::any_of(field.begin(), field.end(),
                       [](char c) { return c == '\n' || c == '\t' || c == '\r' || c == '\0'; });
}

/// The fewest digits that read back to the same number. JSON has no NaN and no infinity.
template <class Float>
void append_number(std::string& out, Float value) {
    if (std::isfinite(value)) {
        // −0 becomes 0.
        fmt::format_to(std::back_inserter(out), "{}", value + Float{0});
    } else {
        out += "null";
    }
}

/// Many times faster than fmt::format_to with an iterator.
void append_count(std::string& out, std::uint64_t count) {
    const fmt::format_int digits(count);
    out.append(digits.data(), digits.size());
}

/// A word in quotes as in a request. Spaces separate fields, so one within it is escaped.
void append_status_word(std::string& out, std::string_view word) {
    for (const char c : quote_word(word)) {
        if (c == ' ') {
            out += "\\x20";
        } else {
            out += c;
        }
    }
}

void append_words(std::string& out, Form form, const WordsField& field) {
    const bool json = form == Form::json;
    if (json) out += '[';
    for (const std::string& word : field.words) {
        if (&word != &field.words.front()) out += ',';
        if (json) {
            append_json_string(out, word);
        } else {
            append_status_word(out, word);
        }
    }
    if (json) out += ']';
}

void append_pairs(std::string& out, Form form, const PairsField& field) {
    const bool json = form == Form::json;
    if (json) out += '[';
    for (const auto& pair : field.pairs) {
        if (&pair != &field.pairs.front()) out += ',';
        if (json) {
            fmt::format_to(std::back_inserter(out), "{{\"{}\":", field.first_name);
            append_json_string(out, pair.first);
            fmt::format_to(std::back_inserter(out), ",\"{}\":", field.second_name);
            append_json_string(out, pair.second);
            out += '}';
        } else {
            append_status_word(out, pair.first);
            out += ':';
            append_status_word(out, pair.second);
        }
    }
    if (json) out += ']';
}

void append_value(std::string& out, Form form, const decltype(StatusField::value)& value) {
    if (const auto* words = std::get_if<WordsField>(&value)) return append_words(out, form, *words);
    if (const auto* pairs = std::get_if<PairsField>(&value)) return append_pairs(out, form, *pairs);
    if (const auto* count = std::get_if<std::uint64_t>(&value)) {
        append_count(out, *count);
    } else if (const auto* number = std::get_if<double>(&value)) {
        if (form == Form::json) {
            append_number(out, *number);
        } else {
            fmt::format_to(std::back_inserter(out), "{:.17g}", *number);
        }
    } else if (form == Form::json) {
        append_json_string(out, std::get<std::string>(value));
    } else {
        const auto& text = std::get<std::string>(value);
        assert(text.find(' ') == std::string::npos);
        out += without_control_bytes(text);
    }
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
        case ErrorCode::unknown_list:
            return "unknown_list";
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
        case ErrorCode::idle:
            return "idle";
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

void append_head(std::string& out, Form form, Verb verb, std::size_t lines,
                 const std::vector<StatusField>& fields) {
    if (form == Form::text) {
        out += "OK ";
        append_count(out, lines);
    } else {
        fmt::format_to(std::back_inserter(out), "{{\"ok\":true,\"verb\":\"{}\"", verb_name(verb));
    }
    for (const auto& [key, value] : fields) {
        if (form == Form::text) {
            out += ' ';
            out += key;
            out += '=';
        } else {
            fmt::format_to(std::back_inserter(out), ",\"{}\":", key);
        }
        append_value(out, form, value);
    }
    out += form == Form::text ? "\n" : ",\"results\":[";
}

void append_tail(std::string& out, Form form) {
    if (form == Form::json) out += "]}\n";
}

std::string empty_reply(Form form, Verb verb, const std::vector<StatusField>& fields) {
    std::string reply;
    append_head(reply, form, verb, 0, fields);
    append_tail(reply, form);
    return reply;
}

std::string lines_reply(Form form, Verb verb, std::string_view text) {
    std::string reply;
    append_head(reply, form, verb,
                static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
    LineWriter line(reply, form, true);
    while (!text.empty()) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        line.begin();
        line.text("line", text.substr(0, length));
        line.end();
        text.remove_prefix(std::min(length + 1, text.size()));
    }
    append_tail(reply, form);
    return reply;
}

bool error_has_word(Form form, const Error& error) {
    return form == Form::json && error.code == ErrorCode::unknown_word;
}

void append_error_head(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions) {
    std::string message = without_control_bytes(error.message);
    for (std::size_t i = 0; i < suggestions.size(); ++i) {
        message += (i == 0 ? "; near to it: " : ", ") + quote_word(suggestions[i]);
    }
    if (form == Form::text) {
        fmt::format_to(std::back_inserter(out), "ERR {} {}\n", code_name(error.code), message);
        return;
    }
    fmt::format_to(std::back_inserter(out),
                   "{{\"ok\":false,\"code\":\"{}\",\"message\":", code_name(error.code));
    append_json_string(out, message);
    out += error_has_word(form, error) ? ",\"word\":" : "}\n";
}

void append_error_tail(std::string& out, Form form, const Error& error,
                       const std::vector<std::string>& suggestions) {
    if (!error_has_word(form, error)) return;
    out += ",\"suggestions\":[";
    for (const std::string& suggestion : suggestions) {
        if (out.back() != '[') out += ',';
        append_json_string(out, suggestion);
    }
    out += "]}\n";
}

std::string error_reply(Form form, const Error& error,
                        const std::vector<std::string>& suggestions) {
    std::string reply;
    append_error_head(reply, form, error, suggestions);
    if (error_has_word(form, error)) append_json_string(reply, error.subject);
    append_error_tail(reply, form, error, suggestions);
    return reply;
}

void append_score(std::string& out, double score) {
    // Scores lie within -1 and 1, mostly: their decimals are an integer of seven digits. Where the
    // seventh decimal may decide how to round, and for larger numbers, the exact way.
    constexpr double kUnit = 1e6;
    constexpr double kDoubt = 1e-6;
    const double scaled = std::abs(score) * kUnit;
    const double whole = std::floor(scaled);
    if (!(scaled < 9 * kUnit) || std::abs(scaled - whole - 0.5) < kDoubt) {
        const std::size_t begin = out.size();
        fmt::format_to(std::back_inserter(out), "{:.6f}", score);
        if (std::string_view(out).substr(begin) == "-0.000000") out.erase(begin, 1);
        return;
    }
    auto digits = static_cast<std::uint32_t>(whole) + (scaled - whole > 0.5 ? 1U : 0U);
    std::array<char, 9> text;  // -d.dddddd
    for (std::size_t place = 8; place > 2; --place, digits /= 10)
        text[place] = static_cast<char>('0' + digits % 10);
    text[2] = '.';
    text[1] = static_cast<char>('0' + digits % 10);
    const bool is_negative = score < 0 && (scaled - whole > 0.5 || whole > 0);
    text[0] = '-';
    out.append(text.data() + (is_negative ? 0 : 1), is_negative ? 9 : 8);
}

std::string quote_word(std::string_view word) {
    return printable(word, std::numeric_limits<std::size_t>::max());
}

std::string echoed_word(Form form, std::string_view word) {
    if (form == Form::text && (tears_line(word) || word.starts_with('"'))) return quote_word(word);
    return std::string(word);
}

void LineWriter::begin() {
    first_column_ = true;
    if (form_ == Form::json) *out_ += first_line_ ? "{" : ",{";
    first_line_ = false;
}

void LineWriter::end() { *out_ += form_ == Form::json ? '}' : '\n'; }

void LineWriter::begin_column(std::string_view name) {
    if (!first_column_) *out_ += form_ == Form::json ? ',' : '\t';
    first_column_ = false;
    if (form_ == Form::json) fmt::format_to(std::back_inserter(*out_), "\"{}\":", name);
}

void LineWriter::text(std::string_view name, std::string_view text) {
    begin_column(name);
    if (form_ == Form::json) {
        append_json_string(*out_, text);
    } else if (tears_line(text)) {
        *out_ += without_control_bytes(text);
    } else {
        *out_ += text;
    }
}

void LineWriter::message(std::string_view name, std::string_view message) {
    text(name, without_control_bytes(message));
}

std::size_t LineWriter::text_part(std::string_view name, std::string_view text, std::size_t from,
                                  std::size_t enough_bytes) {
    if (from == 0) begin_column(name);
    if (from == 0 && form_ == Form::json) *out_ += '"';
    // At least one character, so that every call makes progress.
    enough_bytes = std::max(enough_bytes, out_->size() + 1);
    if (form_ == Form::text) {
        // Keys have no such byte. If one has, it is escaped as in a message.
        if (from == 0 && tears_line(text)) {
            *out_ += without_control_bytes(text);
            return text.size();
        }
        const std::string_view part = text.substr(from, enough_bytes - out_->size());
        *out_ += part;
        return from + part.size();
    }
    const std::size_t end = append_json_part(*out_, text, from, enough_bytes);
    if (end == text.size()) *out_ += '"';
    return end;
}

void LineWriter::score(std::string_view name, double value) {
    begin_column(name);
    put_score(value);
}

void LineWriter::count(std::string_view name, std::uint64_t value) {
    begin_column(name);
    fmt::format_to(std::back_inserter(*out_), "{}", value);
}

void LineWriter::flag(std::string_view name, bool value) {
    begin_column(name);
    *out_ += form_ == Form::json ? (value ? "true" : "false") : (value ? "1" : "0");
}

void LineWriter::begin_list(std::string_view name) {
    begin_column(name);
    first_in_list_ = true;
    if (form_ == Form::json) *out_ += '[';
}

void LineWriter::list_score(double value) {
    begin_element();
    put_score(value);
}

void LineWriter::list_float(float value) {
    begin_element();
    // Not append_number: −0 reads back as −0 here.
    *out_ += form_ == Form::json && !std::isfinite(value) ? "null" : fmt::to_string(value);
}

void LineWriter::end_list() {
    if (form_ == Form::json) *out_ += ']';
}

void LineWriter::begin_base64(std::string_view name) {
    begin_column(name);
    if (form_ == Form::json) *out_ += '"';
}

void LineWriter::base64(std::span<const std::byte> bytes) { append_base64(*out_, bytes); }

void LineWriter::end_base64() {
    if (form_ == Form::json) *out_ += '"';
}

void LineWriter::put_score(double value) {
    if (form_ == Form::json) {
        append_number(*out_, value);
    } else {
        append_score(*out_, value);
    }
}

void LineWriter::begin_element() {
    if (!first_in_list_) *out_ += form_ == Form::json ? ',' : '\t';
    first_in_list_ = false;
}

std::string_view StatusLine::field(std::string_view key) const {
    for (const auto& [name, value] : fields) {
        if (name == key) return value;
    }
    return {};
}

Result<StatusLine> parse_status_line(std::string_view line) {
    const auto fault = [&] {
        return Error{ErrorCode::bad_request,
                     fmt::format("{} is not a status line; is this the socket of a gloved daemon?",
                                 printable(line))};
    };
    StatusLine status;
    std::string_view rest = line;
    const std::string_view kind = take_word(rest);
    if (kind == "ERR") {
        status.code = take_word(rest);
        status.message = rest;
        if (status.code.empty()) return fault();
        return status;
    }
    if (kind != "OK") return fault();
    status.ok = true;
    const std::string_view count = take_word(rest);
    const auto [end, error] =
        std::from_chars(count.data(), count.data() + count.size(), status.lines);
    if (error != std::errc() || end != count.data() + count.size()) return fault();
    while (!rest.empty()) {
        const std::string_view field = take_word(rest);
        const std::size_t equals = field.find('=');
        if (equals == std::string_view::npos || equals == 0) return fault();
        status.fields.emplace_back(field.substr(0, equals), field.substr(equals + 1));
    }
    return status;
}

}  // namespace gloved::wire
