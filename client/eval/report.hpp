// An evaluation's figures as text.
#pragma once

#include <string>

#include "client/eval/evaluation.hpp"

namespace gloved::client {

/// What was evaluated, beside the figures.
struct Evaluated {
    std::string model;       ///< its name
    std::string generation;  ///< of its content
    EvaluationSettings settings;
};

/// Tables with TABs between columns, under a line of their names. A section's line has its name
/// first; the three sums have `*` there. TABs in names become blanks. What cannot be computed is
/// «-».
std::string table(const AnalogyScore& score);
std::string table(const PairScore& score);

/// One JSON object on a line. What cannot be computed is null. Names are written as the wire writes
/// words.
std::string json(const Evaluated& evaluated, const AnalogyScore& score);
std::string json(const Evaluated& evaluated, const PairScore& score);

}  // namespace gloved::client
