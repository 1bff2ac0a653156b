#include "kernels/registry.hpp"

#include <fmt/format.h>

#include "kernels/cpu/cpu_engine.hpp"
#include "kernels/cpu/scan.hpp"
#ifdef GLOVED_HAVE_CUDA
#include "kernels/cuda/cuda_engine.hpp"
#endif

namespace gloved::kernels {
namespace {

struct Maker {
    const char* name;
    Result<std::string> (*unavailable)();
    Result<std::unique_ptr<Engine>> (*make)(const format::Model& model, const EngineOptions& options);
};

/// In order of preference.
constexpr Maker kMakers[] = {
#ifdef GLOVED_HAVE_CUDA
    {"cuda", cuda::why_unavailable, cuda::make_cuda_engine},
#else
    {"cuda", []() -> Result<std::string> { return std::string("this build has no CUDA engine"); },
     [](const format::Model&, const EngineOptions&) -> Result<std::unique_ptr<Engine>> {
         return Error{ErrorCode::unavailable, "this build has no CUDA engine"};
     }},
#endif
    {"cpu", []() -> Result<std::string> { return std::string(); }, cpu::make_cpu_engine},
};

}  // namespace

std::vector<EngineEntry> list_engines() {
    std::vector<EngineEntry> entries;
    for (const Maker& maker : kMakers) {
        const auto unavailable = maker.unavailable();
        entries.push_back({maker.name, unavailable ? *unavailable : unavailable.error().message});
    }
    return entries;
}

Result<std::unique_ptr<Engine>> make_engine(const std::string& name, const format::Model& model,
                                            const EngineOptions& options) {
    std::string names;
    for (const Maker& maker : kMakers) {
        names += fmt::format(", {}", maker.name);
        if (name != "auto" && name != maker.name) continue;
        const auto unavailable = maker.unavailable();
        // A device that fails is no reason to take the next engine in silence.
        if (!unavailable) return unavailable.error();
        if (unavailable->empty()) return maker.make(model, options);
        if (name == maker.name) {
            return Error{ErrorCode::unavailable, fmt::format("engine '{}' cannot run: {}", name, *unavailable)};
        }
    }
    return Error{ErrorCode::unavailable, fmt::format("no engine '{}': there are auto{}", name, names)};
}

std::vector<std::string> simd_names() {
    std::vector<std::string> names;
    for (const cpu::ScanKernels* kernels : cpu::all_scan_kernels()) {
        if (kernels->supported()) names.emplace_back(kernels->name);
    }
    return names;
}

}  // namespace gloved::kernels
