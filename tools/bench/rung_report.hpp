// Formats the measurements of the ladder as tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/ladder/ladder.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

/// One rung's times, each of a complete search.
struct RungFigures {
    std::string name;
    std::string idea;
    bool discarded = false;
    bool on_host = false;  ///< reads host memory
    /// Shape (rounds, words), at least one round.
    std::vector<std::vector<kernels::ladder::RungTimes>> runs;
};

struct RungReport {
    std::vector<std::string> words;  ///< names of the columns, in the order asked
    std::uint64_t rows = 0;
    std::uint64_t vector_bytes = 0;
    double host_read_ms = 0;               ///< plain read of all vectors by all threads
    std::optional<double> device_read_ms;  ///< the same by the device, of its own memory
    std::vector<RungFigures> rungs;
};

/// The mean milliseconds of all searches.
double mean_total_ms(const RungFigures& rung);

/// Table 1: mean and standard error of each word's total over the rounds, in milliseconds.
Table words_table(const RungReport& report, TableFormat format);

/// Table 2: speedup over the CPU (the first rung on the host) and over the previous version that
/// was not discarded, and distances per millisecond.
Table speedup_table(const RungReport& report);

/// Table 3: mean milliseconds of each part of a search. GB/s are those of the dot product alone.
Table parts_table(const RungReport& report);

}  // namespace gloved::bench
