// Which engines there are, and which one runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels {

/// One kind of engine.
struct EngineEntry {
    std::string name;
    /// Why it cannot run on this machine; empty when it can.
    std::string unavailable;
};

/// Every engine that this build knows of, in order of preference; `auto` takes the first that is
/// available.
std::vector<EngineEntry> list_engines();

/// Makes the engine `name`, or for "auto" the first available one. The model must outlive it.
/// Errors: unavailable, for a name that does not exist or cannot run here; device, when a GPU
/// refuses or fails; never another engine than the one that was asked for.
Result<std::unique_ptr<Engine>> make_engine(const std::string& name, const format::Model& model,
                                            const EngineOptions& options);

/// The instruction sets of the cpu engine that this processor has, best first: «avx512», «avx2»,
/// «baseline».
std::vector<std::string> simd_names();

}  // namespace gloved::kernels
