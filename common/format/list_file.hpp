// Reads a list of words, which requests name in within= and without=, from its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// What a list is for a model.
struct ListFile {
    std::vector<Row> rows;       ///< of the words that the model has, ascending
    std::size_t missing = 0;     ///< distinct words that it does not have
    std::uint64_t checksum = 0;  ///< XXH3-64 of the words of `rows`, each with an LF
};

/// Reads a file with a word a line, in any order, also several times. Empty lines and a CR before
/// an LF are ignored. Error: io, which names the file.
Result<ListFile> read_list_file(const std::string& path, const Model& model);

}  // namespace gloved::format
