// The engine that scans the mapped model with the processor's vector units.
#pragma once

#include <memory>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/registry.hpp"

namespace gloved::kernels::cpu {

/// Makes a cpu engine on `model`, which must outlive it. Error: unavailable, for an instruction set
/// that does not exist or that this processor lacks.
Result<std::unique_ptr<Engine>> make_cpu_engine(const format::Model& model,
                                                const EngineOptions& options);

}  // namespace gloved::kernels::cpu
