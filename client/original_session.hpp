// A whole run of the original protocol: queries from a stream, answers to a stream.
#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

#include "client/connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Asks the daemon; Connection::ask in the program, a script in tests.
using Ask = std::function<Result<Reply>(std::string_view line)>;

/// Prints the daemon's load times, then reads queries from `in` to its end and answers each on
/// `out`, flushed, before it reads the next. What the daemon refuses and what is malformed is said
/// (a word that is not found on `out`, as the original did, all else on `err`) and does not end the
/// run. Returns whether nothing was said on `err`. Error: whatever `ask` failed with (the
/// connection is lost), or io when `out` takes no more; both end the run.
Result<bool> run_original_session(std::istream& in, std::ostream& out, std::ostream& err,
                                  const Ask& ask);

}  // namespace gloved::client
