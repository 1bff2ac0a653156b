// A session in the original protocol: reads queries from a stream and writes answers to another.
#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

#include "client/connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Sends a request to the daemon and returns the reply; tests use a script instead.
using Ask = std::function<Result<Reply>(std::string_view line)>;

/// Prints the daemon's load times, then reads queries from `in` and answers each on `out`, flushed,
/// before it reads the next. A word that is not found is reported on `out`, as in the original;
/// other refusals and malformed queries are reported on `err`. None of them ends the session.
/// Returns whether `err` stayed empty. Errors end the session: the error of `ask`, or io if `out`
/// cannot be written.
Result<bool> run_original_session(std::istream& in, std::ostream& out, std::ostream& err,
                                  const Ask& ask);

}  // namespace gloved::client
