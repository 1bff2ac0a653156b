// parse_number against strtof, bit for bit, on decimals chosen to be hard. GLOVED_NUMBER_CASES says
// how many (200,000); the release is tested with 20 million.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/expr/expression.hpp"
#include "common/number.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/source/input.hpp"

namespace gloved::source {
namespace {

using Random = std::mt19937_64;

constexpr std::uint32_t kMaxFloatBits = 0x7F7FFFFF;

/// Adds one unit of the last place, or takes one away, to the digits of a decimal «d.dddd»: carries
/// run through the point. Nothing is taken from a zero.
std::string nudged(std::string digits, bool up) {
    for (std::size_t i = digits.size(); i-- > 0;) {
        char& c = digits[i];
        if (c == '.') continue;
        if (up ? c != '9' : c != '0') {
            c = static_cast<char>(up ? c + 1 : c - 1);
            return digits;
        }
        c = up ? '0' : '9';
    }
    return up ? "1" + digits : "0";
}

std::string random_digits(Random& random, std::size_t count) {
    std::string digits;
    for (; count > 0; --count) digits += static_cast<char>('0' + random() % 10);
    return digits;
}

/// A positive float below the largest, every exponent and the denormals as likely as their share of
/// the bit patterns.
float random_float(Random& random) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(random() % kMaxFloatBits));
}

/// The point between `low` and the float above it: exact in float64, and in 2^-150 · integer.
double midpoint_above(float low) {
    return static_cast<double>(low) / 2 + static_cast<double>(std::nextafter(low, INFINITY)) / 2;
}

/// «d.ddde±x» as digits alone, somewhere behind zeros, or with the exponent spread otherwise: the
/// same value.
std::string respelled(Random& random, const std::string& mantissa, int exponent) {
    // Moves the point by `shift` places to the left and makes the exponent up for it.
    const int shift = static_cast<int>(random() % 60);
    std::string digits = mantissa;
    digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
    const std::string leading(random() % 4, '0');
    const std::string trailing(random() % 8 == 0 ? random() % 30 : 0, '0');
    if (shift == 0) return fmt::format("{}{}e{}", leading, mantissa, exponent);
    return fmt::format("{}0.{}{}{}e{}", leading,
                       std::string(static_cast<std::size_t>(shift - 1), '0'), digits, trailing,
                       exponent + shift);
}

struct Scientific {
    std::string mantissa;
    int exponent;
};
Scientific scientific(double value, std::size_t digits) {
    const std::string text = fmt::format("{:.{}e}", value, digits - 1);
    const std::size_t e = text.find('e');
    return {text.substr(0, e), std::atoi(text.c_str() + e + 1)};
}

std::string shortest(Random& random) { return fmt::format("{}", random_float(random)); }

std::string as_in_downloads(Random& random) {
    return fmt::format("{}.{}", random() % 8 == 0 ? random() % 10 : 0,
                       random_digits(random, 1 + random() % 7));
}

std::string one_to_forty_digits(Random& random) {
    const std::size_t digits = 1 + random() % 40;
    const std::size_t before = random() % (digits + 1);
    std::string text = random_digits(random, before) + "." + random_digits(random, digits - before);
    if (random() % 2 == 0) text += fmt::format("e{}", static_cast<int>(random() % 110) - 60);
    return text;
}

std::string midpoint(Random& random) {
    // 120 digits hold any of these midpoints exactly: 24 + 1 bits at an exponent down to −150 have
    // at most 113.
    const auto [mantissa, exponent] = scientific(midpoint_above(random_float(random)), 120);
    return respelled(random, mantissa, exponent);
}

/// A midpoint to some digits: cut there, and one up or one down in the last. From 17 digits on,
/// float64 cannot tell them.
std::string beside_a_midpoint(Random& random) {
    auto [mantissa, exponent] = scientific(midpoint_above(random_float(random)), 120);
    mantissa.resize(2 + 1 + random() % 118);
    const auto way = random() % 3;
    if (way != 0) mantissa = nudged(mantissa, way == 1);
    return respelled(random, mantissa, exponent);
}

