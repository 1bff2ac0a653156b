// The options for a file of words, of gloved-distmat and gloved-neighbors.
#pragma once

#include "cli/command_line.hpp"
#include "tools/distmat/matrix.hpp"

namespace gloved::distmat {

/// Adds --unknown and --case.
inline void add_word_options(cli::OptionAdder& add) {
    add("unknown", cli::value("error|skip", "error"),
        "for a word of a file that the model does not have: stop, or skip it; it then stands in "
        "the output without numbers (.npy of distances: nan)");
    add("case", cli::value("exact|ignore", "exact"),
        "whether a word of a file may stand for one of the model that differs in case alone");
}

/// Reads them.
inline WordRules read_word_options(const cli::CommandLine& line) {
    return {line.choice<bool>("unknown", {{"error", false}, {"skip", true}}),
            line.choice<bool>("case", {{"exact", false}, {"ignore", true}})};
}

}  // namespace gloved::distmat
