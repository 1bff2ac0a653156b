// Formats what gloved-bench load measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/load_counts.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

/// What a load measured.
struct LoadFigures {
    std::vector<std::string> parts{};            ///< names of the parts of the mix
    LoadCounts counts;                           ///< of all clients but the lone one
    std::optional<LoadCounts> lone{};            ///< of the lone client, if there was one
    double seconds = 0;                          ///< how long requests were sent
    double own_cpu_seconds = 0;                  ///< processor time of this process
    std::optional<double> daemon_cpu_seconds{};  ///< and of the daemon, if it is known
    double wall_seconds = 0;  ///< during which the two were measured: until the last reply
};

/// The replies to each part of the mix, to all parts, and to the lone client: how many, and
/// percentiles of their latencies.
Table answers_table(const LoadFigures& figures);

/// The processor time of both sides, in all and per answer.
Table processor_table(const LoadFigures& figures);

/// Lines about what else happened: checked answers, ERR replies by code, requests that were sent
/// late, or not at all, or not answered.
std::vector<std::string> load_notes(const LoadFigures& figures);

/// A wrong answer as lines: the request, both status lines, and both replies from the first line
/// on that differs.
std::vector<std::string> wrong_answer_text(const WrongAnswer& wrong);

}  // namespace gloved::bench
