#include "client/query_line.hpp"

#include <fmt/format.h>

#include "common/expr/token.hpp"

namespace gloved::client {
Result<std::string> query_line(const std::vector<std::string>& words,
                               std::optional<std::size_t> count) {
    std::string line = fmt::format("{}", fmt::join(words, " "));
    if (line.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
        return Error{ErrorCode::bad_request, "a query is one line: no line end and no NUL inside"};
    }
    if (verb_of(line)) {
        if (!count) return line;
        return Error{ErrorCode::bad_request, "--count is for expressions; give a verb its own k="};
    }
    return count ? fmt::format("NEAR k={} {}", *count, line) : "NEAR " + line;
}

std::optional<wire::Verb> verb_of(std::string_view line) {
    // A request may end with CR LF.
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A line that ends inside a quote has no verb; the daemon's message for it is better.
    const auto first = expr::Tokenizer(line).next();
    if (!first || !*first || (*first)->quoted) return std::nullopt;
    return wire::find_verb((*first)->text);
}

}  // namespace gloved::client
