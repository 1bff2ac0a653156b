#include "common/quoting.hpp"

#include <fmt/format.h>

namespace gloved {

std::size_t utf8_sequence_length(std::string_view text) {
    if (text.empty()) return 0;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
        return i < text.size() && byte(i) >= low && byte(i) <= high;
    };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
    if (lead >= 0xE0 && lead <= 0xEF) {
        const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
        const unsigned high = lead == 0xED ? 0x9F : 0xBF;
        return continues(1, low, high) && continues(2) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
        const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
        return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
    }
    return 0;
}

std::string printable(std::string_view bytes, std::size_t limit) {
    std::string out = "\"";
    std::size_t i = 0;
    while (i < bytes.size() && i < limit) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        const std::size_t length = utf8_sequence_length(bytes.substr(i));
        const bool c1_control = length == 2 && byte == 0xC2 && static_cast<unsigned char>(bytes[i + 1]) < 0xA0;
        if (byte == '"' || byte == '\\') {
            out += '\\';
            out += bytes[i++];
        } else if (byte < 0x20 || byte == 0x7F || length == 0 || c1_control) {
            out += fmt::format("\\x{:02X}", byte);
            ++i;
            if (c1_control) out += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes[i++]));
        } else {
            out.append(bytes.substr(i, length));
            i += length;
        }
    }
    out += '"';
    if (i < bytes.size()) out += "…";
    return out;
}

}  // namespace gloved
