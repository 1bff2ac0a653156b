// Any bytes as what arrives on a socket: cut into lines however they arrive, parsed as requests and as status lines;
// and any bytes as a word, which survives being quoted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/expr/token.hpp"
#include "common/wire/line_splitter.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "tests/fuzz/check.hpp"

using namespace gloved;

namespace {

// Short, so that inputs of a fuzzer's size reach it.
constexpr std::size_t kMaxLine = 256;

/// What a splitter gives for `stream` when it arrives `piece` bytes at a time: the lines, then the rest, then the
/// verdict.
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

void check_request(std::string_view line) {
    const auto request = wire::parse_request(line);
    if (!request) {
        GLOVED_CHECK(request.error().code == ErrorCode::bad_request);
        const std::string reply = wire::error_line(request.error());
        GLOVED_CHECK(std::count(reply.begin(), reply.end(), '\n') == 1);
        const auto status = wire::parse_status_line(std::string_view(reply).substr(0, reply.size() - 1));
        GLOVED_CHECK(status && !status->ok && status->code == "bad_request");
        return;
    }
    GLOVED_CHECK((request->verb == wire::Verb::near) == !request->terms.empty());
    GLOVED_CHECK(request->options.k > 0);
    for (const std::string& word : request->words) GLOVED_CHECK(!word.empty());
    GLOVED_CHECK((request->verb == wire::Verb::nearvec) == !request->values.empty());
    for (const float value : request->values) GLOVED_CHECK(std::isfinite(value));
}

void check_status_line(std::string_view line) {
    const auto status = wire::parse_status_line(line);
    if (!status || !status->ok) return;
    const std::string written = wire::ok_line(status->lines, status->fields);
    const auto again = wire::parse_status_line(std::string_view(written).substr(0, written.size() - 1));
    GLOVED_CHECK(again && again->lines == status->lines && again->fields == status->fields);
}

void check_quoting(std::string_view word) {
    const std::string quoted = wire::quote_word(word);
    expr::Tokenizer tokens(quoted);
    const auto token = tokens.next();
    GLOVED_CHECK(token && token->has_value() && (*token)->quoted && (*token)->text == word);
    GLOVED_CHECK(!tokens.next()->has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    check_quoting(bytes);
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
