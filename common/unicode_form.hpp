// The two forms in which Unicode writes an accented letter: as one code point, or as a letter and
// its accents.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gloved {

/// Longer words have no other form here: to sort n accents behind one letter takes n² steps, and
/// anybody may ask for a word that has nothing else.
inline constexpr std::size_t kMaxOtherFormBytes = 1024;

/// `text` with letters and accents composed (Unicode's NFC), or apart (NFD). nullopt if that is
/// `text` itself, if `text` is not valid UTF-8, and if it has more than kMaxOtherFormBytes.
std::optional<std::string> composed(std::string_view text);
std::optional<std::string> decomposed(std::string_view text);

}  // namespace gloved
