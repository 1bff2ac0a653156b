#include "common/wire/json_string.hpp"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "common/quoting.hpp"

namespace gloved::wire {
namespace {

// U+10FF80 to U+10FFFF in UTF-8: F4 8F, then BE or BF, then 80 to BF. The last two bytes carry the
// low twelve bits, F80 to FFF.
constexpr std::string_view kLead = "\xF4\x8F";
constexpr std::size_t kStandInBytes = 4;

bool is_stand_in(std::string_view sequence) {
    return sequence.size() == kStandInBytes && sequence.starts_with(kLead) &&
           static_cast<unsigned char>(sequence[2]) >= 0xBE;
}

void append_byte(std::string& out, char byte) {
    fmt::format_to(std::back_inserter(out), "\\udbff\\udf{:02x}", static_cast<unsigned char>(byte));
}

}  // namespace

void append_json_string(std::string& out, std::string_view bytes) {
    out += '"';
    append_json_part(out, bytes, 0, std::numeric_limits<std::size_t>::max());
    out += '"';
}

std::size_t append_json_part(std::string& out, std::string_view bytes, std::size_t from,
                             std::size_t enough_bytes) {
    std::size_t i = from;
    while (i < bytes.size() && out.size() < enough_bytes) {
        const char byte = bytes[i];
        const std::size_t length = utf8_sequence_length(bytes.substr(i));
        const std::string_view sequence = bytes.substr(i, length);
        if (length == 0 || is_stand_in(sequence)) {
            append_byte(out, byte);
            // The rest of such a sequence is invalid and follows byte by byte.
            ++i;
            continue;
        }
        i += length;
        if (byte == '"' || byte == '\\') {
            out += '\\';
            out += byte;
        } else if (invisible_bytes(sequence) != 0) {
            // The last byte of a two-byte control character is its number.
            fmt::format_to(std::back_inserter(out), "\\u{:04x}",
                           static_cast<unsigned char>(sequence.back()));
        } else {
            out += sequence;
        }
    }
    return i;
}

std::string bytes_of_json_string(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const std::string_view sequence = text.substr(i, utf8_sequence_length(text.substr(i)));
        if (is_stand_in(sequence)) {
            bytes += static_cast<char>((static_cast<unsigned char>(sequence[2]) & 0x3F) << 6 |
                                       (static_cast<unsigned char>(sequence[3]) & 0x3F));
            i += sequence.size();
        } else {
            bytes += text[i++];
        }
    }
    return bytes;
}

}  // namespace gloved::wire