/// Midpoints to 14 to 17 digits, without zeros before them and with a small exponent: what
/// parse_number's fast path takes, and what the float64 nearest to it often cannot tell from the
/// midpoint.
std::string rounded_midpoint(Random& random) {
    const auto low = static_cast<double>((1U << 23) + random() % (1U << 23));
    const double value = std::ldexp(low + 0.5, static_cast<int>(random() % 80) - 60);
    auto [mantissa, exponent] = scientific(value, 14 + random() % 4);
    const auto way = random() % 4;
    if (way > 1) mantissa = nudged(mantissa, way == 2);
    if (random() % 2 == 0) return fmt::format("{}e{}", mantissa, exponent);
    mantissa.erase(1, 1);
    return fmt::format("{}e{}", mantissa, exponent - static_cast<int>(mantissa.size()) + 1);
}

/// Midpoints of floats that have few digits themselves, so that the fast path meets them.
std::string short_midpoint(Random& random) {
    const auto integer = static_cast<std::uint32_t>(random() % (1U << 24));
    const int scale = static_cast<int>(random() % 30) - 5;
    const double low = std::ldexp(static_cast<double>(integer), -scale);
    const double half = std::ldexp(0.5, -scale);
    std::string text = fmt::format("{:.40f}", low + half);
    const std::size_t last = text.find_last_not_of('0');
    text.resize(last + 1);
    const auto way = random() % 4;
    if (way == 1) text += random_digits(random, 1 + random() % 8);
    if (way == 2) text = nudged(text, true);
    if (way == 3) text = nudged(text + "00", false);
    return text;
}

std::string denormal(Random& random) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x00800010));
    const double exact = random() % 2 == 0 ? static_cast<double>(value) : midpoint_above(value);
    auto [mantissa, exponent] = scientific(exact, 1 + random() % 40);
    if (random() % 2 == 0) mantissa = nudged(mantissa, random() % 2 == 0);
    return respelled(random, mantissa, exponent);
}

std::string around_overflow(Random& random) {
    // FLT_MAX, the bound at which rounding gives infinity, and 2^128.
    constexpr std::array<double, 3> kEdges = {0x1.fffffep127, 0x1.ffffffp127, 0x1p128};
    auto [mantissa, exponent] = scientific(kEdges[random() % 3], 3 + random() % 45);
    const auto way = random() % 3;
    if (way != 0) mantissa = nudged(mantissa, way == 1);
    return respelled(random, mantissa, exponent);
}

std::string far_away(Random& random) {
    return fmt::format("{}.{}e{}{}", random_digits(random, random() % 5),
                       random_digits(random, 1 + random() % 20), random() % 2 == 0 ? "-" : "+",
                       random() % 2 == 0 ? random() % 400 : random());
}

std::string with_zeros(Random& random) {
    const std::string zeros(random() % 400, '0');
    const std::string digits = random_digits(random, 1 + random() % 12);
    const auto places = static_cast<int>(zeros.size());
    switch (random() % 4) {
        case 0:
            return zeros + digits + "." + zeros;
        case 1:
            return "0." + zeros + digits +
                   fmt::format("e{}", places + static_cast<int>(random() % 20) - 10);
        case 2:
            return digits + zeros + fmt::format("e-{}", places + static_cast<int>(random() % 20));
        default:
            return digits + "." + digits + zeros;
    }
}

/// Thousands of digits, zeros or not, and an exponent that nearly makes up for them: only all of it
/// together tells the magnitude.
std::string long_and_balanced(Random& random) {
    const auto many = static_cast<int>(random() % 3000);
    const std::string run = random() % 2 == 0
                                ? std::string(static_cast<std::size_t>(many), '0')
                                : random_digits(random, static_cast<std::size_t>(many));
    const std::string digits = random_digits(random, 1 + random() % 12);
    const int off = static_cast<int>(random() % 120) - 60;
    switch (random() % 4) {
        case 0:
            return digits + run + fmt::format("e{}", off - many);
        case 1:
            return "0." + std::string(run.size(), '0') + digits + run +
                   fmt::format("e{}", many + off);
        case 2:
            return digits + run + "." + run;
        default:
            return "0." + std::string(run.size(), '0') + digits + fmt::format("e+{}", off + 60);
    }
}

