// Writes the planes file of a new or an existing model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::convert {

/// Writes the planes of the model in `directory_fd`, whose values file is whole, as its file
/// `name`, read-only and durable, with progress on a terminal. Messages call the directory `path`.
/// The bytes depend on the values alone. Takes some 8 MiB of memory a thread. Errors: io;
/// interrupted once `stop` is set. After an error the file is incomplete.
Status write_planes(int directory_fd, const std::string& path, UniqueFd file, const char* name,
                    const format::Header& header, std::size_t threads,
                    const std::atomic<bool>& stop);

struct PlanesAdded {
    std::uint64_t rows = 0;
    std::size_t dim = 0;
    std::uint64_t generation = 0;
    std::uint64_t file_bytes = 0;
    double seconds = 0;
};

/// Writes or replaces the planes file of the model `model_dir` and changes nothing else. Errors:
/// those of Model::open, but for planes; conflict and io as PlanesStaging has them; interrupted
/// once `stop` is set. After an error the model is unchanged, with the exception that
/// PlanesStaging::publish names.
Result<PlanesAdded> add_planes(const std::string& model_dir, std::size_t threads,
                               const std::atomic<bool>& stop);

}  // namespace gloved::convert
