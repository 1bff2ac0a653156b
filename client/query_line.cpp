#include "client/query_line.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expr/token.hpp"
#include "common/quoting.hpp"

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

std::string note_on_verb(const std::vector<std::string>& words) {
    const std::string line = fmt::format("{}", fmt::join(words, " "));
    if (verb_of(line)) return {};
    const std::string first = line.substr(0, line.find(' '));
    std::string capitals = first;
    for (char& c : capitals) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    if (!wire::find_verb(capitals)) return {};
    const std::string rest = line.substr(std::min(line.size(), first.size() + 1));
    // «near + king» can be nothing but a sum.
    if (rest.starts_with("+ ") || rest.starts_with("- ") || rest.starts_with("* ")) return {};
    return fmt::format("{} was taken as a word; the request {} is written in capitals",
                       printable(first), capitals);
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
