// What was measured of the ladder, as tables.
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

/// One rung's times, every one of them a whole search.
struct RungFigures {
    std::string name;
    std::string idea;
    bool discarded = false;
    bool on_host = false;                                       ///< reads the host's memory
    std::vector<std::vector<kernels::ladder::RungTimes>> runs;  ///< (rounds, words), at least one
                                                                ///< round
};

struct RungReport {
    std::vector<std::string> words;  ///< as the columns are called, in the order asked
    std::uint64_t rows = 0;
    std::uint64_t vector_bytes = 0;
    double host_read_ms = 0;               ///< a plain read of all vectors by all threads
    std::optional<double> device_read_ms;  ///< the same by the device of its own memory
    std::vector<RungFigures> rungs;
};

/// The mean total of all searches, in milliseconds.
double mean_total_ms(const RungFigures& rung);

/// Table 1: mean and standard error of each word's total over the rounds, in milliseconds.
Table words_table(const RungReport& report, TableFormat format);

/// Table 2: how many times as fast as the processor (the first rung that is on the host, where
/// there is one) and as the version before (discarded variants are nobody's), and distances a
/// millisecond: rows over milliseconds.
Table speedup_table(const RungReport& report);

/// Table 3: where the time goes, in milliseconds, means over all searches. Its GB/s are those of
/// the dot product alone.
Table parts_table(const RungReport& report);

}  // namespace gloved::bench
