// The cpu engine: searches the mapped model with the processor's vector instructions.
#pragma once

#include <memory>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels::cpu {

/// Makes a cpu engine on `model`, which must outlive it. Error: unavailable, if the instruction set
/// of `options` is unknown or this processor lacks it.
Result<std::unique_ptr<Engine>> make_cpu_engine(const format::Model& model,
                                                const EngineOptions& options);

}  // namespace gloved::kernels::cpu
