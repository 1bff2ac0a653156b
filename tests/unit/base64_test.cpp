#include "common/base64.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gloved {
namespace {

std::string encoded(std::string_view bytes) {
    std::string out = "before";
    append_base64(out, std::as_bytes(std::span(bytes)));
    EXPECT_EQ(out.substr(0, 6), "before");
    return out.substr(6);
}

std::optional<std::string> decoded(std::string_view text) {
    const auto bytes = decode_base64(text);
    if (!bytes) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

TEST(Base64, IsThatOfTheRfc) {
    const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                      {"f", "Zg=="},
                                                                      {"fo", "Zm8="},
                                                                      {"foo", "Zm9v"},
                                                                      {"foob", "Zm9vYg=="},
                                                                      {"fooba", "Zm9vYmE="},
                                                                      {"foobar", "Zm9vYmFy"}};
    for (const auto& [bytes, text] : vectors) {
        EXPECT_EQ(encoded(bytes), text);
        EXPECT_EQ(decoded(text), bytes);
    }
    EXPECT_EQ(encoded("\xFB\xEF\xBE\xFF\xFF\xFF"), "++++////");
    EXPECT_EQ(decoded("++++////"), "\xFB\xEF\xBE\xFF\xFF\xFF");
}

TEST(Base64, BringsBackBytesOfAnyLength) {
    std::mt19937 random(1);
    for (std::size_t length = 0; length < 200; ++length) {
        std::string bytes(length, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        const std::string text = encoded(bytes);
        EXPECT_EQ(text.size(), (length + 2) / 3 * 4);
        EXPECT_EQ(decoded(text), bytes);
    }
}

TEST(Base64, GoesOnAfterWholeGroups) {
    const std::string bytes = "nine chars and more";
    std::string pieces;
    append_base64(pieces, std::as_bytes(std::span(bytes).first(9)));
    append_base64(pieces, std::as_bytes(std::span(bytes).subspan(9)));
    EXPECT_EQ(pieces, encoded(bytes));
}

TEST(Base64, RefusesWrongLengths) {
    for (const char* text :
         {"Z", "Zg", "Zg=", "Zm9", "Zm9vY", "Zm9vYg", "Zm9vYg=", "=", "==", "==="})
        EXPECT_EQ(decoded(text), std::nullopt) << text;
}

TEST(Base64, RefusesWrongPadding) {
    for (const char* text : {"====", "Z===", "Zg==Zg==", "Zm8=Zm9v",
                             "Z=g=", "=Zg=", "Zm9v====", "Zg=A", "Zm=v", "=m9v", "Zm9=Zm9v"}) {
        EXPECT_EQ(decoded(text), std::nullopt) << text;
    }
}

TEST(Base64, RefusesUnusedBits) {
    for (const char* text : {"Zh==", "Zi==", "Zo==", "Zv==", "Z/==", "Zm9=", "Zm+=", "Zm/="})
        EXPECT_EQ(decoded(text), std::nullopt) << text;
}

TEST(Base64, HasOneTextForOneRowOfBytes) {
    for (const std::string right : {"Zm9vYmFy", "Zm9vYg==", "Zm9vYmE="}) {
        for (std::size_t at = 0; at < right.size(); ++at) {
            for (int byte = 0; byte < 256; ++byte) {
                std::string text = right;
                text[at] = static_cast<char>(byte);
                const auto bytes = decoded(text);
                EXPECT_EQ(bytes ? encoded(*bytes) : text, text);
            }
        }
    }
}

TEST(Base64, RefusesOtherCharacters) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        const bool is_right = kAlphabet.find(c) != std::string_view::npos;
        for (std::size_t at = 0; at < 4; ++at) {
            std::string text = "Zm9vZm9vZm9v";
            text[4 + at] = c;
            EXPECT_EQ(decoded(text).has_value(), is_right) << byte << " at " << at;
        }
    }
}

}  // namespace
}  // namespace gloved
