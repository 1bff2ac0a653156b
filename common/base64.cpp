#include "common/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gloved {
namespace {

constexpr std::size_t kGroupChars = 4;
constexpr char kPadding = '=';
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What kValues has for a character outside the alphabet. Wherever the character stands in a group,
/// the group's value then exceeds kMaxGroup.
constexpr std::uint32_t kNoValue = ~std::uint32_t{63};
constexpr std::uint32_t kMaxGroup = 0xFFFFFF;

/// The six bits of each character.
constexpr std::array<std::uint32_t, 256> kValues = [] {
    std::array<std::uint32_t, 256> values{};
    values.fill(kNoValue);
    for (std::size_t i = 0; i < kAlphabet.size(); ++i)
        values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint32_t>(i);
    return values;
}();

/// The 24 bits of four characters, the first one's highest; more than kMaxGroup if one is outside
/// the alphabet.
std::uint32_t group_value(const char* chars) {
    const auto value = [&](std::size_t i) { return kValues[static_cast<unsigned char>(chars[i])]; };
    return value(0) << 18 | value(1) << 12 | value(2) << 6 | value(3);
}

void write_group(std::uint32_t value, char* chars) {
    chars[0] = kAlphabet[value >> 18 & 63];
    chars[1] = kAlphabet[value >> 12 & 63];
    chars[2] = kAlphabet[value >> 6 & 63];
    chars[3] = kAlphabet[value & 63];
}

}  // namespace

void append_base64(std::string& out, std::span<const std::byte> bytes) {
    const std::size_t groups = (bytes.size() + kBase64GroupBytes - 1) / kBase64GroupBytes;
    const std::size_t begin = out.size();
    out.resize(begin + groups * kGroupChars);
    char* chars = out.data() + begin;
    const auto bits = [&](std::size_t at) { return std::to_integer<std::uint32_t>(bytes[at]); };
    std::size_t at = 0;
    for (; at + kBase64GroupBytes <= bytes.size(); at += kBase64GroupBytes, chars += kGroupChars)
        write_group(bits(at) << 16 | bits(at + 1) << 8 | bits(at + 2), chars);
    const std::size_t left = bytes.size() - at;
    if (left == 0) return;
    write_group(bits(at) << 16 | (left == 2 ? bits(at + 1) << 8 : 0), chars);
    std::fill(chars + left + 1, chars + kGroupChars, kPadding);
}

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
    if (text.size() % kGroupChars != 0) return std::nullopt;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with(kPadding) ? 1 : 0;
    std::vector<std::byte> bytes(text.size() / kGroupChars * kBase64GroupBytes);
    std::byte* to = bytes.data();
    const auto write = [&](std::uint32_t value) {
        *to++ = static_cast<std::byte>(value >> 16);
        *to++ = static_cast<std::byte>(value >> 8);
        *to++ = static_cast<std::byte>(value);
    };
    std::uint32_t all = 0;  // the bits of all groups
    const std::size_t whole = text.size() - (padding > 0 ? kGroupChars : 0);
    for (std::size_t at = 0; at < whole; at += kGroupChars) {
        const std::uint32_t value = group_value(text.data() + at);
        all |= value;
        write(value);
    }
    if (padding > 0) {
        std::array<char, kGroupChars> last{};
        std::copy_n(text.data() + whole, kGroupChars, last.begin());
        std::fill(last.end() - static_cast<std::ptrdiff_t>(padding), last.end(), kAlphabet[0]);
        const std::uint32_t value = group_value(last.data());
        const std::uint32_t unused_bits = (std::uint32_t{1} << 8 * padding) - 1;
        if ((value & unused_bits) != 0) return std::nullopt;
        all |= value;
        write(value);
        bytes.resize(bytes.size() - padding);
    }
    if (all > kMaxGroup) return std::nullopt;
    return bytes;
}

}  // namespace gloved
