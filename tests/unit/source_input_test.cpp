#include "common/format/layout.hpp"
#include "common/result.hpp"
#include "tools/source/input.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/gzip.hpp"
#include "tests/support/tar.hpp"
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
    const std::string text = long_text().substr(0, 600'000);
    const std::string tar = tests::tar_archive({{"d/", "", AE_IFDIR}, {"d/a.txt", text}});
    for (const std::string& packed :
         {text, tests::gzip(text), tests::bzip2(text), tests::xz(text), tests::zstd(text), tar,
          tests::gzip(tar), tests::bzip2(tar), tests::xz(tar), tests::zstd(tar)}) {
        for (const std::size_t piece :
             {std::size_t{1000}, std::size_t{262144}, std::size_t{1} << 20, text.size() + 1}) {
            const auto read = read_all(packed, piece);
            ASSERT_TRUE(read) << read.error().message;
            EXPECT_TRUE(*read == text);
        }
    }
}

TEST(Input, NamesHowASourceIsPacked) {
    const tests::TempDir dir;
    const std::string tar = tests::tar_archive({{"a.txt", "a 1 2\n"}});
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"none", "a 1 2\n"},
        {"gzip", tests::gzip("a 1 2\n")},
        {"bzip2", tests::bzip2("a 1 2\n")},
        {"xz", tests::xz("a 1 2\n")},
        {"zstd", tests::zstd("a 1 2\n")},
        {"zip", tests::zip_archive({{"a.txt", "a 1 2\n"}})},
        {"tar", tar},
        {"tar.gz", tests::gzip(tar)},
        {"tar.bz2", tests::bzip2(tar)},
        {"tar.xz", tests::xz(tar)},
        {"tar.zst", tests::zstd(tar)},
    };
    for (const auto& [name, content] : cases) {
        tests::write_file(dir / "in", content);
        const auto input = Input::open(dir / "in", kGoOn);
        ASSERT_TRUE(input) << input.error().message;
        EXPECT_EQ(input->compression(), name);
        EXPECT_EQ(input->member(), name == "zip" || name.starts_with("tar") ? "a.txt" : "");
        EXPECT_EQ(input->text_bytes(), input->member().empty() && name != "none" ? 0U : 6U);
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
Result<std::string> read_member(const std::string& path, const std::string& member,
                                std::size_t piece) {
    auto input = Input::open(path, kGoOn, member);
    if (!input) return input.error();
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
    EXPECT_EQ(input->crc32(), ::crc32(0, reinterpret_cast<const Bytef*>(text.data()),
                                      static_cast<uInt>(text.size())));
    EXPECT_EQ(input->compression(), "zip");
    if (input->total_bytes() == 0) return text;
    EXPECT_EQ(input->source_bytes(), input->total_bytes());
    EXPECT_EQ(input->text_bytes(), text.size());
    EXPECT_FALSE(input->checksum());
    return text;
}

/// A zip archive in a file.
Result<std::string> read_zip(const std::string& archive, const std::string& member = {},
                             std::size_t piece = 1000) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", archive);
    return read_member(dir / "in", member, piece);
}

/// The same on a pipe.
Result<std::string> read_piped(const std::string& archive, const std::string& member = {}) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    std::thread writer([&] {
        tests::write_file("/proc/self/fd/" + std::to_string(ends[1]), archive);
        ::close(ends[1]);
    });
    auto text = read_member("/proc/self/fd/" + std::to_string(ends[0]), member, 1000);
    std::string rest(1 << 16, '\0');
    while (::read(ends[0], rest.data(), rest.size()) > 0) continue;  // else SIGPIPE for the writer
    writer.join();
    ::close(ends[0]);
    return text;
}

