// Sizes as text: parses those of a command line, such as 512M, and groups the digits of a number.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace gloved {

/// Parses a number of bytes: digits, and optionally K, M or G for 1024, 1024² or 1024³. nullopt if
/// malformed or beyond 64 bits.
inline std::optional<std::uint64_t> byte_count_from(std::string_view text) {
    std::uint64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    if (error != std::errc()) return std::nullopt;
    const std::string_view suffix(end, static_cast<std::size_t>(last - end));
    const int shift = suffix.empty()  ? 0
                      : suffix == "K" ? 10
                      : suffix == "M" ? 20
                      : suffix == "G" ? 30
                                      : -1;
    if (shift < 0 || number > UINT64_MAX >> shift) return std::nullopt;
    return number << shift;
}

/// Formats 2196017 as «2,196,017».
inline std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

}  // namespace gloved
