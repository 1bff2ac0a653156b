#include "client/original_protocol.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/quoting.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {
namespace {

bool is_flag(std::string_view token) { return token == "0" || token == "1"; }
bool is_operator(std::string_view token) { return token == "+" || token == "-"; }
bool is_close(std::string_view token) { return token == "!" || token == "¡"; }

}  // namespace

Result<std::optional<OriginalQuery>> OriginalReader::feed(std::string_view token) {
    switch (state_) {
        case State::first_word:
            query_.words.push_back({false, std::string(token)});
            state_ = State::after_first;
            return std::optional<OriginalQuery>();
        case State::after_operator:
            query_.words.push_back({negative_, std::string(token)});
            state_ = State::after_word;
            return std::optional<OriginalQuery>();
        case State::flag: {
            if (is_flag(token)) return complete(token == "1");
            Error error =
                malformed(fmt::format("after '!' comes 0 or 1, not {}", printable(token)));
            // Most likely the flag was forgotten and the next query begins here.
            query_.words.push_back({false, std::string(token)});
            state_ = State::after_first;
            return error;
        }
        case State::after_first:
        case State::after_word:
            break;
    }
    if (is_flag(token)) {
        if (state_ == State::after_first) return complete(token == "1");
        return malformed(
            fmt::format("a sum ends with '!' before its {0}; to add the word, write + {0}", token));
    }
    if (is_close(token)) {
        state_ = State::flag;
    } else if (is_operator(token)) {
        negative_ = token == "-";
        state_ = State::after_operator;
    } else {
        query_.words.push_back({false, std::string(token)});
        state_ = State::after_word;
    }
    return std::optional<OriginalQuery>();
}

Status OriginalReader::finish() {
    if (state_ == State::first_word) return {};
    return malformed("the input ended before the 0 or 1");
}

std::optional<OriginalQuery> OriginalReader::complete(bool compare) {
    state_ = State::first_word;
    query_.compare = compare;
    return std::exchange(query_, {});
}

Error OriginalReader::malformed(const std::string& what) {
    Error error{ErrorCode::bad_request,
                fmt::format("query of {} dropped: {}", printable(query_.words.front().word), what)};
    state_ = State::first_word;
    query_ = {};
    return error;
}

std::string original_request(const OriginalQuery& query, std::string_view engine) {
    std::string line = fmt::format("NEAR k={} exclude=none", kOriginalHits + 1);
    if (!engine.empty()) line += fmt::format(" engine={}", engine);
    std::string_view separator = " ";
    for (const auto& [negative, word] : query.words) {
        if (negative) separator = " - ";
        line += separator;
        line += wire::quote_word(word);
        separator = " + ";
    }
    return line;
}

std::vector<std::string_view> original_words(const std::vector<std::string_view>& lines,
                                             std::string_view first_word) {
    std::vector<std::string_view> words;
    for (const std::string_view line : lines) {
        const std::string_view word = line.substr(0, line.find('\t'));
        if (word != first_word && words.size() < kOriginalHits) words.push_back(word);
    }
    return words;
}

}  // namespace gloved::client