TEST(Zip, ReadsStoredDeflatedAndZip64Alike) {
    const std::string text = long_text();
    for (const std::string& archive :
         {tests::zip_archive({{"a.txt", text}}),
          tests::zip_archive({{"a.txt", text, tests::kZipStored}}),
          tests::zip_archive({{"a.txt", text, tests::kZipDeflated, tests::kZipSizesBehindData}}),
          tests::zip64_archive("a.txt", text)}) {
        const auto piped = read_piped(archive);
        ASSERT_TRUE(piped) << piped.error().message;
        EXPECT_TRUE(*piped == text);
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
    const auto encrypted = read_zip(
        tests::zip_archive({{"a.txt", "text", tests::kZipDeflated, tests::kZipEncrypted}}));
    ASSERT_FALSE(encrypted);
    EXPECT_NE(encrypted.error().message.find("\"a.txt\" is encrypted"), std::string::npos)
        << encrypted.error().message;
    for (const unsigned method : {9U, 12U, 14U, 93U, 95U, 98U, 99U, 1000U}) {
        const auto other = read_zip(tests::zip_archive({{"a.txt", long_text(), method}}));
        ASSERT_FALSE(other);
        EXPECT_NE(other.error().message.find("\"a.txt\" is packed as "), std::string::npos)
            << other.error().message;
    }
}

TEST(Zip, NoticesDamage) {
    const std::string text = long_text();
    std::string stored = tests::zip_archive({{"a.txt", text, tests::kZipStored}});
    stored[1000] ^= 1;  // only the CRC tells
    std::string deflated = tests::zip_archive({{"a.txt", text}});
    for (std::size_t at = 200; at < 400; ++at) deflated[at] = '\xAA';
    for (const auto& read : {read_zip(stored), read_piped(stored)}) {
        ASSERT_FALSE(read);
        EXPECT_NE(read.error().message.find("\"a.txt\" of the zip archive is damaged"),
                  std::string::npos)
            << read.error().message;
        EXPECT_NE(read.error().message.find("CRC"), std::string::npos) << read.error().message;
    }
    for (const auto& read : {read_zip(deflated), read_piped(deflated)})
        EXPECT_NE(read.error().message.find("is damaged or cut"), std::string::npos);
}

TEST(Zip, NoticesCuts) {
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
        const auto piped = read_piped(archive.substr(0, length));
        ASSERT_FALSE(piped) << length;
        EXPECT_NE(piped.error().message.find("damaged or cut"), std::string::npos)
            << piped.error().message;
    }
}

TEST(Zip, NoticesACutComment) {
    std::string archive = tests::zip_archive({{"a.txt", "the 1 2\n"}});
    // Also one that is missing as many bytes as were read before, several times over.
    for (std::size_t missing = 1; missing < 6 * archive.size(); ++missing) {
        archive[archive.size() - 2] = static_cast<char>(missing % 256);
        archive[archive.size() - 1] = static_cast<char>(missing / 256);
        EXPECT_FALSE(read_zip(archive)) << missing;
    }
}

TEST(Zip, RefusesADirectoryThatIsTooLargeToHold) {
    // How much is read beyond 4 MiB depends on blocks.
    constexpr std::uint64_t kMaxBytes = 4 << 20;
    for (const bool zip64 : {false, true}) {
        const std::uint64_t bytes = zip64 ? 80 : 52;
        const auto fits = read_zip(tests::zip_of_empty_members(kMaxBytes / bytes, zip64), "000007");
        ASSERT_TRUE(fits) << fits.error().message;
        EXPECT_EQ(*fits, "");
        for (const std::uint64_t stated : {0U, 53U}) {
            const auto large = read_zip(
                tests::zip_of_empty_members((kMaxBytes + (1 << 20)) / bytes, zip64, stated),
                "000007");
            ASSERT_FALSE(large);
            EXPECT_EQ(large.error().code, ErrorCode::bad_source);
            if (stated != 0) continue;
            EXPECT_NE(large.error().message.find(
                          "the directory of the zip archive takes more than 4 MiB, which is not "
                          "read; unpack the one file, for stdin (-): unzip -p FILE MEMBER | ..."),
                      std::string::npos)
                << large.error().message;
        }
    }
}

