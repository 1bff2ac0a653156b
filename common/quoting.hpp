// Escapes bytes of unknown origin for messages, log lines and the wire.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloved {

/// Quotes a name for a message: `bytes` in double quotes, with \" for a quote, \\ for a backslash,
/// and \xHH for each byte of a control character or of invalid UTF-8. One line of valid UTF-8. «…»
/// replaces what comes after `limit` bytes.
std::string printable(std::string_view bytes, std::size_t limit = 80);

/// A message as one line of valid UTF-8: each byte of a control character (LF and TAB too) or of
/// invalid UTF-8 becomes \xHH.
std::string without_control_bytes(std::string_view message);

/// Number of bytes to escape at the front of `bytes`, which must not be empty: 0 if a printable
/// character of valid UTF-8 stands there, 2 for a two-byte control character, otherwise 1. Safe in
/// a signal handler.
std::size_t invisible_bytes(std::string_view bytes);

/// Appends the character of `bytes` at position `at`, or its bytes as \xHH if it must be escaped.
/// Returns the position of the next character.
std::size_t append_visible(std::string& out, std::string_view bytes, std::size_t at);

/// Length of the valid UTF-8 sequence that `text` starts with (1–4), or 0. Overlong forms,
/// surrogates and values beyond U+10FFFF are invalid (Unicode 15, table 3-7).
std::size_t utf8_sequence_length(std::string_view text);

}  // namespace gloved
