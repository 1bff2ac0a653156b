#include "common/case_fold.hpp"

#include <cassert>

#include "common/quoting.hpp"

namespace gloved {
namespace {

/// U+0100–017F: pairs of a capital and the small letter after it, but for what is said here.
std::uint32_t fold_latin_extended_a(std::uint32_t code_point) {
    if (code_point == 0x0130 || code_point == 0x0138)
        return code_point;  // «İ» folds to two code points, «ĸ» is small
    if (code_point == 0x0178) return 0x00FF;
    if (code_point == 0x017F) return 's';
    const bool capitals_are_odd =
        (code_point >= 0x0139 && code_point <= 0x0148) || code_point >= 0x0179;
    return (code_point % 2 != 0) == capitals_are_odd ? code_point + 1 : code_point;
}

/// U+0370–03FF.
std::uint32_t fold_greek(std::uint32_t code_point) {
    if (code_point >= 0x0391 && code_point <= 0x03AB && code_point != 0x03A2)
        return code_point + 0x20;
    if (code_point >= 0x03D8 && code_point <= 0x03EF) return code_point | 1;
    switch (code_point) {
        case 0x0370:
        case 0x0372:
        case 0x0376:
        case 0x03F7:
        case 0x03FA:
            return code_point + 1;
        case 0x037F:
            return 0x03F3;
        case 0x0386:
            return 0x03AC;
        case 0x0388:
        case 0x0389:
        case 0x038A:
            return code_point + 0x25;
        case 0x038C:
            return 0x03CC;
        case 0x038E:
        case 0x038F:
            return code_point + 0x3F;
        case 0x03C2:
            return 0x03C3;  // a final sigma is a sigma
        case 0x03CF:
            return 0x03D7;
        case 0x03D0:
            return 0x03B2;
        case 0x03D1:
        case 0x03F4:
            return 0x03B8;
        case 0x03D5:
            return 0x03C6;
        case 0x03D6:
            return 0x03C0;
        case 0x03F0:
            return 0x03BA;
        case 0x03F1:
            return 0x03C1;
        case 0x03F5:
            return 0x03B5;
        case 0x03F9:
            return 0x03F2;
        case 0x03FD:
        case 0x03FE:
        case 0x03FF:
            return code_point - 0x82;
        default:
            return code_point;
    }
}

/// U+0400–052F.
std::uint32_t fold_cyrillic(std::uint32_t code_point) {
    if (code_point <= 0x040F) return code_point + 0x50;
    if (code_point <= 0x042F) return code_point + 0x20;
    if (code_point == 0x04C0) return 0x04CF;
    if (code_point >= 0x04C1 && code_point <= 0x04CE) return code_point + code_point % 2;
    // The rest are pairs again, between the small letters and the signs that have no case.
    const bool pairs = (code_point >= 0x0460 && code_point <= 0x0481) ||
                       (code_point >= 0x048A && code_point != 0x04CF);
    return pairs ? code_point | 1 : code_point;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
    assert(!text.empty());
    const auto byte = [&](std::size_t i) {
        return std::uint32_t{static_cast<unsigned char>(text[i])};
    };
    const auto continuation = [&](std::size_t i) { return byte(i) & 0x3F; };
    if (byte(0) < 0x80) return {byte(0), 1};
    switch (utf8_sequence_length(text)) {
        case 2:
            return {(byte(0) & 0x1F) << 6 | continuation(1), 2};
        case 3:
            return {(byte(0) & 0x0F) << 12 | continuation(1) << 6 | continuation(2), 3};
        case 4:
            return {(byte(0) & 0x07) << 18 | continuation(1) << 12 | continuation(2) << 6 |
                        continuation(3),
                    4};
        default:
            return {kInvalidByte + byte(0), 1};
    }
}

std::uint32_t fold_case(std::uint32_t code_point) {
    if (code_point < 0x0080)
        return code_point >= 'A' && code_point <= 'Z' ? code_point + 0x20 : code_point;
    if (code_point < 0x0100) {
        if (code_point == 0x00B5) return 0x03BC;  // the micro sign is a mu
        return code_point >= 0x00C0 && code_point <= 0x00DE && code_point != 0x00D7
                   ? code_point + 0x20
                   : code_point;
    }
    if (code_point < 0x0180) return fold_latin_extended_a(code_point);
    if (code_point >= 0x0370 && code_point < 0x0400) return fold_greek(code_point);
    if (code_point >= 0x0400 && code_point < 0x0530) return fold_cyrillic(code_point);
    if (code_point >= 0x0531 && code_point <= 0x0556) return code_point + 0x30;
    return code_point;
}

std::string fold_case(std::string_view text) {
    std::string folded;
    folded.reserve(text.size());
    while (!text.empty()) {
        const CodePoint from = first_code_point(text);
        const std::uint32_t to = fold_case(from.value);
        if (to == from.value) {
            folded += text.substr(0, from.bytes);
        } else if (to < 0x80) {
            folded += static_cast<char>(to);
        } else {
            assert(to < 0x800 && from.bytes == 2);  // so are all that fold_case changes
            folded += static_cast<char>(0xC0 | to >> 6);
            folded += static_cast<char>(0x80 | (to & 0x3F));
        }
        text.remove_prefix(from.bytes);
    }
    return folded;
}

}  // namespace gloved
