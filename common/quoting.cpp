#include "common/quoting.hpp"

#include <fmt/format.h>

#include <iterator>

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

std::size_t invisible_bytes(std::string_view bytes) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    const std::size_t length = utf8_sequence_length(bytes);
    // U+0080 to U+009F: some terminals obey them like ESC.
    if (length == 2 && byte == 0xC2 && static_cast<unsigned char>(bytes[1]) < 0xA0) return 2;
    return byte < 0x20 || byte == 0x7F || length == 0 ? 1 : 0;
}

std::size_t append_visible(std::string& out, std::string_view bytes, std::size_t at) {
    const std::size_t hidden = invisible_bytes(bytes.substr(at));
    if (hidden == 0) {
        const std::size_t length = utf8_sequence_length(bytes.substr(at));
        out.append(bytes.substr(at, length));
        return at + length;
    }
    for (const char byte : bytes.substr(at, hidden)) {
        fmt::format_to(std::back_inserter(out), "\\x{:02X}", static_cast<unsigned char>(byte));
    }
    return at + hidden;
}

std::string printable(std::string_view bytes, std::size_t limit) {
    std::string out = "\"";
    std::size_t i = 0;
    while (i < bytes.size() && i < limit) {
        if (bytes[i] == '"' || bytes[i] == '\\') out += '\\';
        i = append_visible(out, bytes, i);
    }
    out += '"';
    if (i < bytes.size()) out += "…";
    return out;
}

std::string without_control_bytes(std::string_view message) {
    std::string out;
    out.reserve(message.size());
    for (std::size_t i = 0; i < message.size();) i = append_visible(out, message, i);
    return out;
}

}  // namespace gloved
