// Bytes of unknown origin, made fit for a message, a log line or the wire.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloved {

/// `bytes` in double quotes, with \" and \\ escaped and control bytes as \xHH. Valid UTF-8 stays as it is, other bytes
/// become \xHH too, so that a message is always valid UTF-8 on one line. More than `limit` bytes are cut with «…».
std::string printable(std::string_view bytes, std::size_t limit = 80);

/// A message as one line of valid UTF-8: control bytes and what is no UTF-8 become \xHH, all else stays as it is.
std::string without_control_bytes(std::string_view message);

/// Length of the valid UTF-8 sequence that `text` starts with (1–4), or 0. Overlong forms, surrogates and values
/// beyond U+10FFFF are invalid (Unicode 15, table 3-7).
std::size_t utf8_sequence_length(std::string_view text);

}  // namespace gloved
