// The loop of `gloved-client` without arguments: speaks the protocol of the program that gloved
// descends from (README.md, «The original protocol»; original_protocol.hpp parses it).
#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

#include "client/connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Sends the request `line`, which has no LF, to the daemon and returns the reply. Tests return
/// canned replies.
using Ask = std::function<Result<Reply>(std::string_view line)>;

/// Prints the daemon's load times, then reads queries from `in` until its end. Answers each query
/// on `out`, and flushes `out`, before it reads the next. A word that the model does not have is
/// reported on `out`, as the original program did. A malformed query, or another ERR of the daemon,
/// is reported on `err`, and the session continues. Returns whether nothing was reported on `err`.
/// Errors, which end the session: those of `ask`; io, if `out` cannot be written.
Result<bool> run_original_session(std::istream& in, std::ostream& out, std::ostream& err,
                                  const Ask& ask);

}  // namespace gloved::client
