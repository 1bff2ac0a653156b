// The engines that gloved-matmin and gloved-distmat once had for comparison.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "cli/command_line.hpp"

namespace gloved::tools {

/// Throws WrongUsage if --engine names one of `old`. `exhibits` is where `gloved-bench museum` has
/// their kernels.
inline void refuse_old_engines(const cli::CommandLine& line,
                               std::initializer_list<std::string_view> old,
                               std::string_view exhibits) {
    const auto engine = std::ranges::find(old, line.text("engine"));
    if (engine == old.end()) return;
    throw cli::WrongUsage(fmt::format(
        "--engine takes auto, cuda or cpu, not \"{}\"; gloved-bench museum {} has the kernels of "
        "that name",
        *engine, exhibits));
}

}  // namespace gloved::tools
