// What was measured of the element-wise minimum, as a table. Nothing here measures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/bench/table.hpp"

namespace gloved::bench {

/// One way to reduce the matrices of a text.
struct MatminFigures {
    std::string rung;
    double reading_ms = 0;   ///< until all text was parsed, what the reducer took of it left out
    double transfer_ms = 0;  ///< as matrices came
    double compute_ms = 0;   ///< likewise
    std::vector<double> again_ms;   ///< of computing over all values once more; none where they are
                                    ///< not kept
    std::optional<double> read_ms;  ///< a plain read of as many bytes by the same processor or
                                    ///< device
};

/// A line for each rung. `text_bytes` are those of the text, `value_bytes` those of its numbers.
Table matmin_table(std::span<const MatminFigures> rungs, std::uint64_t text_bytes,
                   std::uint64_t value_bytes);

}  // namespace gloved::bench
