// Formats the figures of an evaluation as a table or as JSON, for gloved-eval.
#pragma once

#include <string>

#include "client/eval/evaluation.hpp"

namespace gloved::client {

/// What was evaluated: the model's name and generation, and the settings.
struct Evaluated {
    std::string model;
    std::string generation;
    EvaluationSettings settings;
};

/// Formats a table with TABs between columns and their names in the first line. A section's line
/// begins with its name; the lines of the three totals (semantic, syntactic, all) begin with `*`.
/// TABs in names become blanks. A figure that cannot be computed is «-».
std::string table(const AnalogyScore& score);
std::string table(const PairScore& score);

/// Formats one line with a JSON object. A figure that cannot be computed is null. Names are bytes,
/// encoded as in JSON replies (wire::append_json_string).
std::string json(const Evaluated& evaluated, const AnalogyScore& score);
std::string json(const Evaluated& evaluated, const PairScore& score);

}  // namespace gloved::client
