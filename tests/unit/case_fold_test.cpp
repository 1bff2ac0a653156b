#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/case_fold.hpp"

namespace gloved {
namespace {

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
    EXPECT_EQ(fold_case("İ ŉ ß ΐ"), "İ ŉ ß ΐ") << "have no single small letter";
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
