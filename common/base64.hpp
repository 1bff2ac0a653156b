// Base64 of RFC 4648, section 4: the alphabet with + and /, with padding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved {

/// Number of bytes that become four characters. The text of a multiple of this number has no
/// padding, so that more text may follow it.
inline constexpr std::size_t kBase64GroupBytes = 3;

/// Appends the base64 of `bytes`.
void append_base64(std::string& out, std::span<const std::byte> bytes);

/// Decodes `text`. nullopt if it is not base64: its length is no multiple of four, it has another
/// character or wrong padding, or its unused bits are not zero. Empty text has no bytes.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace gloved
