// Lists the engines of this build, chooses one that can run on this machine, and makes it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/device_choice.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::kernels {

/// A kind of engine in the list of all.
struct EngineEntry {
    EngineKind kind = EngineKind::cpu;
    /// Why it cannot run on this machine; empty when it can.
    std::string unavailable;
    bool is_built = true;  ///< this build has it
};

/// Lists every kind of engine, in order of preference.
std::vector<EngineEntry> list_engines();

/// The kind of engine that make_engine(kind, …) would make. The first call in a process may take
/// as long as a GPU's driver takes to start, a tenth of a second. Any thread may call it. Errors as
/// make_engine's.
Result<EngineKind> choose_engine(std::optional<EngineKind> kind);

/// Makes an engine of `kind`; for nullopt, of the first kind that can run here. The model must
/// outlive the engine. Errors: unavailable, for a kind that cannot run here; device, if a GPU
/// refuses or fails. After an error it does not try another kind.
Result<std::unique_ptr<Engine>> make_engine(std::optional<EngineKind> kind,
                                            const format::Model& model,
                                            const EngineOptions& options);

/// The number of GPUs that the driver shows, from 0 on, as EngineOptions::devices counts them. 0 in
/// a build without CUDA, without a driver, and if it fails.
std::size_t count_devices();
/// How many of them a choice names.
std::size_t count_devices(const DeviceChoice& devices);

/// The instruction sets of the cpu engine that this processor has, best first: of «avx512», «avx2»
/// and «baseline», or of «neon» and «baseline».
std::vector<std::string> simd_names();

}  // namespace gloved::kernels
