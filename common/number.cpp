#include "common/number.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace gloved::detail {
namespace {

/// Whether the decimal is below one; arguments as for parse_number_slowly. std::from_chars reports
/// overflow and underflow alike and leaves the value alone.
bool below_one(const char* first, const char* last) {
    const char* const mantissa_end =
        std::find_if(first, last, [](char c) { return c == 'e' || c == 'E'; });
    const char* const point = std::find(first, mantissa_end, '.');
    const char* const leading =
        std::find_if(first, mantissa_end, [](char c) { return c >= '1' && c <= '9'; });
    if (leading == mantissa_end) return true;
    // The decimal is leading-digit.… × 10^magnitude.
    std::int64_t magnitude = leading < point ? point - leading - 1 : point - leading;
    if (mantissa_end != last) {
        const char* p = mantissa_end + 1;
        const bool minus = *p == '-';
        if (*p == '-' || *p == '+') ++p;
        std::int64_t written = 0;
        for (; p != last && written < kExponentLimit; ++p) written = written * 10 + (*p - '0');
        magnitude += minus ? -written : written;
    }
    return magnitude < 0;
}

}  // namespace

template <class T>
Number<T> parse_number_slowly(const char* first, const char* last, bool negative) {
    T value = 0;
    const auto [end, error] = std::from_chars(first, last, value);
    if (error == std::errc::result_out_of_range) {
        if (!below_one(first, last)) return {0, last, NumberFault::overflow};
        value = 0;
    } else if (error != std::errc() || end != last) {
        return {0, first, NumberFault::malformed};
    }
    return {negative ? -value : value, last, NumberFault::none};
}

template Number<float> parse_number_slowly(const char* first, const char* last, bool negative);
template Number<double> parse_number_slowly(const char* first, const char* last, bool negative);

}  // namespace gloved::detail
