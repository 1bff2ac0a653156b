// The loop of `gloved-client --lines`: reads requests from one descriptor and writes the replies to
// another.
#pragma once

#include <string>

#include "client/reply_table.hpp"
#include "client/retrying_connection.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {

/// Sends each line of `input_fd` as a request, without waiting for earlier replies. An empty line
/// is a request too, and so is a last line without LF. Writes every reply to `output_fd` unchanged
/// and in order, once it is complete (a large one in pieces). At the end of the input waits for the
/// last reply and returns whether every reply was OK. Errors: those of Pipeline::step; io if input
/// or output fails. The message says how many replies were written.
Result<bool> run_lines(RetryingConnection& peer, int input_fd, int output_fd);

/// Sends one request `line`, which has no LF, and writes its reply: all of it if the peer's
/// settings ask for JSON; else the lines after the status line, so nothing of an ERR. Returns the
/// status. Errors as Pipeline::step; io if the output fails.
Result<wire::StatusLine> print_answer(RetryingConnection& peer, std::string line, int output_fd);

/// As print_answer, but writes a text reply as `table`, which was made for `line`. First sends the
/// table's first request, if there is one; if that is refused, returns its status. Error besides:
/// conflict, if the model was replaced between the two.
Result<wire::StatusLine> print_table(RetryingConnection& peer, std::string line, ReplyTable table,
                                     int output_fd);

}  // namespace gloved::client
