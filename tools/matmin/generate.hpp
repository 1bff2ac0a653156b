// Random matrices as text of any size, with their minimum and maximum, for measuring and for tests.
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
    std::size_t threads = 0;  ///< beside the calling one, which writes
};

/// Found by a plain loop over the numbers as they were drawn: no parser has a part in it.
struct Generated {
    std::vector<double> minimum;  ///< shape (rows, columns)
    std::vector<double> maximum;
    std::uint64_t bytes = 0;
};

/// Writes the text to the regular file `fd`, from its beginning; `path` is what messages call it.
/// Its bytes depend on the options but for `threads` alone. Each element has bounds of its own for
/// a hundred elements, so that an answer with elements mixed up is seen as wrong. Error: io.
Result<Generated> generate(const GenerateOptions& options, int fd, const std::string& path);

}  // namespace gloved::matmin
