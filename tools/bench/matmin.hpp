// gloved-bench matmin: every way to find the smallest elements of many equal matrices, from their
// text on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {

struct MatminSettings {
    std::uint64_t count = 0;  ///< matrices
    std::size_t rows = 0;
    std::size_t columns = 0;
    npy::Type type = npy::Type::float64;
    std::size_t repeat = 0;
    unsigned threads = 0;  ///< never 0
    int device = 0;
    std::uint64_t seed = 0;
    TableFormat format = TableFormat::text;
};

/// Reads the command line from behind «matmin»; nothing where --help was all, which is answered on
/// `out`. Error: bad_request.
Result<std::optional<MatminSettings>> read_matmin_settings(int argc, char** argv,
                                                           std::ostream& out);

/// Makes the text, in a directory that is removed at the end, reads it once for every rung and
/// prints the table. Errors: internal, when a rung's answer is not that of the plain loop over the
/// numbers as they were drawn; device; io; interrupted.
Status print_matmin(const MatminSettings& settings, const std::string& processor_name);

}  // namespace gloved::bench
