// JSON strings for words, which are bytes and need not be Unicode (common/wire/PROTOCOL.md,
// «JSON»).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloved::wire {

/// Appends `bytes` as a quoted JSON string. Valid UTF-8 is copied, except control characters
/// (U+0000 to U+001F, U+007F to U+009F), which become \u00XX. Each byte of an invalid sequence, and
/// each byte of U+10FF80 to U+10FFFF, becomes the code point U+10FF00 + byte, written \udbff\udfXX
/// with XX the byte in hexadecimal. So the JSON is always valid, and different bytes stay
/// different.
void append_json_string(std::string& out, std::string_view bytes);

/// Appends part of the same string, without quotes: from byte `from` until `out` has `enough_bytes`
/// or `bytes` ends. Returns where the next part begins.
std::size_t append_json_part(std::string& out, std::string_view bytes, std::size_t from,
                             std::size_t enough_bytes);

/// Decodes the bytes from a JSON string's content, given in UTF-8 as a JSON reader returns it.
std::string bytes_of_json_string(std::string_view text);

}  // namespace gloved::wire
