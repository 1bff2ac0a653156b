#include "kernels/registry.hpp"

#include <fmt/format.h>

#include "kernels/cpu/cpu_engine.hpp"
#include "kernels/cpu/scan.hpp"

namespace gloved::kernels {

std::vector<EngineEntry> list_engines() {
    return {
        {"cuda", "this build has no CUDA engine"},
        {"cpu", ""},
    };
}

Result<std::unique_ptr<Engine>> make_engine(const std::string& name, const format::Model& model,
                                            const EngineOptions& options) {
    std::string names;
    for (const EngineEntry& entry : list_engines()) {
        if (name == entry.name && !entry.unavailable.empty()) {
            return Error{ErrorCode::unavailable, fmt::format("engine '{}' cannot run: {}", name, entry.unavailable)};
        }
        if (entry.unavailable.empty() && (name == "auto" || name == entry.name)) {
            // The only engine so far that can be available.
            return cpu::make_cpu_engine(model, options);
        }
        names += (names.empty() ? "" : ", ") + entry.name;
    }
    return Error{ErrorCode::unavailable, fmt::format("no engine '{}': there are auto, {}", name, names)};
}

std::vector<std::string> simd_names() {
    std::vector<std::string> names;
    for (const cpu::ScanKernels* kernels : cpu::all_scan_kernels()) {
        if (kernels->supported()) names.emplace_back(kernels->name);
    }
    return names;
}

}  // namespace gloved::kernels
