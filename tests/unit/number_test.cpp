// parse_number against strtof and strtod: other implementations, of which correct rounding is
// known.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/number.hpp"

namespace gloved {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

float reference(const std::string& text, float) { return std::strtof(text.c_str(), nullptr); }
double reference(const std::string& text, double) { return std::strtod(text.c_str(), nullptr); }

template <class T>
[[nodiscard]] testing::AssertionResult agrees_as(const std::string& text) {
    const auto number = parse_number<T>(text.data(), text.data() + text.size());
    const T expected = reference(text, T());
    if (number.end != text.data() + text.size())
        return testing::AssertionFailure() << text << ": not read to its end";
    if (std::isinf(expected)) {
        if (number.fault == NumberFault::overflow) return testing::AssertionSuccess();
        return testing::AssertionFailure() << text << ": overflow not noticed";
    }
    // More bytes behind a number let another path take it.
    const std::string line = text + " 9.876543219 5";
    const auto in_line = parse_number<T>(line.data(), line.data() + line.size());
    if (in_line.end != line.data() + text.size() || bits(in_line.value) != bits(number.value))
        return testing::AssertionFailure() << text << ": read differently in a line";
    if (number.fault == NumberFault::none && bits(number.value) == bits(expected))
        return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << fmt::format("{}: {:x} instead of {:x}", text, bits(number.value), bits(expected));
}

/// One failure per test is enough to look at: millions of cases come by here.
[[nodiscard]] testing::AssertionResult agrees(const std::string& text) {
    const auto narrow = agrees_as<float>(text);
    return narrow ? agrees_as<double>(text) : narrow;
}

TEST(Number, RoundsShortDecimalsCorrectly) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 3'000'000; ++i) {
        const int digits = 1 + static_cast<int>(random() % 9);
        const auto fraction = random() % static_cast<std::uint64_t>(std::pow(10, digits));
        const auto text =
            fmt::format("{}{}.{:0{}}", random() % 2 ? "-" : "", random() % 4, fraction, digits);
        ASSERT_TRUE(agrees(text));
    }
}

TEST(Number, RoundsLongDecimalsAndExponentsCorrectly) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 1'000'000; ++i) {
        std::string text = random() % 2 ? "-" : "";
        for (auto n = random() % 22; n > 0; --n) text += static_cast<char>('0' + random() % 10);
        text += '.';
        for (auto n = 1 + random() % 22; n > 0; --n) text += static_cast<char>('0' + random() % 10);
        if (random() % 2) text += fmt::format("e{}", static_cast<int>(random() % 120) - 70);
        ASSERT_TRUE(agrees(text));
    }
}

TEST(Number, RoundsWhatAnyFloatPrintsBackToIt) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 1'000'000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (!std::isfinite(value)) continue;
        const auto text = fmt::format("{}", value);  // shortest that reads back
        ASSERT_TRUE(agrees(text));
        const auto number = parse_number<float>(text.data(), text.data() + text.size());
        ASSERT_EQ(bits(number.value), bits(value)) << text;
    }
}

// The cases for which the fast path must stand back: exact midpoints between neighbouring floats,
// and the decimals just beside them, which a float64 cannot tell from the midpoint.
TEST(Number, DecidesMidpointsAndTheirNeighbours) {
    std::mt19937_64 random(4);
    for (int i = 0; i < 300'000; ++i) {
        const auto low = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7F7FFFFF));
        const double midpoint =
            (static_cast<double>(low) + static_cast<double>(std::nextafter(low, INFINITY))) / 2;
        const auto exact = fmt::format("{:.200f}", midpoint);
        ASSERT_TRUE(agrees(exact));
        ASSERT_TRUE(agrees(exact + "0000000001"));
        ASSERT_TRUE(agrees(fmt::format("{:.17g}", midpoint)));
        ASSERT_TRUE(agrees(fmt::format("{:.15g}", midpoint)));
    }
    // Seen on the fast path: 17 significant digits or fewer whose float64 is a midpoint.
    for (std::uint32_t i = 0; i < 1'000'000; ++i) {
        ASSERT_TRUE(agrees(fmt::format("{}.5", 16777216 + i % 33554432)));  // between integers
                                                                            // beyond 2^24
        ASSERT_TRUE(agrees(fmt::format("{}.5000000001", 8388608 + i % 8388608)));
        ASSERT_TRUE(agrees(fmt::format("{}.4999999999", 8388608 + i % 8388608)));
    }
}

TEST(Number, KeepsDenormalsAndSignedZeros) {
    for (const char* text :
         {"0", "-0", "0.0", "-0.000", "0e99999999999999999999", "1e-45", "-1e-45", "7e-46",
          "7.1e-46", "1e-46", "-1e-400", "1e-999999999999999999999", "1.17549435e-38",
          "1.17549428e-38", "1.1754942e-38", "5.877e-39",
          "0.00000000000000000000000000000000000000000001"}) {
        EXPECT_TRUE(agrees(text));
    }
}

