#include "common/format/layout.hpp"
#include "common/result.hpp"
#include "tools/source/input.hpp"

#include <gtest/gtest.h>
#include <zip.h>
#include <zlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/support/gzip.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/zip.hpp"

namespace gloved::source {
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
    for (int i = 0; i < 100'000; ++i)
        text += "word" + std::to_string(i * 7919 % 65537) + " 0.1 0.2\n";
    return text;
}

TEST(Input, ReadsPlainAndPackedAlike) {
    const std::string text = long_text();
    for (const std::size_t piece :
         {std::size_t{1000}, std::size_t{262144}, std::size_t{1} << 20, text.size() + 1}) {
        const auto plain = read_all(text, piece);
        const auto packed = read_all(tests::gzip(text), piece);
        ASSERT_TRUE(plain && packed);
        EXPECT_TRUE(*plain == text);
        EXPECT_TRUE(*packed == text);
    }
}

TEST(Input, JoinsGzipMembers) {
    const auto text = read_all(tests::gzip("a\n") + tests::gzip("") + tests::gzip("b\n") +
                               std::string(512, '\0'));
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, "a\nb\n");
}

TEST(Input, RefusesGzipThatEndsTooEarly) {
    const std::string packed = tests::gzip("the 0.1 0.2\nof 0.3 0.4\n");
    for (std::size_t length = 2; length < packed.size(); ++length) {
        const auto text = read_all(packed.substr(0, length));
        ASSERT_FALSE(text) << length;
        EXPECT_NE(text.error().message.find("ends too early"), std::string::npos)
            << text.error().message;
    }
}

TEST(Input, RefusesDamagedGzip) {
    std::string packed = tests::gzip(long_text());
    packed[packed.size() - 6] ^= 1;  // the member's CRC
    const auto text = read_all(packed);
    ASSERT_FALSE(text);
    EXPECT_NE(text.error().message.find("damaged near byte"), std::string::npos)
        << text.error().message;
    const auto trailing = read_all(tests::gzip("a\n") + "tail");
    ASSERT_FALSE(trailing);
    EXPECT_NE(trailing.error().message.find("other data follows"), std::string::npos)
        << trailing.error().message;
}

/// All of a member's text, or the error.
Result<std::string> read_zip(const std::string& archive, const std::string& member = {},
                             std::size_t piece = 1000) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", archive);
    auto input = Input::open(dir / "in", kGoOn, member);
    if (!input) return input.error();
    EXPECT_EQ(input->compression(), "zip");
    EXPECT_EQ(input->source_bytes(), 0U);
    std::string text;
    std::string buffer(piece, '\0');
    for (std::uint64_t before = 0;;) {
        const auto got = input->read(buffer);
        if (!got) return got.error();
        text.append(buffer, 0, *got);
        EXPECT_LE(before, input->source_bytes());
        before = input->source_bytes();
        if (*got < piece) break;
    }
    EXPECT_EQ(input->source_bytes(), input->total_bytes());
    EXPECT_FALSE(input->checksum());
    EXPECT_EQ(input->crc32(), ::crc32(0, reinterpret_cast<const Bytef*>(text.data()),
                                      static_cast<uInt>(text.size())));
    return text;
}

TEST(Zip, ReadsStoredDeflatedAndZip64Alike) {
    const std::string text = long_text();
    for (const std::string& archive : {tests::zip_archive({{"a.txt", text}}),
                                       tests::zip_archive({{"a.txt", text, ZIP_CM_STORE}}),
                                       tests::zip64_archive("a.txt", text)}) {
        for (const std::size_t piece :
             {std::size_t{1000}, std::size_t{1} << 20, text.size(), text.size() + 1}) {
            const auto read = read_zip(archive, {}, piece);
            ASSERT_TRUE(read) << read.error().message;
            EXPECT_TRUE(*read == text);
        }
    }
}

TEST(Zip, NeedsAMemberOnlyWhereThereAreSeveralFiles) {
    // Neither directories nor what macOS adds count.
    const auto one = read_zip(
        tests::zip_archive({{"d/", ""}, {"d/a.txt", "text"}, {"__MACOSX/d/._a.txt", "x"}}));
    ASSERT_TRUE(one) << one.error().message;
    EXPECT_EQ(*one, "text");
    std::vector<tests::ZipEntry> entries;
    for (int i = 0; i < 23; ++i) entries.push_back({"m" + std::to_string(i), std::string(7, 'x')});
    const auto unnamed = read_zip(tests::zip_archive(entries));
    ASSERT_FALSE(unnamed);
    EXPECT_EQ(unnamed.error().code, ErrorCode::bad_source);
    EXPECT_NE(unnamed.error().message.find(
                  "holds 23 files; --member NAME takes one of them: \"m0\" (7 bytes), \"m1\""),
              std::string::npos)
        << unnamed.error().message;
    EXPECT_NE(unnamed.error().message.find("\"m19\" (7 bytes), and 3 more"), std::string::npos)
        << unnamed.error().message;
    entries[21].text = "this one";
    EXPECT_EQ(*read_zip(tests::zip_archive(entries), "m21"), "this one");
    const auto missing = read_zip(tests::zip_archive(entries), "m99");
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("holds no member \"m99\"; it holds \"m0\""),
              std::string::npos)
        << missing.error().message;
    EXPECT_NE(read_zip(tests::zip_archive({{"d/", ""}})).error().message.find("holds no files"),
              std::string::npos);
}

