#include "kernels/distance/registry.hpp"

#include "kernels/distance/cpu.hpp"
#ifdef GLOVED_HAVE_CUDA
#include "kernels/cuda/cuda_engine.hpp"
#include "kernels/cuda/distance/device_distance.hpp"
#endif

namespace gloved::kernels::distance {
namespace {

using Made = Result<std::unique_ptr<Engine>>;

#ifdef GLOVED_HAVE_CUDA
constexpr auto why_device_unavailable = cuda::why_unavailable;
constexpr auto make_on_device = cuda::make_device_distance;
#else
constexpr const char* kNoCuda = "this build has no CUDA engine";
Result<std::string> why_device_unavailable() { return std::string(kNoCuda); }
Made make_on_device(PointsView, Metric, const DistanceOptions&) {
    return Error{ErrorCode::unavailable, kNoCuda};
}
#endif

Result<std::string> always_available() { return std::string(); }

struct Maker {
    const char* name;
    Result<std::string> (*unavailable)();
    Made (*make)(PointsView points, Metric metric, const DistanceOptions& options);
};

/// In order of preference.
constexpr Maker kMakers[] = {
    {"cuda", why_device_unavailable, make_on_device},
    {"cpu", always_available, make_cpu},
};

}  // namespace

std::vector<MakerEntry> list_distance_engines() { return entries_of(kMakers); }

Result<std::unique_ptr<Engine>> make_distance_engine(const std::string& name, PointsView points,
                                                     Metric metric,
                                                     const DistanceOptions& options) {
    const auto maker = choose_maker(kMakers, name, true);
    if (!maker) return maker.error();
    return (*maker)->make(points, metric, options);
}

}  // namespace gloved::kernels::distance