TEST(Number, NoticesOverflow) {
    for (const char* text :
         {"3.4028234663852886e38", "3.4028235e38", "3.40282356e38", "3.4028235677973366e38",
          "3.402824e38", "-3.5e38", "1e39", "1e400", "-1e999999999999999999999",
          "340282350000000000000000000000000000000", "340282360000000000000000000000000000000"}) {
        EXPECT_TRUE(agrees(text));
    }
    const std::string zeros_first = std::string(500, '0') + "1e-60";
    EXPECT_TRUE(agrees(zeros_first));
    EXPECT_TRUE(agrees("0." + std::string(500, '0') + "1e501"));
    EXPECT_TRUE(agrees("1" + std::string(500, '0') + "e-500"));
    EXPECT_TRUE(agrees("1" + std::string(500, '0') + "e-400"));
}

TEST(Number, HasOneGrammar) {
    for (const std::string text : {"1", "+1", "-1", "1.", ".5", "-.5", "+5.", "1e5", "1E5", "1e+5",
                                   "1.e-5", ".5e1", "007"}) {
        const auto number = parse_number<float>(text.data(), text.data() + text.size());
        EXPECT_EQ(number.fault, NumberFault::none) << text;
        EXPECT_EQ(number.end, text.data() + text.size()) << text;
        EXPECT_EQ(bits(number.value), bits(std::strtof(text.c_str(), nullptr))) << text;
    }
    for (const std::string text : {"", "+", "-", ".", "-.", "e5", ".e5", "nan", "NaN", "inf",
                                   "-inf", "infinity", " 1", "--1", "+-1", "x"}) {
        EXPECT_EQ(parse_number<float>(text.data(), text.data() + text.size()).fault,
                  NumberFault::malformed)
            << text;
    }
    // A prefix is a number, the whole is not.
    for (const auto& [text, length] : {std::pair<std::string, int>{"0x10", 1},
                                       {"1e", 1},
                                       {"1e+", 1},
                                       {"1.5.5", 3},
                                       {"1,5", 1},
                                       {"0.1f", 3},
                                       {"1 ", 1},
                                       {"2\r", 1}}) {
        EXPECT_EQ(parse_number<float>(text.data(), text.data() + text.size()).end,
                  text.data() + length)
            << text;
    }
}

TEST(Number, RoundsWhatAnyDoublePrintsBackToIt) {
    std::mt19937_64 random(6);
    for (int i = 0; i < 300'000; ++i) {
        const auto value = std::bit_cast<double>(random());
        if (!std::isfinite(value)) continue;
        const auto text = fmt::format("{}", value);
        const auto number = parse_number<double>(text.data(), text.data() + text.size());
        ASSERT_EQ(number.fault, NumberFault::none) << text;
        ASSERT_EQ(bits(number.value), bits(value)) << text;
    }
    for (const char* text : {"1e308", "1.7976931348623157e308", "1.7976931348623159e308", "-1e309",
                             "4.9e-324", "2.4e-324", "1e-400"}) {
        EXPECT_TRUE(agrees(text));
    }
}

TEST(Number, ReadsIntegersToTheirLimits) {
    const auto read = [](std::string_view text) {
        return parse_number<std::int32_t>(text.data(), text.data() + text.size());
    };
    for (const std::int32_t value :
         {0, 1, -1, 9, 10, -99, 123456789, 2147483647, -2147483647 - 1}) {
        const auto text = fmt::format("{}", value);
        const auto number = read(text);
        EXPECT_EQ(number.fault, NumberFault::none) << text;
        EXPECT_EQ(number.value, value);
        EXPECT_EQ(number.end, text.data() + text.size()) << text;
    }
    EXPECT_EQ(read("+0000000000000000000000000000000042").value, 42);
    for (const char* text :
         {"2147483648", "-2147483649", "99999999999999999999999999", "-18446744073709551616"}) {
        EXPECT_EQ(read(text).fault, NumberFault::overflow) << text;
    }
    for (const char* text : {"", "+", "-", "x", " 1", "--1", "+-1", ".5"}) {
        EXPECT_EQ(read(text).fault, NumberFault::malformed) << text;
    }
    // Decimals and exponents are left standing.
    const std::string decimal = "12.5e3";
    EXPECT_EQ(parse_number<std::int32_t>(decimal.data(), decimal.data() + decimal.size()).end,
              decimal.data() + 2);
}

TEST(Number, NeverReadsBeyondItsEnd) {
    for (const std::string text : {"12345.678e12", "-0.123456789123", "0.12345678 1234"}) {
        for (std::size_t length = 0; length <= text.size(); ++length) {
            // A heap block of exactly that size: the address sanitizer sees any byte read behind
            // it.
            const std::vector<char> exact(text.begin(),
                                          text.begin() + static_cast<std::ptrdiff_t>(length));
            const auto number = parse_number<float>(exact.data(), exact.data() + exact.size());
            EXPECT_LE(number.end, exact.data() + exact.size());
        }
    }
}

}  // namespace
}  // namespace gloved
