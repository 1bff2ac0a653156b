// TextLines, InputFile and ListBuilder: how every program reads a file of words.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/format/list_file.hpp"
#include "common/input_file.hpp"
#include "common/text_lines.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved {
namespace {

using namespace std::string_literals;
using tests::TempDir;
using Lines = std::vector<std::string>;

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

/// Reads `text`, which comes in pieces of `piece` bytes, into `lines`. Returns the fault.
std::string read_in_pieces(std::string_view text, std::size_t piece, Lines& lines) {
    lines.clear();
    TextLines reader("f", [&, piece](std::span<char> buffer) {
        const std::size_t count = text.copy(buffer.data(), std::min(piece, buffer.size()));
        text.remove_prefix(count);
        return Result<std::size_t>(count);
    });
    for (;;) {
        const auto line = reader.next();
        if (!line) return line.error().message;
        if (!*line) return {};
        lines.emplace_back(**line);
        EXPECT_EQ(reader.number(), lines.size());
    }
}

TEST(TextLines, AreTheSameInAnyPieces) {
    const std::string longest(kMaxTextLineBytes, 'x');
    for (const std::size_t piece : {1U, 2U, 3U, 7U, 4096U, 1U << 20}) {
        Lines lines;
        EXPECT_EQ(read_in_pieces("a\n\nb c\r\n\r\nlast", piece, lines), "");
        EXPECT_EQ(lines, (Lines{"a", "", "b c", "", "last"})) << piece;
        EXPECT_EQ(read_in_pieces("\xEF\xBB\xBF"
                                 "a\n\xEF\xBB\xBF"
                                 "b\n",
                                 piece, lines),
                  "");
        EXPECT_EQ(lines, (Lines{"a",
                                "\xEF\xBB\xBF"
                                "b"}))
            << piece;
        EXPECT_EQ(read_in_pieces("\xEF\xBB\xBF", piece, lines), "");
        EXPECT_EQ(lines, Lines());
        EXPECT_EQ(read_in_pieces("", piece, lines), "");
        EXPECT_EQ(lines, Lines());
        if (piece < 7) continue;
        EXPECT_EQ(read_in_pieces(longest + "\r\n" + longest, piece, lines), "");
        EXPECT_EQ(lines, (Lines{longest, longest}));
    }
}

TEST(TextLines, NameWhatIsNoText) {
    for (const std::size_t piece : {1U, 4096U}) {
        Lines lines;
        for (const std::string& text : {"\xFF\xFEk\0\n\0"s, "\xFE\xFF\0k\0\n"s, "\xFF\xFE"s}) {
            EXPECT_EQ(read_in_pieces(text, piece, lines),
                      "f: is UTF-16 text, or UTF-32; convert it: iconv -f UTF-16 -t UTF-8");
        }
        EXPECT_EQ(read_in_pieces("a\nk\0\n\0"s, piece, lines),
                  "f: line 2: holds a NUL byte, as no text does; if it is UTF-16, convert it: "
                  "iconv -f UTF-16LE -t UTF-8");
        EXPECT_EQ(lines, (Lines{"a"}));
    }
    Lines lines;
    EXPECT_EQ(read_in_pieces("a\n" + std::string(10'000'000, 'x'), 4096, lines),
              "f: line 2: is longer than 64 KiB, the limit of a line; is this the file?");
    EXPECT_EQ(lines, (Lines{"a"}));
}

TEST(TextLines, TellOfAHeading) {
    for (const std::string& text : {"word\n"s, "\xEF\xBB\xBFWords\r\nking\n"s}) {
        TextLines lines("f", text);
        const auto line = lines.next();
        ASSERT_TRUE(line && *line);
        ASSERT_TRUE(lines.heading_note(**line)) << **line;
        EXPECT_TRUE(lines.heading_note(**line)->starts_with("f: line 1: \""));
    }
    TextLines lines("f", "king\nword\n");
    while (const auto line = *lines.next()) EXPECT_FALSE(lines.heading_note(*line)) << *line;
}

/// All of a file, or the fault.
std::string text_of(const std::string& path) {
    auto file = InputFile::open(path, NoWriter::refuse);
    if (!file) return file.error().message;
    auto text = file->read_all(100);
    return text ? *text : text.error().message;
}

TEST(InputFile, ReadsFilesPipesAndFifosThatHaveAWriter) {
    const TempDir dir;
    write_file(dir / "file", "abc");
    EXPECT_EQ(text_of(dir / "file"), "abc");
    EXPECT_EQ(text_of("/dev/null"), "");
    const std::string long_file = dir / "long";
    write_file(long_file, std::string(101, 'x'));
    EXPECT_EQ(text_of(long_file), long_file + ": more than 100 bytes");
    EXPECT_EQ(text_of(dir.path()), dir.path() + ": is a directory, not a file");
    const std::string fifo = dir / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    // The writer comes later than the reader, and is silent for a while.
    std::thread late([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        std::ofstream out(fifo);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        out << "from a fifo";
    });
    EXPECT_EQ(text_of(fifo), "from a fifo");
    late.join();
    // A writer that writes nothing.
    std::thread silent([&] {
        const UniqueFd out(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
        std::this_thread::sleep_for(InputFile::kMaxWriterWait + std::chrono::milliseconds(400));
    });
    EXPECT_EQ(text_of(fifo), "");
    silent.join();
    // Pipes by the names that a shell gives them; in the second, the writer has been and gone.
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    ASSERT_EQ(::write(write_end.get(), "piped", 5), 5);
    write_end.reset();
    EXPECT_EQ(text_of(fmt::format("/dev/fd/{}", read_end.get())), "piped");
    EXPECT_EQ(text_of(fmt::format("/dev/fd/{}", read_end.get())), "");
}

TEST(InputFile, DoesNotWaitInSilenceForAWriter) {
    const TempDir dir;
    const std::string fifo = dir / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(text_of(fifo),
              fifo +
                  ": is a FIFO that no program writes to; start its writer first, or give a "
                  "file");
    std::atomic<bool> stop = false;
    auto file = InputFile::open(fifo, NoWriter::wait, &stop);
    ASSERT_TRUE(file) << file.error().message;
    testing::internal::CaptureStderr();
    std::thread stopper([&] {
        std::this_thread::sleep_for(InputFile::kMaxWriterWait + std::chrono::milliseconds(600));
        stop = true;
    });
    const auto text = file->read_all(10);
    stopper.join();
    const std::string told = testing::internal::GetCapturedStderr();
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, ErrorCode::interrupted);
    EXPECT_EQ(told, "gloved: " + fifo + ": waiting for a program that writes to this FIFO\n");
}

TEST(InputFile, NoticesThatAFileIsWrittenTo) {
    const TempDir dir;
    write_file(dir / "file", "abc");
    const auto file = InputFile::open(dir / "file", NoWriter::refuse);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->check_unchanged());
    std::ofstream(dir / "file", std::ios::app) << "d";
    EXPECT_FALSE(file->check_unchanged());
}

