// Base64 of RFC 4648, section 4: the alphabet with + and /, with padding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved {

/// Bytes that become four characters. Text of a multiple of it has no padding, so more may follow.
inline constexpr std::size_t kBase64GroupBytes = 3;

/// Appends the base64 of `bytes`.
void append_base64(std::string& out, std::span<const std::byte> bytes);

/// The bytes whose base64 is `text`. nullopt if it is that of no bytes: a length that is no
/// multiple of four, another character, wrong padding, or unused bits that are not zero.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace gloved
