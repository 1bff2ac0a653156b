// Bytes of unknown origin, made fit for a message, a log line or the wire.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloved {

/// `bytes` in double quotes, with \" and \\ escaped and control bytes as \xHH. Valid UTF-8 stays as
/// it is, other bytes become \xHH too, so that a message is always valid UTF-8 on one line. More
/// than `limit` bytes are cut with «…».
std::string printable(std::string_view bytes, std::size_t limit = 80);

/// A message as one line of valid UTF-8: control bytes and what is no UTF-8 become \xHH, all else
/// stays as it is.
std::string without_control_bytes(std::string_view message);

/// How many bytes at the front of `bytes`, which is not empty, no reader should get as they are: 0
/// where a printable character of valid UTF-8 stands there, 2 for a control character of two bytes,
/// otherwise 1. Safe in a signal handler.
std::size_t invisible_bytes(std::string_view bytes);

/// Appends what stands in `bytes` at `at`: a printable character as it is, other bytes as \xHH.
/// Returns where the next one stands.
std::size_t append_visible(std::string& out, std::string_view bytes, std::size_t at);

/// Length of the valid UTF-8 sequence that `text` starts with (1–4), or 0. Overlong forms,
/// surrogates and values beyond U+10FFFF are invalid (Unicode 15, table 3-7).
std::size_t utf8_sequence_length(std::string_view text);

}  // namespace gloved
