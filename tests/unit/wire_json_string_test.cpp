#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>

#include "common/wire/json_string.hpp"

namespace gloved::wire {
namespace {

std::string json(std::string_view bytes) {
    std::string out = "x";
    append_json_string(out, bytes);
    return out.substr(1);
}

/// What a JSON reader that checks everything makes of it, and back to bytes.
std::string round_trip(std::string_view bytes) {
    const std::string text = json(bytes);
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
    return bytes_of_json_string(nlohmann::json::parse(text).get<std::string>());
}

TEST(JsonString, PlainTextStandsAsItIs) {
    EXPECT_EQ(json(""), "\"\"");
    EXPECT_EQ(json("king's caf\u00e9 \u00a0 \U0001F600"), "\"king's caf\u00e9 \u00a0 \U0001F600\"");
    EXPECT_EQ(json("a\"b\\c\td"), R"("a\"b\\c\u0009d")");
}

// A terminal may obey DEL and C1 control characters too.
TEST(JsonString, ControlCharactersAreWrittenAsNumbers) {
    EXPECT_EQ(json("\x1B\x7F\xC2\x80\xC2\x9F\xC2\xA0"), "\"\\u001b\\u007f\\u0080\\u009f\xC2\xA0\"");
}

TEST(JsonString, BytesThatAreNoUtf8HaveTheirOwnCodePoints) {
    EXPECT_EQ(json("caf\xe9"), R"("caf\udbff\udfe9")");
    EXPECT_EQ(json("\xed\xa0\x80"), R"("\udbff\udfed\udbff\udfa0\udbff\udf80")");
}

// Otherwise a key that holds such a code point would read back as another's bytes.
TEST(JsonString, TheStandInsThemselvesAreWrittenByteByByte) {
    EXPECT_EQ(json("\U0010FF80"), R"("\udbff\udff4\udbff\udf8f\udbff\udfbe\udbff\udf80")");
    EXPECT_EQ(round_trip("\U0010FF80"), "\U0010FF80");
    EXPECT_EQ(json("\U0010FF7F"), "\"\U0010FF7F\"");
}

TEST(JsonString, EveryPairOfBytesComesBack) {
    for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; ++b) {
            const std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
            ASSERT_EQ(round_trip(bytes), bytes) << a << ' ' << b;
        }
    }
}

TEST(JsonString, AnyBytesComeBack) {
    std::mt19937 random(7);
    // Mostly bytes of which sequences are made.
    constexpr std::string_view kBytes = "\xf4\x8f\xbe\xbf\x80\xe2\xc3\xa9\xff\"\\a";
    for (int i = 0; i < 100'000; ++i) {
        std::string bytes(random() % 12, ' ');
        for (char& byte : bytes) byte = kBytes[random() % kBytes.size()];
        ASSERT_EQ(round_trip(bytes), bytes);
    }
}

}  // namespace
}  // namespace gloved::wire
