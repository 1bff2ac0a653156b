// Writes a request as a line again, with all options that were in force.
#pragma once

#include <string>

#include "common/wire/request.hpp"

namespace gloved::wire {

/// A line that parse_request parses to the same request, for NEAR, NEARVEC and ANALOGY. It has
/// every option of the verb that has a value, also those that were not given, except model= and
/// engine=: the reply names both. `unknown` and `word_case` are those in force where the
/// request has none. Parentheses are multiplied out. The line may be longer than kMaxLineBytes.
std::string request_line(const Request& request, Unknown unknown, WordCase word_case);

}  // namespace gloved::wire