TEST(ListBuilder, CountsDistinctWordsInBoundedMemory) {
    const TempDir dir;
    const format::Model model = tests::make_model(dir / "m", tests::random_entries(50, 3, 1));
    format::DistinctWords words;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 100'000; ++i)
            ASSERT_EQ(words.add(fmt::format("x{}", i)), round == 0) << i;
    }
    EXPECT_EQ(words.count(), 100'000U);
    EXPECT_FALSE(words.add("x1"));
    EXPECT_TRUE(words.add("x"));
    EXPECT_TRUE(words.add(""));
    EXPECT_EQ(words.text().substr(0, 9), "x0\nx1\nx2\n");
    EXPECT_TRUE(words.take_text().ends_with("x99999\nx\n\n"));
    format::ListBuilder builder(model);
    for (int i = 0; i < 1'000'000; ++i) builder.add("w7");
    for (int i = 0; i < 1'000'000; ++i) builder.add("nothing");
    const format::ListFile list = builder.finish();
    EXPECT_EQ(list.rows.size(), 1U);
    EXPECT_EQ(list.missing, 1U);
    EXPECT_EQ(list.others.text, "nothing\n");
    EXPECT_FALSE(list.is_empty);
    EXPECT_TRUE(format::ListBuilder(model).finish().is_empty);
}

TEST(ListBuilder, RefusesWhatIsNoListOfWords) {
    const TempDir dir;
    const format::Model model = tests::make_model(dir / "m", tests::random_entries(50, 3, 1));
    std::uint64_t next = 0;
    TextLines lines("f", [&](std::span<char> buffer) {
        std::size_t used = 0;
        while (used + 20 < buffer.size())
            used = static_cast<std::size_t>(fmt::format_to(buffer.data() + used, "{}\n", next++) -
                                            buffer.data());
        return Result<std::size_t>(used);
    });
    format::ListBuilder builder(model);
    const Status read = format::read_list(lines, {&builder, 1});
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("more than 4194304 words or 64 MiB of them so far are"),
              std::string::npos)
        << read.error().message;
    EXPECT_LE(next, format::kMaxOtherWords + 10'000);
    // What is reckoned for a file of any size is what its unknown words take at most.
    EXPECT_LE(format::list_memory_bytes(std::uint64_t{1} << 40, 50), std::uint64_t{256} << 20);
    EXPECT_GE(format::list_memory_bytes(1 << 20, 50), 8U * (1 << 19));
}

}  // namespace
}  // namespace gloved
