#include "tools/convert/input.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "tests/support/gzip.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::convert {
namespace {

const std::atomic<bool> kGoOn{false};

/// All of a source's text, read in pieces of `piece` bytes; or the error.
Result<std::string> read_all(const std::string& content, std::size_t piece = 1000) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", content);
    auto input = Input::open(dir / "in", kGoOn);
    if (!input) return input.error();
    std::string text;
    std::string buffer(piece, '\0');
    for (;;) {
        const auto got = input->read(buffer);
        if (!got) return got.error();
        text.append(buffer, 0, *got);
        if (*got < piece) break;
    }
    EXPECT_EQ(input->source_bytes(), content.size());
    EXPECT_EQ(input->checksum(), format::checksum(std::as_bytes(std::span(content))));
    return text;
}

std::string long_text() {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "word" + std::to_string(i * 7919 % 65537) + " 0.1 0.2\n";
    return text;
}

TEST(Input, ReadsPlainAndPackedAlike) {
    const std::string text = long_text();
    for (const std::size_t piece : {std::size_t{1000}, std::size_t{262144}, std::size_t{1} << 20, text.size() + 1}) {
        const auto plain = read_all(text, piece);
        const auto packed = read_all(tests::gzip(text), piece);
        ASSERT_TRUE(plain && packed);
        EXPECT_TRUE(*plain == text);
        EXPECT_TRUE(*packed == text);
    }
}

TEST(Input, JoinsGzipMembers) {
    const auto text = read_all(tests::gzip("a\n") + tests::gzip("") + tests::gzip("b\n") + std::string(512, '\0'));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, "a\nb\n");
}

TEST(Input, RefusesGzipThatEndsTooEarly) {
    const std::string packed = tests::gzip("the 0.1 0.2\nof 0.3 0.4\n");
    for (std::size_t length = 2; length < packed.size(); ++length) {
        const auto text = read_all(packed.substr(0, length));
        ASSERT_FALSE(text) << length;
        EXPECT_NE(text.error().message.find("ends too early"), std::string::npos) << text.error().message;
    }
}

TEST(Input, RefusesDamagedGzip) {
    std::string packed = tests::gzip(long_text());
    packed[packed.size() - 6] ^= 1;  // the member's CRC
    const auto text = read_all(packed);
    ASSERT_FALSE(text);
    EXPECT_NE(text.error().message.find("damaged near byte"), std::string::npos) << text.error().message;
    const auto trailing = read_all(tests::gzip("a\n") + "tail");
    ASSERT_FALSE(trailing);
    EXPECT_NE(trailing.error().message.find("other data follows"), std::string::npos) << trailing.error().message;
}

TEST(Input, StopsWhenToldTo) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", "text");
    const std::atomic<bool> stop{true};
    const auto input = Input::open(dir / "in", stop);
    ASSERT_FALSE(input);
    EXPECT_EQ(input.error().code, ErrorCode::interrupted);
}

TEST(Input, NamesWhatCannotBeOpened) {
    const tests::TempDir dir;
    EXPECT_NE(Input::open(dir / "none", kGoOn).error().message.find("cannot open"), std::string::npos);
    EXPECT_NE(Input::open(dir.path(), kGoOn).error().message.find("is a directory"), std::string::npos);
}

}  // namespace
}  // namespace gloved::convert
