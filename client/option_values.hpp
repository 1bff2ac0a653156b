// Values of command-line options, checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gloved::client {

/// A day: longer waits are mistakes.
inline constexpr double kMaxSeconds = 86400;

/// Seconds from `least` to kMaxSeconds, as a decimal number. Error: bad_request, which names the
/// option.
Result<std::chrono::milliseconds> parse_seconds(const std::string& option, const std::string& text,
                                                double least);

/// A whole number from 1 to `most`. Error: bad_request, which names the option.
Result<std::uint64_t> parse_whole_number(const std::string& option, const std::string& text,
                                         std::uint64_t most);

}  // namespace gloved::client
