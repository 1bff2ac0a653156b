// Random sources of word2vec's binary format whose words may hold blanks: each is read as it was
// written, or refused with the number of a word that holds one. GLOVED_TEST_BINARIES sets how many.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/files.hpp"
#include "common/result.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/word2vec.hpp"
#include "tests/unit/source_rows.hpp"
#include "tools/source/oddity.hpp"
#include "tools/source/source.hpp"

namespace gloved::source {
namespace {

/// A source as it was written.
struct Written {
    std::size_t dim = 0;
    std::vector<std::string> words;
    std::vector<float> values;
    std::vector<std::size_t> with_blanks;  // numbers of the words that hold one, from 1
    std::string bytes;
};

class Maker {
  public:
    explicit Maker(std::uint64_t seed) : random_(seed) {}

    Written make() {
        Written made;
        // Many narrow ones, in which little tells a wrong reading.
        made.dim = below(3) == 0 ? 1 + below(12) : 1 + below(300);
        const std::size_t count = 1 + below(60);
        for (std::size_t i = 0; i < count; ++i) made.words.push_back(word());
        for (std::size_t blanks = below(4); blanks > 0; --blanks) put_blank(made);
        std::ranges::sort(made.with_blanks);
        const bool newlines = below(2) == 0;
        const auto kind = static_cast<Kind>(below(kKinds));
        made.bytes = fmt::format("{} {}\n", count, made.dim);
        for (std::size_t i = 0; i < count; ++i) {
            const std::vector<float> numbers = vector(made.dim, kind);
            made.values.insert(made.values.end(), numbers.begin(), numbers.end());
            made.bytes += tests::record(made.words[i], numbers);
            if (newlines) made.bytes += '\n';
        }
        return made;
    }
    std::size_t below(std::size_t limit) { return random_() % limit; }

