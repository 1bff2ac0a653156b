// Copies a model's vectors from its mapped file to the shards of a cuda engine.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/shard.hpp"

namespace gloved::kernels::cuda {

/// How an upload went.
struct UploadFacts {
    bool pinned = false;  ///< all pages were locked while they were copied
    double pin_ms = 0;    ///< locking and unlocking pages, including reads of the file's pages
    double total_ms = 0;  ///< all of upload_vectors
};

/// Bytes of device memory that an upload to a shard needs besides the shard's own, until it ends.
std::size_t upload_bytes_needed(std::size_t rows, std::size_t dim);

/// Copies the vectors of all shards of `model`, to all devices side by side. With `pin`, page-locks
/// one piece of the mapped file after the other, each while those before it are copied. If the
/// driver refuses, `log` gets a line, and the rest is copied from pageable memory. All locks are
/// released at the end. Error: device.
Result<UploadFacts> upload_vectors(const format::Model& model, std::span<Shard* const> shards,
                                   bool pin, const std::function<void(const std::string&)>& log);

}  // namespace gloved::kernels::cuda
