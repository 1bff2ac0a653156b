// Fast, correctly rounded conversion of decimal text to float32, float64 and small integers.
#pragma once

#include <bit>
#include <cfloat>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace gloved {

/// Why a text is no number.
enum class NumberFault {
    none,
    malformed,  ///< no number starts here
    overflow,   ///< a number too large for the type
};

/// What parse_number found.
template <class T>
struct Number {
    T value = 0;
    const char* end = nullptr;  ///< after the last byte of the number
    NumberFault fault = NumberFault::none;
};

namespace detail {
/// Slow path (number.cpp): [first, last) is a complete number without its sign. T = float, double.
template <class T>
Number<T> parse_number_slowly(const char* first, const char* last, bool negative);
/// Cap on the written exponent: no line has enough digits to compensate for it.
inline constexpr std::int64_t kExponentLimit = 1'000'000'000'000;

inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr int kExactPower = 22;  // 10^22 = 2^22 · 5^22, and 5^22 < 2^53
inline constexpr std::uint64_t kExactInteger = std::uint64_t{1} << 53;
static_assert(1e-22 > FLT_MIN && static_cast<double>(kExactInteger) * 1e22 < FLT_MAX);
inline constexpr int kUint64Digits = 19;

inline bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// The digits at the beginning of eight bytes: their number and value.
struct Digits {
    unsigned count;
    std::uint64_t value;
};

/// Reads eight bytes as one little-endian integer, so that no branch depends on the number of
/// digits.
inline Digits leading_digits(const char* eight) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, eight, sizeof bytes);
    // '0' to '9' become 0 to 9. Other bytes have their high bit set, or get it by adding 0x76 =
    // 0x80 - 10. Overflow of a sum disturbs only bytes above one that is not a digit.
    bytes ^= '0' * kOnes;
    const std::uint64_t others = ((bytes + 0x76 * kOnes) | bytes) & 0x80 * kOnes;
    if ((others & 0x80) != 0) return {0, 0};
    const unsigned count = static_cast<unsigned>(std::countr_zero(others)) / 8;
    // Shifts the digits to the top, filling with zero digits, then combines neighbours: 8 numbers
    // to 4, to 2, to 1.
    bytes <<= 8 * (8 - count);
    bytes = bytes * 10 + (bytes >> 8);
    constexpr std::uint64_t kPairs = 0x000000FF000000FF;
    const std::uint64_t high = (bytes & kPairs) * (100 + (std::uint64_t{1'000'000} << 32));
    const std::uint64_t low = ((bytes >> 16) & kPairs) * (1 + (std::uint64_t{10'000} << 32));
    return {count, (high + low) >> 32};
}
inline constexpr std::uint64_t kPowersOfTenInteger[] = {1,      10,      100,      1000,     10000,
                                                        100000, 1000000, 10000000, 100000000};

/// Whether the T nearest to a decimal is the T nearest to d, the float64 nearest to it. See
/// parse_number.
template <std::floating_point T>
bool is_certain(double d) {
    if constexpr (std::is_same_v<T, double>) return true;
    constexpr std::uint64_t kLow29 = (std::uint64_t{1} << 29) - 1;
    return (std::bit_cast<std::uint64_t>(d) & kLow29) != std::uint64_t{1} << 28;
}

/// d or −d as a T. The sign is set as a bit, since nobody can predict it.
template <std::floating_point T>
T rounded(double d, bool negative) {
    using Bits = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
    const auto bits = std::bit_cast<Bits>(static_cast<T>(d));
    return std::bit_cast<T>(bits | static_cast<Bits>(negative) << (8 * sizeof(T) - 1));
}

/// parse_number for numbers of every form.
template <std::floating_point T>
[[gnu::noinline]] Number<T> parse_any_number(const char* first, const char* last) {
    const char* p = first;
    const bool negative = p != last && *p == '-';
    p += static_cast<int>(negative) | static_cast<int>(p != last && *p == '+');
    const char* const unsigned_first = p;

    std::uint64_t digits = 0;  // wraps beyond 19 digits, and is not used then
    for (; p != last && digit(*p); ++p) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
    std::ptrdiff_t digit_count = p - unsigned_first;
    std::int64_t exponent = 0;
    if (p != last && *p == '.') {
        const char* const fraction = ++p;
        if (last - p >= 8) {
            const Digits many = leading_digits(p);
            digits = digits * kPowersOfTenInteger[many.count] + many.value;
            p += many.count;
        }
        for (; p != last && digit(*p); ++p)
            digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
        exponent = fraction - p;
        digit_count += p - fraction;
    }
    if (digit_count == 0) return {0, first, NumberFault::malformed};
    if (p != last && (*p == 'e' || *p == 'E')) {
        const char* q = p + 1;
        const bool minus = q != last && *q == '-';
        if (q != last && (*q == '-' || *q == '+')) ++q;
        if (q != last && digit(*q)) {
            std::int64_t written = 0;
            for (; q != last && digit(*q); ++q) {
                if (written < kExponentLimit) written = written * 10 + (*q - '0');
            }
            exponent += minus ? -written : written;
            p = q;
        }
    }

    if (digit_count <= kUint64Digits && digits <= kExactInteger && exponent >= -kExactPower &&
        exponent <= kExactPower) {
        const auto integer = static_cast<double>(digits);
        const double d =
            exponent < 0 ? integer / kPowersOfTen[-exponent] : integer * kPowersOfTen[exponent];
        if (is_certain<T>(d)) return {rounded<T>(d, negative), p, NumberFault::none};
    }
    return parse_number_slowly<T>(unsigned_first, p, negative);
}
}  // namespace detail

/// Reads the longest prefix of [first, last) that is [+-] digits [. digits] [(e|E) [+-] digits],
/// where either side of the point may be empty but not both; nothing else is a number: no «nan», no
/// «inf», no hexadecimal, no blanks. The value is the T, float or double, that is nearest to the
/// decimal, ties to even, whatever the locale; a tiny one gives a denormal or a signed zero.
///
/// The fast path (all but a few of the numbers in a GloVe file): the digits as an integer w <= 2^53
/// and a power of ten up to 10^22 are both exact in float64, so one division or multiplication
/// gives d, the correctly rounded float64 of the decimal x. For float64 that is all. Rounding d to
/// float32 can differ from rounding x only if a midpoint m between two neighbouring float32
/// separates them. m itself is a float64 and rounding is monotonic, so x < m gives d <= m: d is on
/// x's side of m, or d is m. So only d == m is in doubt. d is 0 or between 10^-22 and 2^53 · 10^22
/// < 10^38, so its float32 is neither denormal nor infinite, and the midpoints are the float64
/// whose low 29 bits (53 − 24) are 1 0…0. Those, and all that the fast path does not reach, go the
/// slow way (parse_number_slowly).
///
/// Always inline: a result in memory would delay the search for the next number by a third.
template <std::floating_point T>
[[gnu::always_inline]] inline Number<T> parse_number(const char* first, const char* last) {
    using namespace detail;
    // The form of nearly all numbers of vectors: [-] digit . up to nine digits. Few instructions
    // find its end, for which the next number waits.
    constexpr std::ptrdiff_t kLongest = 1 + 1 + 1 + 9;
    if (last - first > kLongest) {
        const bool negative = *first == '-';
        const char* p = first + static_cast<int>(negative);
        const auto whole = static_cast<std::uint64_t>(p[0] - '0');
        if (digit(p[0]) && p[1] == '.') {
            p += 2;
            const Digits fraction = leading_digits(p);
            std::uint64_t digits = whole * kPowersOfTenInteger[fraction.count] + fraction.value;
            const char* end = p + fraction.count;
            if (digit(*end)) {
                digits = digits * 10 + static_cast<std::uint64_t>(*end - '0');
                ++end;
            }
            if (!digit(*end) && (*end | 0x20) != 'e') {
                const double d =
                    static_cast<double>(static_cast<std::int64_t>(digits)) / kPowersOfTen[end - p];
                if (is_certain<T>(d)) return {rounded<T>(d, negative), end, NumberFault::none};
            }
        }
    }
    return parse_any_number<T>(first, last);
}

/// Reads the longest prefix of [first, last) that is [+-] digits, of any length. `overflow` if the
/// number is beyond T.
template <std::signed_integral T>
requires(sizeof(T) < sizeof(std::int64_t)) Number<T> parse_number(const char* first,
                                                                  const char* last) {
    const char* p = first;
    const bool negative = p != last && *p == '-';
    p += static_cast<int>(negative) | static_cast<int>(p != last && *p == '+');
    const char* const unsigned_first = p;
    // The largest magnitude is that of the most negative number. Larger values stop growing.
    constexpr std::int64_t kMaxMagnitude =
        -static_cast<std::int64_t>(std::numeric_limits<T>::min());
    std::int64_t value = 0;
    for (; p != last && detail::digit(*p); ++p) {
        if (value <= kMaxMagnitude) value = value * 10 + (*p - '0');
    }
    if (p == unsigned_first) return {0, first, NumberFault::malformed};
    if (value > kMaxMagnitude - static_cast<std::int64_t>(!negative))
        return {0, p, NumberFault::overflow};
    return {static_cast<T>(negative ? -value : value), p, NumberFault::none};
}

}  // namespace gloved