/// Exponents beyond any integer type, and zeros in front of exponents and digits.
std::string huge_exponent(Random& random) {
    const std::string zeros(random() % 30, '0');
    const std::string exponent = zeros + random_digits(random, 1 + random() % 60);
    return fmt::format(
        "{}{}{}{}{}", zeros, random_digits(random, random() % 4), random() % 4 == 0 ? "0." : "1.",
        random_digits(random, random() % 40),
        (random() % 2 == 0 ? "e" : "E") + std::string(random() % 2 == 0 ? "-" : "") + exponent);
}

struct Class {
    const char* name;
    std::string (*make)(Random&);
};
constexpr Class kClasses[] = {
    {"shortest float32", shortest},
    {"as in downloads", as_in_downloads},
    {"1 to 40 digits", one_to_forty_digits},
    {"midpoints", midpoint},
    {"beside midpoints", beside_a_midpoint},
    {"short midpoints", short_midpoint},
    {"rounded midpoints", rounded_midpoint},
    {"denormals", denormal},
    {"around overflow", around_overflow},
    {"far exponents", far_away},
    {"many zeros", with_zeros},
    {"long and balanced", long_and_balanced},
    {"huge exponents", huge_exponent},
};
constexpr std::size_t kClassCount = std::size(kClasses);

struct Counts {
    std::uint64_t cases = 0;
    std::uint64_t exact = 0;  ///< a finite number other than zero
    std::uint64_t zeros = 0;
    std::uint64_t overflows = 0;
    std::uint64_t wrong = 0;
};

/// One decimal; says what is wrong with it, or nothing.
std::string compare(const std::string& text, Counts& counts) {
    const auto number = parse_number<float>(text.data(), text.data() + text.size());
    const float expected = std::strtof(text.c_str(), nullptr);
    ++counts.cases;
    if (number.end != text.data() + text.size()) return text + ": not read to its end";
    if (std::isinf(expected)) {
        ++counts.overflows;
        return number.fault == NumberFault::overflow ? "" : text + ": overflow not noticed";
    }
    ++(expected == 0 ? counts.zeros : counts.exact);
    const auto wanted = std::bit_cast<std::uint32_t>(expected);
    const auto got = std::bit_cast<std::uint32_t>(number.value);
    // In a line more numbers follow, which must not leak in.
    const std::string line = text + " 9.87654321 5";
    const auto in_line = parse_number<float>(line.data(), line.data() + line.size());
    if (in_line.end != line.data() + text.size() ||
        std::bit_cast<std::uint32_t>(in_line.value) != got) {
        return text + ": read differently in a line";
    }
    if (number.fault == NumberFault::none && got == wanted) return "";
    return fmt::format("{}: {:08x} (fault {}) instead of {:08x}", text, got,
                       static_cast<int>(number.fault), wanted);
}

/// The same as a request's number, and as float64.
std::string compare_others(const std::string& text) {
    const float expected = std::strtof(text.c_str(), nullptr);
    const auto of_request = expr::parse_float32(text);
    if (of_request
            ? std::bit_cast<std::uint32_t>(*of_request) != std::bit_cast<std::uint32_t>(expected)
            : !std::isinf(expected)) {
        return text + ": read differently in a request";
    }
    const double expected_wide = std::strtod(text.c_str(), nullptr);
    const auto wide = parse_number<double>(text.data(), text.data() + text.size());
    const bool same =
        std::bit_cast<std::uint64_t>(wide.value) == std::bit_cast<std::uint64_t>(expected_wide);
    if (std::isinf(expected_wide) ? wide.fault == NumberFault::overflow
                                  : wide.fault == NumberFault::none && same)
        return "";
    return text + ": another float64 than strtod's";
}