  private:
    std::string word() {
        static constexpr std::array<std::string_view, 8> kOther = {"ä", "ß", "ж", "日",
                                                                   "😀", "é", "-", "'"};
        // A word in five holds bytes that are no text: of Latin-1, C1, CJK encodings or controls.
        static constexpr std::array<std::string_view, 8> kOdd = {
            "\xE9", "\xFC", "\xC2\x92", "\x92", "\xB0\xA1", "\x81\x40", "\x01", "\x1B"};
        const bool odd = below(5) == 0;
        const bool lower = below(3) != 0;
        std::string text;
        for (std::size_t left = 1 + below(12); left > 0; --left) {
            if (odd && below(2) == 0) {
                text += kOdd[below(kOdd.size())];
            } else if (lower) {
                text += static_cast<char>('a' + below(26));
            } else if (below(3) == 0) {
                text += kOther[below(kOther.size())];
            } else {
                text += static_cast<char>('!' + below(94));
            }
        }
        return text;
    }
    /// Between characters, at the word's beginning or end, or beside another blank.
    void put_blank(Written& made) {
        const std::size_t i = below(made.words.size());
        std::string& text = made.words[i];
        std::size_t at = below(text.size() + 1);
        while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
        // Digits are numbers of usual sizes, too.
        if (below(8) == 0)
            text.insert(at, std::string(1 + below(60), static_cast<char>('0' + below(10))));
        text.insert(at, " ");
        made.with_blanks.push_back(i + 1);
    }
    /// Kinds of numbers, of all words of a source.
    enum Kind {
        usual,
        larger,
        of_16_bits,  // half of the bytes are zero
        of_halves,   // float16
        with_rows_of_zeros,
        mostly_zeros,
        counts,  // whole numbers
        huge,
        tiny,
        of_many_sizes,
        with_a_tiny_one,
        kKinds
    };
    std::vector<float> vector(std::size_t dim, Kind kind) {
        std::normal_distribution<float> normal(0, 0.3F);
        std::vector<float> numbers(dim);
        if (kind == with_rows_of_zeros && below(4) == 0) return numbers;
        for (float& number : numbers) {
            number = normal(random_);
            const auto bits = std::bit_cast<std::uint32_t>(number);
            if (kind == larger) number *= 100;
            if (kind == of_16_bits) number = std::bit_cast<float>(bits & 0xFFFF'0000U);
            if (kind == of_halves) number = std::bit_cast<float>(bits & 0xFFFF'E000U);
            if (kind == mostly_zeros && below(10) != 0) number = 0;
            if (kind == counts) number = static_cast<float>(below(1000));
            if (kind == huge) number *= 1e8F;
            if (kind == tiny) number *= 1e-24F;
            if (kind == of_many_sizes) number *= std::pow(10.0F, -static_cast<float>(below(13)));
        }
        if (kind == with_a_tiny_one && below(3) == 0) numbers[below(dim)] = 1e-13F;
        // The last numbers of a vector may be zeros, as those of padding are.
        if (below(20) == 0)
            std::fill(numbers.begin() + static_cast<std::ptrdiff_t>(below(dim)), numbers.end(),
                      0.0F);
        return numbers;
    }

    std::mt19937_64 random_;
};

/// Reads the bytes from a pipe, into which they come in pieces.
Result<Rows> read_piped(const std::string& bytes, const SourceOptions& options) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    const UniqueFd read_end(ends[0]);
    std::thread writer([&, write_end = UniqueFd(ends[1])] {
        for (std::size_t at = 0; at < bytes.size();) {
            const ssize_t count = ::write(write_end.get(), bytes.data() + at,
                                          std::min<std::size_t>(bytes.size() - at, 7001));
            if (count <= 0) std::abort();
            at += static_cast<std::size_t>(count);
        }
    });
    auto rows = read_rows(fmt::format("/proc/self/fd/{}", read_end.get()), options);
    // What a refused source has left would block the writer.
    std::array<char, 4096> rest{};
    if (!rows) {
        std::thread drain([&] {
            while (::read(read_end.get(), rest.data(), rest.size()) > 0) {
            }
        });
        writer.join();
        drain.join();
        return rows;
    }
    writer.join();
    return rows;
}

std::size_t number_of_binaries() {
    const char* const number = std::getenv("GLOVED_TEST_BINARIES");
    return number == nullptr ? 300 : std::strtoull(number, nullptr, 10);
}

/// Whether a message names a word that holds a blank, or one beside it. With few
/// numbers a word, any word may seem to hold one.
bool names_the_fault(const std::string& message, const Written& written) {
    std::smatch found;
    if (!std::regex_search(message, found, std::regex(R"(: word (\d+) \(byte \d+\): )")))
        return false;
    if (written.dim <= 4) return true;
    const long number = std::stol(found[1]);
    return std::ranges::any_of(written.with_blanks, [&](std::size_t with_blank) {
        return std::abs(static_cast<long>(with_blank) - number) <= 1;
    });
}

struct Counts {
    std::size_t right = 0;
    std::size_t right_with_blanks = 0;
    std::size_t refused = 0;
    std::size_t refused_sound = 0;
};

void check(const Written& written, const Result<Rows>& rows, Counts& counts) {
    if (!rows) {
        ++counts.refused;
        if (written.with_blanks.empty()) {
            ++counts.refused_sound;
            EXPECT_LT(written.dim, 8U) << rows.error().message;
        } else {
            EXPECT_TRUE(names_the_fault(rows.error().message, written)) << rows.error().message;
        }
        EXPECT_EQ(rows.error().message.find("--on-error"), std::string::npos);
        return;
    }
    ++counts.right;
    if (!written.with_blanks.empty()) ++counts.right_with_blanks;
    EXPECT_EQ(rows->keys, written.words) << "dim " << written.dim;
    EXPECT_EQ(rows->values, written.values) << "dim " << written.dim;
    auto distinct = written.with_blanks;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const OddWord& blanks = rows->summary.odd_words.of(Oddity::blanks);
    EXPECT_EQ(blanks.count, distinct.size());
    if (distinct.empty()) return;
    EXPECT_EQ(blanks.line + 1, distinct.front());
}

TEST(BlanksInBinaryWords, AreReadRightOrRefusedByName) {
    const tests::TempDir dir;
    Maker maker(7);
    Counts counts;
    const std::size_t binaries = number_of_binaries();
    for (std::size_t i = 0; i < binaries && !testing::Test::HasFailure(); ++i) {
        const Written written = maker.make();
        SourceOptions options;
        options.format = SourceFormat::word2vec_bin;
        options.on_error = i % 3 == 0 ? OnError::skip : OnError::stop;
        options.threads = i % 2;
        options.chunk_bytes = 1 + maker.below(i % 5 == 0 ? 100 : 20'000);
        options.head_bytes = written.bytes.find('\n') + 1 + maker.below(10'000);
        SCOPED_TRACE(i);
        tests::write_file(dir / "in", written.bytes);
        const auto rows = read_rows(dir / "in", options);
        check(written, rows, counts);
        const auto piped = read_piped(written.bytes, options);
        check(written, piped, counts);
        EXPECT_EQ(static_cast<bool>(rows), static_cast<bool>(piped));
    }
    fmt::print("{} right, {} of them with blanks in words; {} refused, {} of them without\n",
               counts.right, counts.right_with_blanks, counts.refused, counts.refused_sound);
    // Nearly all can be read, and with eight numbers a word all without blanks.
    EXPECT_GT(10 * counts.right, 9 * (counts.right + counts.refused));
    EXPECT_GT(counts.right_with_blanks, counts.right / 2);
}

}  // namespace
}  // namespace gloved::source
