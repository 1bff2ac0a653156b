// The planes file of a model: beside values that are being written, or of a model that is there.
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
/// `name`, read-only and durable, with progress on a terminal. `path` is what messages call the
/// directory. The bytes depend on the values alone. Memory stays within some 8 MiB a thread,
/// whatever the size. Errors: io; interrupted once `stop` is set. After any of them the file is of
/// no use.
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

/// Gives the model `model_dir` a planes file, in the place of the one that it has, and changes
/// nothing else of it. Errors: those of Model::open, but for planes; conflict and io as
/// PlanesStaging has them; interrupted once `stop` is set. After an error the model is as it was,
/// with the exception that PlanesStaging::publish names.
Result<PlanesAdded> add_planes(const std::string& model_dir, std::size_t threads,
                               const std::atomic<bool>& stop);

}  // namespace gloved::convert
