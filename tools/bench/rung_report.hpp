// Formats the times of the ladder's rungs (kernels/cuda/ladder) as tables, for gloved-bench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/ladder/ladder.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

/// The times of one rung; each is that of a complete search.
struct RungFigures {
    std::string name;
    std::string idea;        ///< what the rung tries, in a line
    bool discarded = false;  ///< it was no improvement on the rung before
    bool on_host = false;    ///< it runs on the CPU and reads host memory
    /// [round][word], at least one round.
    std::vector<std::vector<kernels::ladder::RungTimes>> runs;
};

/// All rungs' times on one model.
struct RungReport {
    std::vector<std::string> words;        ///< words that were asked, in order
    std::uint64_t rows = 0;                ///< of the model
    std::uint64_t vector_bytes = 0;        ///< size of all vectors
    double host_read_ms = 0;               ///< a plain read of all vectors by all CPU threads
    std::optional<double> device_read_ms;  ///< a plain read of them by the GPU, from its memory
    std::vector<RungFigures> rungs;
};

/// The mean milliseconds of all searches.
double mean_total_ms(const RungFigures& rung);

/// Table 1: mean and standard error of each word's total over the rounds, in milliseconds.
Table words_table(const RungReport& report, TableFormat format);

/// Table 2: speedup over the CPU (the first rung on the host) and over the previous rung that was
/// not discarded, and distances (rows compared) per millisecond.
Table speedup_table(const RungReport& report);

/// Table 3: mean milliseconds of each part of a search. GB/s are those of the dot product alone.
Table parts_table(const RungReport& report);

}  // namespace gloved::bench
