// Parses options of gloved-bench whose value is a list separated by commas. All functions throw
// cli::WrongUsage.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloved::bench {

/// Parses batch sizes. Returns them in ascending order, each once. 1 is always among them, because
/// batches are compared with single queries.
std::vector<std::size_t> parse_batches(std::string_view text);

/// Parses the sizes of lists of words. Returns them in their order. At most kernels::kMaxLists.
std::vector<std::size_t> parse_list_sizes(std::string_view text);

/// Parses names, each of which must be in `known`. Returns them in the order of `known`, each once.
/// `name` is what the message calls the list.
std::vector<std::string> parse_names(std::string_view name, std::string_view text,
                                     std::span<const std::string_view> known);

/// Rungs of the ladder (kernels/cuda/ladder) that the user asked for.
struct RungChoice {
    std::vector<std::string> run;       ///< rungs to run, in the order of the ladder, each once
    std::vector<std::string> left_out;  ///< rungs that this build does not have
};

/// Chooses the rungs that `text` names from `known`, those of this build; all for «all».
/// `complete`: whether this build has the whole ladder. If not, an unknown name in the form of a
/// rung's (v, a digit, anything) goes to left_out, and «all» adds «the others» to left_out. Any
/// other unknown name throws.
RungChoice parse_rungs(std::string_view text, std::span<const std::string_view> known,
                       bool complete);

}  // namespace gloved::bench
