// Encodes words as JSON strings and decodes them. Words are bytes and need not be Unicode
// (common/wire/PROTOCOL.md, «FORMAT»).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloved::wire {

/// Appends `bytes` as a quoted JSON string. Valid UTF-8 is copied, except control characters
/// (U+0000 to U+001F, U+007F to U+009F), which become \u00XX; " and \ get a backslash. Each byte of
/// an invalid sequence, and each of the four bytes of a character from U+10FF80 to U+10FFFF,
/// becomes the code point U+10FF00 + byte, written \udbff\udfXX with XX the byte in hexadecimal. So
/// the JSON is always valid, and different bytes stay different.
void append_json_string(std::string& out, std::string_view bytes);

/// Appends a part of what append_json_string would append, without the quotes: from byte `from` of
/// `bytes` on, until `out` has `enough_bytes` in all or `bytes` ends. Returns the `from` of the
/// next part.
std::size_t append_json_part(std::string& out, std::string_view bytes, std::size_t from,
                             std::size_t enough_bytes);

/// The inverse of append_json_string: the bytes of a JSON string. `text` is the string as a JSON
/// reader returns it, in UTF-8 without quotes and escapes.
std::string bytes_of_json_string(std::string_view text);

}  // namespace gloved::wire
