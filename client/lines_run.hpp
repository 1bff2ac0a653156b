// Requests from a descriptor, replies to a descriptor: gloved-client --lines.
#pragma once

#include <string>

#include "client/patient_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Sends each line of `input_fd` as a request, as it stands, also an empty one and a last one
/// without LF, ahead of the answers; writes every reply to `output_fd` as it came, in order, as
/// soon as it is whole (a large one: piece by piece). Returns, at the end of the input, whether
/// every reply was an OK. Errors: those of Pipeline::step; io, when input or output fail. What was
/// written before an error stays written; the error says how many replies that were.
Result<bool> run_lines(PatientConnection& peer, int input_fd, int output_fd);

/// The same for the one request `line`.
Result<bool> run_line(PatientConnection& peer, std::string line, int output_fd);

}  // namespace gloved::client
