#include "kernels/registry.hpp"

#include <fmt/format.h>

#include "kernels/cpu/cpu_engine.hpp"
#include "kernels/cpu/dots.hpp"
#ifdef GLOVED_HAVE_CUDA
#include "kernels/cuda/cuda_engine.hpp"
#endif

namespace gloved::kernels {
namespace {

struct Maker {
    EngineKind kind;
    Result<std::string> (*unavailable)();
    Result<std::unique_ptr<Engine>> (*make)(const format::Model& model,
                                            const EngineOptions& options);
};

/// In order of preference.
constexpr Maker kMakers[] = {
#ifdef GLOVED_HAVE_CUDA
    {EngineKind::cuda, cuda::why_unavailable, cuda::make_cuda_engine},
#else
    {EngineKind::cuda,
     []() -> Result<std::string> { return std::string("this build has no CUDA engine"); }, nullptr},
#endif
    {EngineKind::cpu, []() -> Result<std::string> { return std::string(); }, cpu::make_cpu_engine},
};

/// The maker of the preferred engine of that kind that can run here.
Result<const Maker*> choose_maker(std::optional<EngineKind> kind) {
    std::string reason_text;
    for (const Maker& maker : kMakers) {
        if (kind && maker.kind != *kind) continue;
        const auto reason = maker.unavailable();
        // A device that fails is no reason to take the next engine in silence.
        if (!reason) return reason.error();
        if (reason->empty()) return &maker;
        reason_text = fmt::format("engine '{}' cannot run: {}", to_string(maker.kind), *reason);
    }
    return Error{ErrorCode::unavailable, reason_text};
}

}  // namespace

std::vector<EngineEntry> list_engines() {
    std::vector<EngineEntry> entries;
    for (const Maker& maker : kMakers) {
        const auto reason = maker.unavailable();
        entries.push_back(
            {maker.kind, reason ? *reason : reason.error().message, maker.make != nullptr});
    }
    return entries;
}

Result<EngineKind> choose_engine(std::optional<EngineKind> kind) {
    const auto maker = choose_maker(kind);
    return maker ? Result<EngineKind>((*maker)->kind) : maker.error();
}

Result<std::unique_ptr<Engine>> make_engine(std::optional<EngineKind> kind,
                                            const format::Model& model,
                                            const EngineOptions& options) {
    const auto maker = choose_maker(kind);
    return maker ? (*maker)->make(model, options) : maker.error();
}

std::size_t count_devices() {
#ifdef GLOVED_HAVE_CUDA
    return cuda::device_count();
#else
    return 0;
#endif
}

std::size_t count_devices(const DeviceChoice& devices) {
    return devices.all ? count_devices() : devices.numbers.size();
}

std::vector<std::string> simd_names() {
    std::vector<std::string> names;
    for (const cpu::DotKernel* kernel : cpu::all_dot_kernels()) {
        if (kernel->supported()) names.emplace_back(kernel->name);
    }
    return names;
}

}  // namespace gloved::kernels
