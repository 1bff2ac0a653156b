// Characters of texts with numbers: blanks, and letters whose case does not matter.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gloved {

/// Whether `c` separates numbers: a blank or a tab.
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// `text` with the letters A to Z as small ones; other bytes stay (case_fold.hpp knows Unicode).
inline std::string ascii_lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    });
    return lower;
}

}  // namespace gloved
