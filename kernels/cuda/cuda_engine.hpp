// The engine that keeps the model on one or several NVIDIA GPUs.
#pragma once

#include <memory>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/registry.hpp"

namespace gloved::kernels::cuda {

/// Why no cuda engine can run on this machine, for people; empty when one can. Error: device, when
/// there seems to be a GPU and the driver fails: no reason to take another engine in silence.
Result<std::string> why_unavailable();

/// Copies `model`, which must outlive the engine, to the devices of `options`. Errors: unavailable
/// for a device that does not exist or is too old, or too little device memory; device when a call
/// fails.
Result<std::unique_ptr<Engine>> make_cuda_engine(const format::Model& model,
                                                 const EngineOptions& options);

}  // namespace gloved::kernels::cuda