TEST(Tar, NeedsAMemberOnlyWhereThereAreSeveralFiles) {
    const auto read = [](const std::string& content, const std::string& member) {
        const tests::TempDir dir;
        tests::write_file(dir / "in", content);
        auto input = Input::open(dir / "in", kGoOn, member);
        if (!input) return input.error().message;
        std::string buffer(1000, '\0');
        const auto got = input->read(buffer);
        return got ? buffer.substr(0, *got) : got.error().message;
    };
    const std::string tar = tests::tar_archive({{"d/", "", AE_IFDIR},
                                                {"d/a", "text"},
                                                {"d/l", "a", AE_IFLNK},
                                                {"d/f", "", AE_IFIFO},
                                                {"d/b", "other"}});
    for (const std::string& packed : {tar, tests::gzip(tar), tests::zstd(tar)}) {
        EXPECT_EQ(read(packed, "d/a"), "text");
        EXPECT_EQ(read(packed, "d/b"), "other");
        EXPECT_NE(read(packed, "")
                      .find("the tar archive holds 2 files; --member NAME takes one of "
                            "them: \"d/a\" (4 bytes), \"d/b\" (5 bytes)"),
                  std::string::npos)
            << read(packed, "");
        EXPECT_NE(read(packed, "d/l").find("no member \"d/l\"; it holds \"d/a\""),
                  std::string::npos);
    }
}

TEST(Tar, HoldsOnlySoMuchOfAHeader) {
    const auto error = [](const std::string& tar) {
        EXPECT_FALSE(read_all(tar));
        const auto read = read_all(tests::xz(tar));
        return read ? "" : read.error().message;
    };
    const auto block = [](std::string bytes) {
        bytes.resize((bytes.size() + 511) / 512 * 512);
        return bytes;
    };
    // A map of holes that is as long as its file.
    const std::string records = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n";
    std::string map = "4000000\n";
    while (map.size() < 8'000'000) map += "0\n1\n";
    const std::string sparse = tests::tar_header("x", records.size(), 'x') + block(records) +
                               tests::tar_header("a.txt", map.size(), '0') + block(map);
    EXPECT_NE(error(sparse).find("the header of a file in the tar archive takes more than 1 MiB"),
              std::string::npos)
        << error(sparse);
    const std::string name(3'000'000, 'n');
    EXPECT_NE(error(tests::tar_header("x", name.size(), 'L') + block(name)).find("too large"),
              std::string::npos);
    std::string headers;
    for (int i = 0; i < 100; ++i) headers += tests::tar_header("x", 3, 'L') + block("abc");
    EXPECT_NE(error(headers).find("Too many special headers"), std::string::npos) << error(headers);
}

TEST(Tar, RefusesASparseFile) {
    const std::string records = "30 GNU.sparse.size=9000000000\n27 GNU.sparse.map=4000,512\n";
    std::string padded = records;
    padded.resize(512);
    const auto read = read_all(tests::tar_header("x", records.size(), 'x') + padded +
                               tests::tar_header("a.txt", 512, '0') + std::string(512, 'a') +
                               std::string(1024, '\0'));
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("\"a.txt\" is a sparse file; unpack it first"),
              std::string::npos)
        << read.error().message;
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

TEST(Zip, StopsOnAPipeThatStalls) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    tests::write_file("/proc/self/fd/" + std::to_string(ends[1]),
                      tests::zip_archive({{"a.txt", long_text()}}).substr(0, 1000));
    std::atomic<bool> stop{false};
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        stop = true;
    });
    const auto input = Input::open("/proc/self/fd/" + std::to_string(ends[0]), stop);
    ASSERT_FALSE(input);
    EXPECT_EQ(input.error().code, ErrorCode::interrupted);
    later.join();
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(Input, ReadsNothingBehindTheEndThatItHasSeen) {
    const tests::TempDir dir;
    tests::write_file(dir / "in", "a 1 2\n");
    auto input = Input::open(dir / "in", kGoOn);
    ASSERT_TRUE(input);
    ASSERT_EQ(*input->peek(100), "a 1 2\n");
    std::ofstream(dir / "in", std::ios::app) << "b 1 2\n";
    std::string buffer(100, '\0');
    EXPECT_EQ(*input->read(buffer), 6U);
    EXPECT_EQ(*input->read(buffer), 0U);
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
