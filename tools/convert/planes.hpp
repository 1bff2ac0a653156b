// Makes the planes file of a new model, or of an existing one (gloved-convert --planes-only).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"

namespace gloved::convert {

/// Computes the planes of the model in `directory_fd` from its complete values file, whose header
/// is `header`, and writes them to `file`, which is new and empty; makes it read-only and durable.
/// Shows progress on a terminal. Messages call the directory `path` and the file `name`. The bytes
/// depend on the values alone. Needs some 8 MiB of memory per thread. Errors: io; interrupted, once
/// `stop` is true. After an error the file is incomplete.
Status write_planes(int directory_fd, const std::string& path, UniqueFd file, const char* name,
                    const format::Header& header, std::size_t threads,
                    const std::atomic<bool>& stop);

/// What add_planes did, for a message.
struct PlanesAdded {
    std::uint64_t rows = 0;
    std::size_t dim = 0;
    std::uint64_t generation = 0;
    std::uint64_t file_bytes = 0;
    double seconds = 0;
};

/// Makes or replaces the planes file of the model `model_dir` and changes nothing else. Errors:
/// those of Model::open for the other files; those of AddedFileStaging; interrupted, once `stop` is
/// true. After an error the model is unchanged, with the exception that AddedFileStaging::publish
/// describes.
Result<PlanesAdded> add_planes(const std::string& model_dir, std::size_t threads,
                               const std::atomic<bool>& stop);

}  // namespace gloved::convert
