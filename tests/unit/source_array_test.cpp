// Arrays with words: what numbers become, and how rows and words come together.
#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/source/array_layout.hpp"
#include "tools/source/input.hpp"
#include "tools/source/source.hpp"
#include "tools/source/token_list.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/source_rows.hpp"

namespace gloved::source {
namespace {

const std::atomic<bool> kGoOn{false};

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::string swapped(std::string bytes, std::size_t width) {
    for (std::size_t i = 0; i < bytes.size(); i += width)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                     bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
    return bytes;
}

std::vector<float> converted(NumberType type, const std::string& bytes, bool big_endian = false) {
    ArrayLayout array;
    array.type = type;
    array.big_endian = big_endian;
    array.dim = bytes.size() / array.number_bytes();
    std::vector<float> values(array.dim);
    // Not aligned, as in a file.
    const std::string moved = "x" + bytes;
    convert_numbers(moved.data() + 1, array, values.data());
    return values;
}

/// By the definition of IEEE 754, binary16.
float float16_by_the_book(unsigned bits) {
    const float sign = bits >> 15 == 0 ? 1.0F : -1.0F;
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const auto mantissa = static_cast<float>(bits & 1023);
    if (exponent == 31)
        return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
    return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                         : sign * std::ldexp(mantissa + 1024, exponent - 25);
}

TEST(Array, ConvertsEveryFloat16AndBfloat16) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    for (const bool big_endian : {false, true}) {
        const std::string bytes = big_endian ? swapped(bytes_of(all), 2) : bytes_of(all);
        const auto halves = converted(NumberType::float16, bytes, big_endian);
        const auto brains = converted(NumberType::bfloat16, bytes, big_endian);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const float wanted = float16_by_the_book(static_cast<unsigned>(i));
            if (std::isnan(wanted)) {
                EXPECT_TRUE(std::isnan(halves[i])) << i;
            } else {
                EXPECT_EQ(std::bit_cast<std::uint32_t>(halves[i]),
                          std::bit_cast<std::uint32_t>(wanted))
                    << i;
            }
            EXPECT_EQ(std::bit_cast<std::uint32_t>(brains[i]), i << 16);
        }
    }
}

TEST(Array, RoundsFloat64ToTheNearestFloat32) {
    const std::vector<double> numbers = {0.1,   -0.0,     1 + 0x1p-24, 1 + 0x3p-24,
                                         1e-46, 0x1p-149, 1e300,       3.4028235e38};
    const auto values = converted(NumberType::float64, bytes_of(numbers));
    EXPECT_EQ(values, (std::vector<float>{0.1F, -0.0F, 1, 1 + 0x1p-22F, 0, 0x1p-149F,
                                          std::numeric_limits<float>::infinity(), 3.4028235e38F}));
    EXPECT_TRUE(std::signbit(values[1]));
    EXPECT_EQ(converted(NumberType::float64, swapped(bytes_of(numbers), 8), true), values);
    const std::vector<float> plain = {1, -2.5F, 1e-40F};
    EXPECT_EQ(converted(NumberType::float32, bytes_of(plain)), plain);
    EXPECT_EQ(converted(NumberType::float32, swapped(bytes_of(plain), 4), true), plain);
}

Result<Rows> read(const tests::TempDir& dir, const std::string& array, SourceOptions options) {
    tests::write_file(dir / "in", array);
    if (options.words.empty()) options.words = dir / "words";
    return read_rows(dir / "in", options);
}

/// 100 rows of 3 numbers, and their words.
struct Sample {
    std::vector<std::string> keys;
    std::vector<float> values;
    std::string words;
};

Sample sample() {
    Sample made;
    for (int row = 0; row < 100; ++row) {
        made.keys.push_back(fmt::format("w{}", row * row));
        made.words += made.keys.back() + "\n";
        for (int i = 0; i < 3; ++i) made.values.push_back(static_cast<float>(3 * row + i) / 8);
    }
    return made;
}

TEST(Array, IsTheSameInAnyPiecesAndByAnyThreads) {
    const Sample made = sample();
    const std::size_t shape[] = {100, 3};
    const std::string c_order = npy::make_header("<f4", shape) + bytes_of(made.values);
    std::vector<float> columns;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t row = 0; row < 100; ++row) columns.push_back(made.values[3 * row + i]);
    }
    std::string fortran = npy::make_header("<f4", shape) + bytes_of(columns);
    fortran.replace(fortran.find("False"), 5, "True ");
    const tests::TempDir dir;
    tests::write_file(dir / "words", made.words);
    for (const std::string& array : {c_order, fortran}) {
        for (const std::size_t chunk_bytes : {1U, 13U, 100U, 1000U, 100000U}) {
            for (const std::size_t threads : {0U, 3U}) {
                SourceOptions options;
                options.chunk_bytes = chunk_bytes;
                options.threads = threads;
                const auto rows = read(dir, array, options);
                ASSERT_TRUE(rows) << rows.error().message;
                EXPECT_EQ(rows->keys, made.keys);
                EXPECT_EQ(rows->values, made.values);
                EXPECT_EQ(rows->summary.lines, 100U);
                EXPECT_EQ(rows->summary.text_bytes, array.size());
                EXPECT_EQ(rows->summary.words, dir / "words");
                EXPECT_EQ(rows->summary.layout.dtype, "<f4");
            }
        }
    }
}

