// Lists as the command line has them: values with commas between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gloved::bench {

/// A whole number from `least` to `most`. `name` is what the error calls it.
Result<std::uint64_t> parse_count(std::string_view name, std::string_view text, std::uint64_t least,
                                  std::uint64_t most);

/// Sizes of batches in ascending order, each once, 1 always among them: batches are compared with
/// single queries.
Result<std::vector<std::size_t>> parse_batches(std::string_view text);

/// Which of `known` the text names, in their order, each once. `name` is what the error,
/// bad_request, calls the list.
Result<std::vector<std::string>> parse_names(std::string_view name, std::string_view text,
                                             std::span<const char* const> known);

/// Rungs that were asked for.
struct RungChoice {
    std::vector<std::string> run;       ///< in the order of the table, each once
    std::vector<std::string> left_out;  ///< that this build does not have
};

/// Which rungs to climb, in the order of `known` whatever the order asked for. «all» is all of
/// `known`. Where the build has not got the whole ladder (`complete` is false), other names of a
/// rung's form (v, a digit, anything) are left out, and of «all» «the others». Error: bad_request
/// for any other name.
Result<RungChoice> parse_rungs(std::string_view text, std::span<const std::string_view> known,
                               bool complete);

}  // namespace gloved::bench
