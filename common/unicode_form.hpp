// The two forms in which Unicode writes an accented letter: as one code point, or as a letter and
// its accents.
#pragma once

#include <cstddef>
#include <functional>
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

/// What a message about a word that is not there adds, because on a screen both forms look the
/// same: «; the same letters, composed (Unicode NFC), are: "…"» if `is_there` says so of that form,
/// and the like of the decomposed one; otherwise empty. Of each form at most `limit` bytes.
std::string other_form_hint(std::string_view word,
                            const std::function<bool(const std::string&)>& is_there,
                            std::size_t limit = 80);

/// The same where the other form cannot be looked up: a message if `text` is not composed. `name`
/// is that of the text, as «the request».
std::optional<std::string> uncomposed_hint(std::string_view name, std::string_view text);

}  // namespace gloved
