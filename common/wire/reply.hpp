// Replies as text: made by the daemon, read by clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace gloved::wire {

/// The wire's name of an error code: «bad_request». Codes that are not of the wire's closed list become «internal».
std::string_view code_name(ErrorCode code);

/// «key=value» of a status line; values hold no spaces.
using StatusField = std::pair<std::string, std::string>;

/// «OK n key=value …» with its LF.
std::string ok_line(std::size_t lines, const std::vector<StatusField>& fields = {});
/// «ERR code message» with its LF. LF and CR in the message become spaces.
std::string error_line(const Error& error);

/// Appends a score with 6 decimals; what rounds to −0.000000 is 0.000000.
void append_score(std::string& out, double score);

/// `word` as wire syntax that parses back to exactly it, always quoted.
std::string quote_word(std::string_view word);

/// A status line, read.
struct StatusLine {
    bool ok = false;
    std::size_t lines = 0;            ///< of an OK: how many lines follow
    std::vector<StatusField> fields;  ///< of an OK
    std::string code;                 ///< of an ERR
    std::string message;              ///< of an ERR

    /// The value of a field, or an empty string.
    std::string_view field(std::string_view key) const;
};

/// Reads a status line without its LF. Error: bad_request, when the peer does not speak this protocol.
Result<StatusLine> parse_status_line(std::string_view line);

}  // namespace gloved::wire
