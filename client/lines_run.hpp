// gloved-client --lines: reads requests from a descriptor and writes replies to another.
#pragma once

#include <string>

#include "client/retrying_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Sends each line of `input_fd` as a request without waiting for earlier replies, also an empty
/// line and a last one without LF. Writes every reply to `output_fd` unchanged and in order, once
/// it is complete (a large one in pieces). Returns, at the end of the input, whether every reply
/// was OK. Errors: those of Pipeline::step; io if input or output fails. The error says how many
/// replies were written before it.
Result<bool> run_lines(RetryingConnection& peer, int input_fd, int output_fd);

/// Does the same for one request.
Result<bool> run_line(RetryingConnection& peer, std::string line, int output_fd);

}  // namespace gloved::client