TEST(Array, TellsTheFirstFaultWhateverThePieces) {
    Sample made = sample();
    made.values[3 * 40 + 1] = std::nanf("");
    const std::size_t shape[] = {100, 3};
    std::string array = npy::make_header("<f4", shape) + bytes_of(made.values);
    const tests::TempDir dir;
    const auto expect = [&](const std::string& words, const std::string& content,
                            const std::string& says) {
        tests::write_file(dir / "words", words);
        for (const std::size_t chunk_bytes : {1U, 13U, 100U, 1000U, 100000U}) {
            SourceOptions options;
            options.chunk_bytes = chunk_bytes;
            const auto rows = read(dir, content, options);
            ASSERT_FALSE(rows);
            EXPECT_NE(rows.error().message.find(says), std::string::npos) << rows.error().message;
        }
    };
    const std::string row_41 =
        "row 41 (byte 608): number 2 of 3 is nan, which is not finite (the "
        "word is \"w1600\")";
    expect(made.words, array, row_41);
    expect(made.words, array.substr(0, 128 + 41 * 12 + 5), row_41);
    expect(made.words.substr(0, made.words.find("w1681")), array, row_41);
    expect(made.words.substr(0, made.words.find("w1600")), array, "words: holds 40 word(s)");
    expect(made.words, array.substr(0, 128 + 40 * 12 + 5), "the file ends at byte 613, 715 bytes");
}

TEST(Array, TakesTheTokenizerBesideItOnlyWhereNothingElseIsMeant) {
    const tests::TempDir dir;
    const std::string one = R"({"e":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
    const std::string two = R"({"e":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                            R"("w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
    const auto file = [](const std::string& header, std::size_t numbers) {
        return bytes_of(std::vector<std::uint64_t>{header.size()}) + header +
               bytes_of(std::vector<float>(numbers, 0.5F));
    };
    const auto read_beside = [&](const std::string& content, const std::string& tensor = {}) {
        tests::write_file(dir / "in", content);
        auto input = Input::open(dir / "in", kGoOn);
        SourceOptions options;
        options.tensor = tensor;
        std::string said;
        SourceSink sink;
        sink.say = [&](const std::string& message) { said += message + "\n"; };
        const auto summary = read_source(*input, options, sink);
        return summary ? said : summary.error().message;
    };
    const auto contains = [](const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    };
    tests::write_file(dir / "tokenizer.json", R"({"model":{"vocab":{"a":0,"b":1}}})");
    EXPECT_TRUE(contains(read_beside(file(one, 2)), "words are taken from tokenizer.json beside"));
    EXPECT_TRUE(contains(read_beside(file(two, 3), "e"), "give --words FILE"));
    const std::size_t shape[] = {2, 1};
    const std::string npy = npy::make_header("<f4", shape) + bytes_of(std::vector<float>{1, 2});
    EXPECT_TRUE(contains(read_beside(npy), "give --words FILE"));
    tests::write_file(dir / "in.words", "a\nb\n");
    for (const std::string& content : {npy, file(one, 2)})
        EXPECT_TRUE(contains(read_beside(content), "give --words \"" + (dir / "in.words") + "\""))
            << read_beside(content);
}

TEST(TokenList, OfATokenizerHasEveryIdOnce) {
    const tests::TempDir dir;
    std::string vocabulary;
    for (int id = 999; id >= 0; --id)
        vocabulary += fmt::format("{}\"t{}\": {}", vocabulary.empty() ? "" : ", ", id, id);
    tests::write_file(dir / "tokenizer.json",
                      "{\n \"version\": \"1.0\", \"added_tokens\": [{\"id\": 3, \"content\": "
                      "\"t3\", \"special\": true}],\n \"model\": {\"vocab\": {" +
                          vocabulary + "}, \"merges\": [[\"a\", \"b\"]]}}\n");
    auto list = TokenList::open(dir / "tokenizer.json", 1000, kGoOn);
    ASSERT_TRUE(list) << list.error().message;
    for (int id = 0; id < 1000; ++id) EXPECT_EQ(*(*list)->next(), fmt::format("t{}", id));
    EXPECT_TRUE((*list)->check_end());
    EXPECT_EQ((*list)->note(), "");
}

}  // namespace
}  // namespace gloved::source
