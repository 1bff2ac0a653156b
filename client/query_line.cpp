#include "client/query_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "common/expr/token.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

bool begins_with_verb(std::string_view line) {
    // A line that breaks off inside a quote begins with no verb; the daemon has the better message for it.
    const auto first = expr::Tokenizer(line).next();
    return first && first->has_value() && !(*first)->quoted && wire::find_verb((*first)->text).has_value();
}

}  // namespace

Result<std::string> query_line(const std::vector<std::string>& words, std::optional<std::size_t> count) {
    std::string line = fmt::format("{}", fmt::join(words, " "));
    if (line.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
        return Error{ErrorCode::bad_request, "a query is one line: no line end and no NUL inside"};
    }
    if (begins_with_verb(line)) {
        if (!count) return line;
        return Error{ErrorCode::bad_request, "--count goes with an expression; give a verb its own k="};
    }
    return count ? fmt::format("NEAR k={} {}", *count, line) : "NEAR " + line;
}

}  // namespace gloved::client
