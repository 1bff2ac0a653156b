#include "common/case_fold.hpp"

#include <utf8proc.h>

#include <array>
#include <cassert>

namespace gloved {

CodePoint first_code_point(std::string_view text) {
    assert(!text.empty());
    const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    utf8proc_int32_t code_point = 0;
    const auto length =
        utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &code_point);
    if (length <= 0) return {kInvalidByte + bytes[0], 1};
    return {static_cast<std::uint32_t>(code_point), static_cast<std::size_t>(length)};
}

std::uint32_t fold_case(std::uint32_t code_point) {
    utf8proc_int32_t folded = 0;
    // More than one: the mapping is of status F. Less: no code point.
    return utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), &folded, 1,
                                   UTF8PROC_CASEFOLD, nullptr) == 1
               ? static_cast<std::uint32_t>(folded)
               : code_point;
}

std::uint32_t capital_of(std::uint32_t folded) {
    const auto capital =
        static_cast<std::uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(folded)));
    return fold_case(capital) == folded ? capital : folded;
}

void append_code_point(std::string& out, std::uint32_t code_point) {
    if (code_point >= kInvalidByte) {
        out += static_cast<char>(code_point - kInvalidByte);
        return;
    }
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto length =
        utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
    out.append(bytes.begin(), bytes.begin() + length);
}

std::string fold_case(std::string_view text) {
    std::string folded;
    folded.reserve(text.size());
    while (!text.empty()) {
        const CodePoint first = first_code_point(text);
        append_code_point(folded, fold_case(first.value));
        text.remove_prefix(first.bytes);
    }
    return folded;
}

}  // namespace gloved
