// Which engines there are, and which one runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels {

/// One kind of engine.
struct EngineEntry {
    EngineKind kind = EngineKind::cpu;
    /// Why it cannot run on this machine; empty when it can.
    std::string unavailable;
};

/// Lists every kind of engine, in order of preference.
std::vector<EngineEntry> list_engines();

/// Makes an engine of `kind`, or where that is nothing the first one that can run. The model must
/// outlive it. Errors: unavailable, for a kind that cannot run here; device, when a GPU refuses or
/// fails; never another engine than the one that was asked for.
Result<std::unique_ptr<Engine>> make_engine(std::optional<EngineKind> kind,
                                            const format::Model& model,
                                            const EngineOptions& options);

/// The instruction sets of the cpu engine that this processor has, best first: «avx512», «avx2»,
/// «baseline».
std::vector<std::string> simd_names();

}  // namespace gloved::kernels
