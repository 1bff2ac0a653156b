// The two forms in which Unicode writes an accented letter: as one code point, or as a letter and
// its accents.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gloved {

/// `text` with letters and accents composed (Unicode's NFC), or apart (NFD). nullopt if that is
/// `text` itself, and if `text` is not valid UTF-8.
std::optional<std::string> composed(std::string_view text);
std::optional<std::string> decomposed(std::string_view text);

}  // namespace gloved
