#include "common/case_fold.hpp"

#include <utf8proc.h>

#include <array>
#include <cassert>

namespace gloved {
namespace {

/// What a mapping of utf8proc makes of a code point; a byte that is none stays.
std::uint32_t by_utf8proc(utf8proc_int32_t (*mapping)(utf8proc_int32_t), std::uint32_t code_point) {
    if (code_point >= kInvalidByte) return code_point;
    return static_cast<std::uint32_t>(mapping(static_cast<utf8proc_int32_t>(code_point)));
}

std::uint32_t lower_of(std::uint32_t code_point) {
    return by_utf8proc(utf8proc_tolower, code_point);
}

/// `text` with each code point replaced by `mapping` of it.
template <class Mapping>
std::string mapped(std::string_view text, Mapping mapping) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text.front());
        if (byte < 0x80) {  // nearly all bytes; the calls for others take several times as long
            result += static_cast<char>(mapping(byte));
            text.remove_prefix(1);
            continue;
        }
        const CodePoint first = first_code_point(text);
        append_code_point(result, mapping(first.value));
        text.remove_prefix(first.bytes);
    }
    return result;
}

}  // namespace

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

std::string lower_case(std::string_view text) { return mapped(text, lower_of); }

std::string upper_case(std::string_view text) {
    return mapped(text, [](std::uint32_t c) { return by_utf8proc(utf8proc_toupper, c); });
}

std::string capitalized(std::string_view text) {
    if (text.empty()) return {};
    const CodePoint first = first_code_point(text);
    std::string result;
    append_code_point(result, by_utf8proc(utf8proc_totitle, first.value));
    return result + lower_case(text.substr(first.bytes));
}

std::string fold_case(std::string_view text) {
    return mapped(text, [](std::uint32_t c) { return fold_case(c); });
}

}  // namespace gloved
