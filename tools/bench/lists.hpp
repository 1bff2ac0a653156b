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

}  // namespace gloved::bench
