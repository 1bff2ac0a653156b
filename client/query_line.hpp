// The arguments of gloved-client as a request line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {

/// Joins `words` by spaces, in wire syntax as they were typed. A line whose first token is a verb
/// stays as it is; any other is NEAR's expression, with k=`count` where one is given. Errors, all
/// bad_request and the user's to mend: a line end or NUL inside, which would make another request
/// of the rest; a `count` beside a verb, which has its own options.
Result<std::string> query_line(const std::vector<std::string>& words,
                               std::optional<std::size_t> count);

/// The verb that a request line begins with; nothing for an expression.
std::optional<wire::Verb> verb_of(std::string_view line);

}  // namespace gloved::client
