// Words in JSON: words are bytes, JSON is Unicode (common/wire/PROTOCOL.md, «JSON»).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloved::wire {

/// Appends `bytes` as a JSON string with its quotes. Valid UTF-8 stands as it is, except control
/// characters (U+0000 to U+001F, U+007F to U+009F), which are written \u00XX. A byte that is part
/// of no valid sequence, and each byte of the code points U+10FF80 to U+10FFFF, becomes the code
/// point U+10FF00 + byte, written \udbff\udfXX with XX the byte in hexadecimal: valid JSON for
/// every reader, and different bytes stay different.
void append_json_string(std::string& out, std::string_view bytes);

/// Appends part of the same string, without quotes: from byte `from` on, until `out` has
/// `enough_bytes` or `bytes` ends. Returns where the next part begins.
std::size_t append_json_part(std::string& out, std::string_view bytes, std::size_t from,
                             std::size_t enough_bytes);

/// The bytes that `text` stands for: a JSON string's content as a JSON reader gives it, in UTF-8.
std::string bytes_of_json_string(std::string_view text);

}  // namespace gloved::wire
