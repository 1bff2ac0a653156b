#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/case_fold.hpp"

namespace gloved {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST(CaseFold, FoldsTheCapitalsOfLatinGreekCyrillicAndArmenian) {
    const Pairs pairs = {
        {'A', 'a'},     {'Z', 'z'},     {0xC0, 0xE0},   {0xC9, 0xE9},   {0xDE, 0xFE},
        {0xB5, 0x3BC},  {0x100, 0x101}, {0x12E, 0x12F}, {0x132, 0x133}, {0x136, 0x137},
        {0x139, 0x13A}, {0x147, 0x148}, {0x14A, 0x14B}, {0x176, 0x177}, {0x178, 0xFF},
        {0x179, 0x17A}, {0x17D, 0x17E}, {0x17F, 's'},   {0x370, 0x371}, {0x37F, 0x3F3},
        {0x386, 0x3AC}, {0x388, 0x3AD}, {0x38A, 0x3AF}, {0x38C, 0x3CC}, {0x38E, 0x3CD},
        {0x38F, 0x3CE}, {0x391, 0x3B1}, {0x3A1, 0x3C1}, {0x3A3, 0x3C3}, {0x3AB, 0x3CB},
        {0x3C2, 0x3C3}, {0x3CF, 0x3D7}, {0x3D0, 0x3B2}, {0x3D1, 0x3B8}, {0x3D5, 0x3C6},
        {0x3D6, 0x3C0}, {0x3D8, 0x3D9}, {0x3EE, 0x3EF}, {0x3F0, 0x3BA}, {0x3F1, 0x3C1},
        {0x3F4, 0x3B8}, {0x3F5, 0x3B5}, {0x3F7, 0x3F8}, {0x3F9, 0x3F2}, {0x3FA, 0x3FB},
        {0x3FD, 0x37B}, {0x3FF, 0x37D}, {0x400, 0x450}, {0x40F, 0x45F}, {0x410, 0x430},
        {0x42F, 0x44F}, {0x460, 0x461}, {0x480, 0x481}, {0x48A, 0x48B}, {0x4BE, 0x4BF},
        {0x4C0, 0x4CF}, {0x4C1, 0x4C2}, {0x4CD, 0x4CE}, {0x4D0, 0x4D1}, {0x52E, 0x52F},
        {0x531, 0x561}, {0x556, 0x586},
    };
    for (const auto& [capital, small] : pairs)
        EXPECT_EQ(fold_case(capital), small) << std::hex << capital;
}

TEST(CaseFold, FoldsTheCapitalsOfOtherScripts) {
    // Latin Extended-B, Georgian twice, Cherokee (which folds to capitals), Vietnamese, polytonic
    // Greek, Kelvin, Ohm, Glagolitic, full-width Latin and Deseret.
    const Pairs pairs = {
        {0x1C4, 0x1C6},   {0x23A, 0x2C65},  {0x10A0, 0x2D00}, {0x1C90, 0x10D0},
        {0xAB70, 0x13A0}, {0x1EA0, 0x1EA1}, {0x1F08, 0x1F00}, {0x212A, 'k'},
        {0x2126, 0x3C9},  {0x2C00, 0x2C30}, {0xFF21, 0xFF41}, {0x10400, 0x10428},
    };
    for (const auto& [capital, small] : pairs)
        EXPECT_EQ(fold_case(capital), small) << std::hex << capital;
}

TEST(CaseFold, LeavesAloneWhatHasNoCaseOrNoSingleSmallLetter) {
    for (const std::uint32_t code_point : {0x40U,
                                           0x5BU,
                                           0x60U,
                                           0xD7U,
                                           0xF7U,
                                           0xDFU,
                                           0x130U,
                                           0x131U,
                                           0x138U,
                                           0x149U,
                                           0x375U,
                                           0x390U,
                                           0x3A2U,
                                           0x3F6U,
                                           0x3FCU,
                                           0x482U,
                                           0x489U,
                                           0x530U,
                                           0x557U,
                                           0x587U,
                                           0x1E9EU,
                                           0x4E00U,
                                           0x10FFFFU,
                                           kInvalidByte + 'A',
                                           kInvalidByte + 0xC9}) {
        EXPECT_EQ(fold_case(code_point), code_point) << std::hex << code_point;
    }
}

TEST(CaseFold, FoldsNothingTwice) {
    std::size_t changed = 0;
    for (std::uint32_t code_point = 0; code_point <= kInvalidByte + 0xFF; ++code_point) {
        const std::uint32_t folded = fold_case(code_point);
        ASSERT_EQ(fold_case(folded), folded) << std::hex << code_point;
        if (folded != code_point && (code_point < 0x180 || code_point >= 0x370) &&
            code_point < 0x590)
            ++changed;
    }
    // As many as CaseFolding.txt of Unicode 15 has lines C for Basic Latin, Latin-1, Latin
    // Extended-A, Greek and Coptic, Cyrillic, Cyrillic Supplement and Armenian.
    EXPECT_EQ(changed, 371U);
}

TEST(CaseFold, ReadsCodePointsAndCountsOtherBytesByThemselves) {
    const auto expect = [](std::string_view text, std::uint32_t value, std::size_t bytes) {
        const CodePoint code_point = first_code_point(text);
        EXPECT_EQ(code_point.value, value) << text;
        EXPECT_EQ(code_point.bytes, bytes) << text;
    };
    expect("az", 'a', 1);
    expect(std::string_view("\0", 1), 0, 1);
    expect("éa", 0xE9, 2);
    expect("߿", 0x7FF, 2);
    expect("ࠀ", 0x800, 3);
    expect("漢字", 0x6F22, 3);
    expect("\xEF\xBF\xBD", 0xFFFD, 3);
    expect("\xF0\x90\x80\x80", 0x10000, 4);
    expect("\xF4\x8F\xBF\xBF", 0x10FFFF, 4);
    expect("\xC3", kInvalidByte + 0xC3, 1);
    expect("\xC3g", kInvalidByte + 0xC3, 1);
    expect("\xC0\xAF", kInvalidByte + 0xC0, 1);
    expect("\xED\xA0\x80", kInvalidByte + 0xED, 1);
    expect("\xFF", kInvalidByte + 0xFF, 1);
}

TEST(CaseFold, FoldsWholeTexts) {
    EXPECT_EQ(fold_case(""), "");
    EXPECT_EQ(fold_case("King's COURT 1984"), "king's court 1984");
    EXPECT_EQ(fold_case("ÉCOLE Ÿ ŁÓDŹ ẞ漢"), "école ÿ łódź ẞ漢");
    EXPECT_EQ(fold_case("ΟΔΟΣ οδος Ές"), "οδοσ οδοσ έσ");
    EXPECT_EQ(fold_case("МОСКВА Ёлка"), "москва ёлка");
    EXPECT_EQ(fold_case("ՀԱՅ"), "հայ");
    EXPECT_EQ(fold_case("VIỆT ＡＢＣ ὈΔΥΣΣΕΎΣ 𐐀"), "việt ａｂｃ ὀδυσσεύσ 𐐨");
    EXPECT_EQ(fold_case("\xC5\xBF"), "s") << "becomes shorter";
    EXPECT_EQ(fold_case("Ⱥ"), "ⱥ") << "becomes longer";
    EXPECT_EQ(fold_case("\xC3\xFF"
                        "A\xE2\x82"),
              "\xC3\xFF"
              "a\xE2\x82")
        << "bytes that are not UTF-8";
    EXPECT_EQ(fold_case(std::string_view("A\0B", 3)), std::string("a\0b", 3));
}

TEST(CaseFold, MapsWholeTextsToLowerAndUpperCaseAndCapitalizes) {
    struct Case {
        std::string text, lower, upper, capitalized;
    };
    const std::vector<Case> cases = {
        {"", "", "", ""},
        {"mcDonald's 24", "mcdonald's 24", "MCDONALD'S 24", "Mcdonald's 24"},
        {"ÉCOLE łódź", "école łódź", "ÉCOLE ŁÓDŹ", "École łódź"},
        {"naïve", "naïve", "NAÏVE", "Naïve"},
        {"ΟΔΟΣ", "οδοσ", "ΟΔΟΣ", "Οδοσ"},
        {"İstanbul", "istanbul", "İSTANBUL", "İstanbul"},
        // Title case is another letter than upper case.
        {"ǆ ǆ", "ǆ ǆ", "Ǆ Ǆ", "ǅ ǆ"},
        {"\xC3\xFF"
         "aB",
         "\xC3\xFF"
         "ab",
         "\xC3\xFF"
         "AB",
         "\xC3\xFF"
         "ab"},
    };
    for (const auto& [text, lower, upper, capital] : cases) {
        EXPECT_EQ(lower_case(text), lower);
        EXPECT_EQ(upper_case(text), upper);
        EXPECT_EQ(capitalized(text), capital);
    }
}

}  // namespace
}  // namespace gloved
