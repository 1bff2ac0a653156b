// The engine that answers queries on one or several NVIDIA GPUs.
#pragma once

#include <memory>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels::cuda {

/// Why no cuda engine can run on this machine; empty when one can. Error: device, when there seems
/// to be a GPU and the driver fails: the caller must not take another engine silently.
Result<std::string> why_unavailable();

/// Makes an engine and copies `model`, which must outlive it, to the devices of `options`. Errors:
/// unavailable for a device that does not exist or is too old, or too little device memory; device
/// when a call fails.
Result<std::unique_ptr<Engine>> make_cuda_engine(const format::Model& model,
                                                 const EngineOptions& options);

}  // namespace gloved::kernels::cuda