TEST(NumberAgainstStrtof, AgreesInEveryBit) {
    const char* const wanted = std::getenv("GLOVED_NUMBER_CASES");
    const std::uint64_t cases = wanted == nullptr ? 200'000 : std::strtoull(wanted, nullptr, 10);
    // Blocks have seeds of their own: the decimals are the same for any number of threads.
    constexpr std::uint64_t kBlockCases = 10'000;
    const std::uint64_t blocks =
        std::max<std::uint64_t>(1, (cases + kBlockCases - 1) / kBlockCases);
    std::atomic<std::uint64_t> next{0};
    std::array<Counts, kClassCount> total{};
    std::vector<std::string> complaints;
    std::mutex mutex;
    const auto work = [&] {
        std::array<Counts, kClassCount> own{};
        std::vector<std::string> own_complaints;
        for (std::uint64_t block = next++; block < blocks; block = next++) {
            Random random(block);
            for (std::uint64_t i = 0; i < kBlockCases; ++i) {
                const std::size_t kind = i % kClassCount;
                const std::string sign = random() % 2 == 0 ? "-" : "";
                const std::string text = sign + kClasses[kind].make(random);
                std::string complaint = compare(text, own[kind]);
                if (complaint.empty()) complaint = compare_others(text);
                if (complaint.empty()) continue;
                ++own[kind].wrong;
                if (own_complaints.size() < 10) own_complaints.push_back(complaint);
            }
        }
        const std::lock_guard lock(mutex);
        for (std::size_t kind = 0; kind < kClassCount; ++kind) {
            total[kind].cases += own[kind].cases;
            total[kind].exact += own[kind].exact;
            total[kind].zeros += own[kind].zeros;
            total[kind].overflows += own[kind].overflows;
            total[kind].wrong += own[kind].wrong;
        }
        complaints.insert(complaints.end(), own_complaints.begin(), own_complaints.end());
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
        threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();

    fmt::print("{:<18}{:>10}{:>10}{:>10}{:>11}{:>7}\n", "decimals", "cases", "numbers", "zeros",
               "overflows", "wrong");
    for (std::size_t kind = 0; kind < kClassCount; ++kind) {
        const Counts& counts = total[kind];
        fmt::print("{:<18}{:>10}{:>10}{:>10}{:>11}{:>7}\n", kClasses[kind].name, counts.cases,
                   counts.exact, counts.zeros, counts.overflows, counts.wrong);
        EXPECT_EQ(counts.wrong, 0U) << kClasses[kind].name;
        EXPECT_GT(counts.cases, 0U);
    }
    for (const std::string& complaint : complaints) ADD_FAILURE() << complaint;
}

/// GLOVED_NUMBER_FILE names another download, as text or gzip, in which every line has one blank a
/// number.
TEST(NumberAgainstStrtof, AgreesOnEveryNumberOfADownload) {
    const char* const named = std::getenv("GLOVED_NUMBER_FILE");
    const std::string path =
        named == nullptr ? tests::source_path("data/glove.6B.100d.sample.txt.gz") : named;
    const std::atomic<bool> stop{false};
    auto input = Input::open(path, stop);
    ASSERT_TRUE(input) << input.error().message;
    std::string text;
    std::size_t filled = 0;
    do {
        text.resize(filled + (1 << 24));
        const auto got = input->read(std::span(text).subspan(filled));
        ASSERT_TRUE(got) << got.error().message;
        filled += *got;
    } while (filled == text.size());
    text.resize(filled);

    const char* const last = text.data() + text.size();
    std::uint64_t numbers = 0;
    std::uint64_t wrong = 0;
    for (const char* line = text.data(); line != last;) {
        const char* const end = std::find(line, last, '\n');
        for (const char* at = std::find(line, end, ' '); at != end; at = std::find(at, end, ' ')) {
            const auto number = parse_number<float>(++at, last);
            char* expected_end = nullptr;
            const float expected = std::strtof(at, &expected_end);  // the text ends in a NUL, as
                                                                    // std::string does
            ++numbers;
            const bool same = number.fault == NumberFault::none && number.end == expected_end &&
                              std::bit_cast<std::uint32_t>(number.value) ==
                                  std::bit_cast<std::uint32_t>(expected);
            if (!same && ++wrong <= 10) ADD_FAILURE() << std::string(at, std::find(at, end, ' '));
        }
        line = end == last ? last : end + 1;
    }
    fmt::print("{} numbers of {}, {} wrong\n", numbers, path, wrong);
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(numbers, 1'000'000U);
}

}  // namespace
}  // namespace gloved::source