TEST(Zip, RefusesWhatItCannotUnpack) {
    const auto encrypted =
        read_zip(tests::zip_archive({{"a.txt", "text", ZIP_CM_DEFLATE, "secret"}}));
    ASSERT_FALSE(encrypted);
    EXPECT_NE(encrypted.error().message.find("\"a.txt\" is encrypted"), std::string::npos)
        << encrypted.error().message;
    if (::zip_compression_method_supported(ZIP_CM_BZIP2, 1) == 0)
        GTEST_SKIP() << "skipped: this libzip cannot make bzip2";
    const auto bzip2 = read_zip(tests::zip_archive({{"a.txt", long_text(), ZIP_CM_BZIP2}}));
    ASSERT_FALSE(bzip2);
    EXPECT_NE(bzip2.error().message.find("is packed by method 12"), std::string::npos)
        << bzip2.error().message;
}

TEST(Zip, NoticesDamageAndCuts) {
    const std::string text = long_text();
    const std::string stored = tests::zip_archive({{"a.txt", text, ZIP_CM_STORE}});
    std::string damaged = stored;
    damaged[1000] ^= 1;  // only the CRC tells
    const auto crc = read_zip(damaged);
    ASSERT_FALSE(crc);
    EXPECT_NE(crc.error().message.find("\"a.txt\" of the zip archive is damaged"),
              std::string::npos)
        << crc.error().message;
    EXPECT_NE(crc.error().message.find("CRC"), std::string::npos) << crc.error().message;

    std::string deflated = tests::zip_archive({{"a.txt", text}});
    for (std::size_t at = 200; at < 400; ++at) deflated[at] = '\xAA';
    EXPECT_NE(read_zip(deflated).error().message.find("is damaged or cut"), std::string::npos);

    // Wherever a download ends, its directory or a part of it is missing.
    const std::string archive = tests::zip_archive({{"a.txt", long_text()}});
    for (const std::size_t length :
         {std::size_t{4}, std::size_t{30}, std::size_t{36}, archive.size() / 2, archive.size() - 60,
          archive.size() - 22, archive.size() - 21, archive.size() - 1}) {
        const auto cut = read_zip(archive.substr(0, length));
        ASSERT_FALSE(cut) << length;
        EXPECT_EQ(cut.error().code, ErrorCode::bad_source);
        EXPECT_NE(cut.error().message.find("the download is not complete"), std::string::npos)
            << cut.error().message;
    }
}

TEST(Zip, RefusesADirectoryThatIsTooLargeToHold) {
    constexpr std::uint64_t kMaxMembers = (4 << 20) / 52;
    for (const bool zip64 : {false, true}) {
        const auto fits = read_zip(tests::zip_of_empty_members(kMaxMembers, zip64), "000007");
        ASSERT_TRUE(fits) << fits.error().message;
        EXPECT_EQ(*fits, "");
        const auto large = read_zip(tests::zip_of_empty_members(kMaxMembers + 1, zip64), "000007");
        ASSERT_FALSE(large);
        EXPECT_EQ(large.error().code, ErrorCode::bad_source);
        EXPECT_NE(
            large.error().message.find("their directory takes 4194320 bytes; at most 4194304 "
                                       "bytes, 91180 members, are read; unpack the "
                                       "one file, for stdin (-): unzip -p ARCHIVE MEMBER | ..."),
            std::string::npos)
            << large.error().message;
        EXPECT_EQ(large.error().message.find("holds 80660 members or more") != std::string::npos,
                  zip64);
    }
}

TEST(Zip, ReadsNoDirectoryFarBeyondTheEndThatIsStated) {
    for (const bool zip64 : {false, true}) {
        const auto read = read_zip(tests::zip_of_empty_members(300'000, zip64, 53), "000007");
        ASSERT_FALSE(read);
        // Not «Premature end of file», which is found after all members have been held.
        EXPECT_NE(read.error().message.find("(Zip archive inconsistent"), std::string::npos)
            << read.error().message;
    }
}

TEST(Zip, StopsWhenToldTo) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", tests::zip_archive({{"a.txt", long_text()}}));
    std::atomic<bool> stop{false};
    auto input = Input::open(dir / "in", stop);
    ASSERT_TRUE(input);
    stop = true;
    std::string buffer(10, '\0');
    EXPECT_EQ(input->read(buffer).error().code, ErrorCode::interrupted);
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
    EXPECT_NE(Input::open(dir / "none", kGoOn).error().message.find("cannot open"),
              std::string::npos);
    EXPECT_NE(Input::open(dir.path(), kGoOn).error().message.find("is a directory"),
              std::string::npos);
}

}  // namespace
}  // namespace gloved::source
