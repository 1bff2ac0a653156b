#include "kernels/registry.hpp"

#include "kernels/cpu/cpu_engine.hpp"
#include "kernels/cpu/scan.hpp"
#include "kernels/makers.hpp"
#ifdef GLOVED_HAVE_CUDA
#include "kernels/cuda/cuda_engine.hpp"
#endif

namespace gloved::kernels {
namespace {

struct Maker {
    const char* name;
    Result<std::string> (*unavailable)();
    Result<std::unique_ptr<Engine>> (*make)(const format::Model& model,
                                            const EngineOptions& options);
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

std::vector<EngineEntry> list_engines() { return entries_of(kMakers); }

Result<std::unique_ptr<Engine>> make_engine(const std::string& name, const format::Model& model,
                                            const EngineOptions& options) {
    const auto maker = choose_maker(kMakers, name, true);
    if (!maker) return maker.error();
    return (*maker)->make(model, options);
}

std::vector<std::string> simd_names() {
    std::vector<std::string> names;
    for (const cpu::ScanKernels* kernels : cpu::all_scan_kernels()) {
        if (kernels->supported()) names.emplace_back(kernels->name);
    }
    return names;
}

}  // namespace gloved::kernels
