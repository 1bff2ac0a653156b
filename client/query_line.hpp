// Builds a request line from the arguments of gloved-client.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {

/// Joins `words`, the arguments, by spaces. If the first token is a verb, the result is the
/// request; otherwise it is an expression, and the result is NEAR's request for it, with k=`count`
/// if given. Errors: bad_request for a line end or NUL in a word, which would start another
/// request, and for a `count` with a verb, which has its own options.
Result<std::string> query_line(const std::vector<std::string>& words,
                               std::optional<std::size_t> count);

/// A note for the user if an expression begins with a verb in small letters, which is a word: «near
/// king» is the sum of two. Empty if not.
std::string note_on_verb(const std::vector<std::string>& words);

/// The verb that a request line begins with, if any.
std::optional<wire::Verb> verb_of(std::string_view line);

}  // namespace gloved::client
