#include "common/unicode_form.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gloved {
namespace {

TEST(UnicodeForm, IsComposedOrApart) {
    EXPECT_EQ(composed("cafe\xCC\x81"), "café");
    EXPECT_EQ(decomposed("café"), "cafe\xCC\x81");
    EXPECT_EQ(composed("café"), std::nullopt);
    EXPECT_EQ(decomposed("cafe"), std::nullopt);
    EXPECT_EQ(composed("caf\xE9"), std::nullopt);
}

/// Accents of two classes in turn, which have to be sorted: the square of their number of steps.
TEST(UnicodeForm, OfLongWordsIsNotLookedFor) {
    std::string word = "e";
    while (word.size() + 4 <= kMaxOtherFormBytes) word += "\xCC\x81\xCC\xA3";
    EXPECT_NE(decomposed(word), std::nullopt);
    word += "\xCC\x81\xCC\xA3";
    EXPECT_EQ(composed(word), std::nullopt);
    EXPECT_EQ(decomposed(word), std::nullopt);
}

TEST(UnicodeForm, TellsOfTheOtherFormIfItIsThere) {
    const auto there = [](const std::string& form) { return form == "caf\xC3\xA9"; };
    EXPECT_EQ(other_form_hint("cafe\xCC\x81", there, 80),
              "; the same letters, composed (Unicode NFC), are: \"caf\xC3\xA9\"");
    EXPECT_EQ(other_form_hint("the\xCC\x81", there, 80), "");
    EXPECT_EQ(other_form_hint("cafe", there, 80), "");
    EXPECT_EQ(uncomposed_hint("the request", "NEAR caf\xC3\xA9"), std::nullopt);
    EXPECT_EQ(uncomposed_hint("the request", "NEAR cafe\xCC\x81"),
              "the request has letters that are not composed (Unicode NFC); the same letters, "
              "composed, may be in the model");
}

}  // namespace
}  // namespace gloved
