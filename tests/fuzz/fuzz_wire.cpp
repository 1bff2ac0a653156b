// Any bytes as what arrives on a socket: cut into lines however they arrive, parsed as requests and
// as status lines; and any bytes as a word, which survives being quoted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base64.hpp"
#include "common/expr/token.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "common/wire/json_string.hpp"
#include "common/wire/line_splitter.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "common/wire/request_line.hpp"
#include "tests/fuzz/check.hpp"

using namespace gloved;

namespace {

// Short, so that inputs of a fuzzer's size reach it.
constexpr std::size_t kMaxLine = 256;

/// What a splitter gives for `stream` when it arrives `piece` bytes at a time: the lines, then the
/// rest, then the verdict.
std::vector<std::string> split(std::string_view stream, std::size_t piece) {
    wire::LineSplitter splitter(kMaxLine);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
        splitter.append(stream.substr(at, piece));
        while (const auto line = splitter.next()) {
            GLOVED_CHECK(line->size() <= kMaxLine && line->find('\n') == std::string_view::npos);
            lines.emplace_back(*line);
        }
    }
    lines.push_back(splitter.take_rest().value_or("none"));
    lines.emplace_back(splitter.too_long() ? "too long" : "whole");
    return lines;
}

/// A group, asked for again as it comes back in a reply, is the same group.
void check_argument(const wire::Argument& argument, std::string_view line) {
    GLOVED_CHECK(!argument.text.empty() && argument.text.size() <= line.size());
    if (argument.terms.empty()) return;
    GLOVED_CHECK(argument.text.find('\t') == std::string::npos);
    // TABs in quoted words come back as spaces.
    if (line.find('\t') != std::string_view::npos) return;
    const auto again = wire::parse_request("SIM x " + argument.text);
    GLOVED_CHECK(again && again->arguments[1].text == argument.text &&
                 again->arguments[1].terms == argument.terms);
}

/// A request that is written with all its options is the same request.
void check_request_line(const wire::Request& request) {
    const std::string line =
        wire::request_line(request, wire::Unknown::skip, wire::WordCase::ignore);
    const auto again = wire::parse_request(line);
    GLOVED_CHECK(again && again->verb == request.verb && again->terms == request.terms &&
                 again->chosen == request.chosen && again->words == request.words &&
                 again->values == request.values);
    const wire::Options& a = request.options;
    const wire::Options& b = again->options;
    GLOVED_CHECK(a.k == b.k && a.min == b.min && a.top == b.top && a.prefix == b.prefix &&
                 a.within == b.within && a.without == b.without && a.fields == b.fields &&
                 a.certify == b.certify && a.norm == b.norm && a.method == b.method &&
                 a.exclude_inputs == b.exclude_inputs && a.only == b.only);
    GLOVED_CHECK(a.only == request.chosen.size());
    GLOVED_CHECK(wire::request_line(*again, wire::Unknown::error, wire::WordCase::exact) == line);
}

void check_request(std::string_view line) {
    const auto request = wire::parse_request(line);
    if (!request) {
        GLOVED_CHECK(request.error().code == ErrorCode::bad_request);
        const std::string reply = wire::error_reply(wire::Form::text, request.error());
        GLOVED_CHECK(std::count(reply.begin(), reply.end(), '\n') == 1);
        const auto status =
            wire::parse_status_line(std::string_view(reply).substr(0, reply.size() - 1));
        GLOVED_CHECK(status && !status->ok && status->code == "bad_request");
        return;
    }
    GLOVED_CHECK((request->verb == wire::Verb::near) == !request->terms.empty());
    GLOVED_CHECK(request->options.k > 0);
    for (const std::string& word : request->words) GLOVED_CHECK(!word.empty());
    GLOVED_CHECK(wire::takes_groups(request->verb) == !request->arguments.empty());
    for (const wire::Argument& argument : request->arguments) check_argument(argument, line);
    GLOVED_CHECK((request->verb == wire::Verb::nearvec) == !request->values.empty());
    for (const float value : request->values) GLOVED_CHECK(std::isfinite(value));
    if (request->verb == wire::Verb::near || request->verb == wire::Verb::nearvec ||
        request->verb == wire::Verb::analogy)
        check_request_line(*request);
}

void check_status_line(std::string_view line) {
    const auto status = wire::parse_status_line(line);
    if (!status || !status->ok) return;
    std::vector<wire::StatusField> fields;
    // What is written has no control bytes, whatever was read.
    std::vector<std::pair<std::string, std::string>> expected;
    for (const auto& [key, value] : status->fields) {
        fields.push_back({key, value});
        expected.emplace_back(key, without_control_bytes(value));
    }
    std::string written;
    wire::append_head(written, wire::Form::text, wire::Verb::near, status->lines, fields);
    const auto again =
        wire::parse_status_line(std::string_view(written).substr(0, written.size() - 1));
    GLOVED_CHECK(again && again->lines == status->lines && again->fields == expected);
}

/// Words in JSON: no line end inside, and the bytes come back. (That strict readers take it is for
/// the unit test.)
void check_json(std::string_view word) {
    std::string text;
    wire::append_json_string(text, word);
    GLOVED_CHECK(text.size() >= 2 && text.front() == '"' && text.back() == '"');
    std::string content;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
        GLOVED_CHECK(static_cast<unsigned char>(text[i]) >= 0x20 && text[i] != '"');
        if (text[i] != '\\') {
            content += text[i];
        } else if (text[i + 1] != 'u') {
            content += text[++i];
        } else if (text.compare(i + 2, 4, "dbff") == 0) {
            // A pair of surrogates that stands for U+10FF00 + byte, in UTF-8.
            GLOVED_CHECK(text.compare(i + 6, 4, "\\udf") == 0);
            const int byte = std::stoi(text.substr(i + 10, 2), nullptr, 16);
            content += {'\xF4', '\x8F', static_cast<char>(0xBC | byte >> 6),
                        static_cast<char>(0x80 | (byte & 0x3F))};
            i += 11;
        } else {
            const int character = std::stoi(text.substr(i + 2, 4), nullptr, 16);
            GLOVED_CHECK(character < 0xA0);  // control characters, of ASCII and of C1
            if (character >= 0x80) content += '\xC2';
            content += static_cast<char>(character);
            i += 5;
        }
    }
    GLOVED_CHECK(wire::bytes_of_json_string(content) == word);
}

void check_quoting(std::string_view word) {
    const std::string quoted = wire::quote_word(word);
    expr::Tokenizer tokens(quoted);
    const auto token = tokens.next();
    GLOVED_CHECK(token && token->has_value() && (*token)->quoted && (*token)->text == word);
    GLOVED_CHECK(!tokens.next()->has_value());
}

/// Any bytes come back from their base64, and any text that is taken is the only one of its bytes.
void check_base64(std::string_view bytes) {
    std::string text;
    append_base64(text, std::as_bytes(std::span(bytes)));
    const auto same = decode_base64(text);
    GLOVED_CHECK(same && std::ranges::equal(*same, std::as_bytes(std::span(bytes))));
    const auto decoded = decode_base64(bytes);
    if (!decoded) return;
    std::string again;
    append_base64(again, *decoded);
    GLOVED_CHECK(again == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    check_quoting(bytes);
    check_json(bytes);
    check_base64(bytes);
    if (bytes.empty()) return 0;
    const auto lines = split(bytes, bytes.size());
    GLOVED_CHECK(lines == split(bytes, 1));
    GLOVED_CHECK(lines == split(bytes, 1 + data[0]));
    for (const std::string& line : lines) {
        check_request(line);
        check_status_line(line);
    }
    check_request(bytes);
    return 0;
}
