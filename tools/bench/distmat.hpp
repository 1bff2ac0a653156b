// gloved-bench distmat: every way to compute all distances of a matrix's rows, on the original's
// grid of sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

struct DistmatSettings {
    struct Size {
        std::size_t rows = 0;
        std::size_t dim = 0;
    };
    std::vector<Size> sizes;
    std::vector<std::string> rungs;  ///< by name; empty: all that can run here
    std::size_t repeat = 0;
    double seconds = 0;    ///< a rung's runs of one size end early after that
    unsigned threads = 0;  ///< never 0
    int device = 0;
    std::uint64_t seed = 0;
    std::string svg;  ///< empty: no chart
    TableFormat format = TableFormat::text;
};

/// Reads the command line from behind «distmat»; nothing where --help was all, which is answered on
/// `out`. Error: bad_request.
Result<std::optional<DistmatSettings>> read_distmat_settings(int argc, char** argv,
                                                             std::ostream& out);

/// Checks every rung, times it and prints the table; draws the chart. `processor_name` is what the
/// chart says where no rung is on a device. Errors: internal, when a rung's distances are not the
/// canonical ones byte by byte; unavailable, for a rung asked for by name; device; io; interrupted.
Status print_distmat(const DistmatSettings& settings, const std::string& processor_name);

}  // namespace gloved::bench
