// The cuda engine: answers queries on one or several NVIDIA GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels::cuda {

/// Why no cuda engine can run on this machine; empty if one can. Error: device, if there seems to
/// be a GPU but the driver fails; the caller must then not choose another engine silently.
Result<std::string> why_unavailable();

/// The number of devices that the driver shows; 0 without a driver, and if it fails.
std::size_t device_count();

/// Makes an engine and copies `model`, which must outlive it, to the devices of `options`. Errors:
/// unavailable, if a device does not exist, is too old or has too little memory; device, if a CUDA
/// call fails.
Result<std::unique_ptr<Engine>> make_cuda_engine(const format::Model& model,
                                                 const EngineOptions& options);

}  // namespace gloved::kernels::cuda
