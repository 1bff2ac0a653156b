// Prints an evaluation's figures as a table or as JSON.
#pragma once

#include <string>

#include "client/eval/evaluation.hpp"

namespace gloved::client {

/// The model and the settings of an evaluation.
struct Evaluated {
    std::string model;
    std::string generation;
    EvaluationSettings settings;
};

/// Formats a table with TABs between columns and their names in the first line. A section's line
/// begins with its name, the three totals with `*`. TABs in names become blanks. A figure that
/// cannot be computed is «-».
std::string table(const AnalogyScore& score);
std::string table(const PairScore& score);

/// Formats one JSON object on a line. A figure that cannot be computed is null. Names are written
/// as the wire writes words.
std::string json(const Evaluated& evaluated, const AnalogyScore& score);
std::string json(const Evaluated& evaluated, const PairScore& score);

}  // namespace gloved::client
