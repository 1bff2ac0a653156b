// Parsers of options whose value is a list with commas between. They throw cli::WrongUsage.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::bench {

/// Batch sizes in ascending order without repetition. 1 is always among them, because batches are
/// compared with single queries.
std::vector<std::size_t> parse_batches(std::string_view text);

/// The names of `known` that the text has, in the order of `known`, each once. `name` is what an
/// error calls the list.
std::vector<std::string> parse_names(std::string_view name, std::string_view text,
                                     std::span<const char* const> known);

struct RungChoice {
    std::vector<std::string> run;       ///< in the order of the ladder, each once
    std::vector<std::string> left_out;  ///< asked for, but not in this build
};

/// Chooses rungs in the order of `known`, or all for «all». If the build lacks part of the ladder
/// (`complete` is false), other names of a rung's form (v, a digit, anything) are left out, and
/// «all» leaves out «the others». Any other name throws.
RungChoice parse_rungs(std::string_view text, std::span<const std::string_view> known,
                       bool complete);

}  // namespace gloved::bench
