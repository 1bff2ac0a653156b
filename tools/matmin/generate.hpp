// Generates text of random matrices with known minimum and maximum, for benchmarks and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved::matmin {

enum class Numbers {
    integers,  ///< 0 to 999: «417»
    decimals,  ///< −99.999 to 99.999: «-12.345»
};

struct GenerateOptions {
    std::uint64_t count = 1;  ///< matrices
    std::size_t rows = 3;
    std::size_t columns = 3;
    Numbers numbers = Numbers::integers;
    std::uint64_t seed = 1;
    std::size_t threads = 0;  ///< beside the calling thread, which writes
};

/// The expected result, from the numbers as they were drawn and not from their text.
struct Generated {
    std::vector<double> minimum;  ///< shape (rows, columns)
    std::vector<double> maximum;
    std::uint64_t bytes = 0;
};

/// Writes the text to the regular file `fd`, from its beginning; messages call it `path`. The bytes
/// do not depend on `threads`. Up to a hundred elements have different bounds, so that a result
/// with elements mixed up is wrong. Error: io.
Result<Generated> generate(const GenerateOptions& options, int fd, const std::string& path);

}  // namespace gloved::matmin
