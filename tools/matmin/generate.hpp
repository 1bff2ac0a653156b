// Generates text of random matrices with known minimum and maximum, for benchmarks and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved::matmin {

/// The kind of numbers in the text.
enum class Numbers {
    integers,  ///< 0 to 999: «417»
    decimals,  ///< −99.999 to 99.999: «-12.345»
};

/// What to generate.
struct GenerateOptions {
    std::uint64_t count = 1;  ///< number of matrices
    std::size_t rows = 3;
    std::size_t columns = 3;
    Numbers numbers = Numbers::integers;
    std::uint64_t seed = 1;
    std::size_t threads = 0;  ///< threads that format, besides the calling thread, which writes
};

/// The expected result, computed from the random numbers, not from their text.
struct Generated {
    std::vector<double> minimum;  ///< shape (rows, columns)
    std::vector<double> maximum;
    std::uint64_t bytes = 0;  ///< size of the text
};

/// Writes the text to the regular file `fd`, from its beginning; messages call it `path`. The bytes
/// do not depend on `threads`. Up to a hundred elements get different minima and maxima, so that a
/// reader that mixes up elements gives a wrong result. Error: io.
Result<Generated> generate(const GenerateOptions& options, int fd, const std::string& path);

}  // namespace gloved::matmin
