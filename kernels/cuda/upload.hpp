// Copies a model's vectors from the mapped file to its shards.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/shard.hpp"

namespace gloved::kernels::cuda {

/// How an upload went.
struct UploadFacts {
    bool pinned = false;  ///< all of it was page-locked while it was copied
    double pin_ms = 0;    ///< locking and unlocking pages, including reads of the file's pages
    double total_ms = 0;
};

/// Device memory that an upload takes beside the shard while it lasts.
std::size_t upload_bytes_needed(std::size_t rows, std::size_t dim);

/// Copies every shard's vectors. With `pin`, pieces of the mapping are page-locked one after the
/// other, each while those before it are copied. If the driver refuses, the log says so, and the
/// rest is copied pageable. All locks are released at the end. Errors: device.
Result<UploadFacts> upload_vectors(const format::Model& model,
                                   std::span<const std::unique_ptr<Shard>> shards, bool pin,
                                   const std::function<void(const std::string&)>& log);

}  // namespace gloved::kernels::cuda
