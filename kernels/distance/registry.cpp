#include "kernels/distance/registry.hpp"

#include "kernels/distance/cpu.hpp"
#include "kernels/distance/sequential.hpp"
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
Made make_on_device(const std::string&, PointsView, Metric, const DistanceOptions&) {
    return Error{ErrorCode::unavailable, kNoCuda};
}
#endif

Result<std::string> always_available() { return std::string(); }
template <auto make>
Made make_on_host(const std::string&, PointsView points, Metric metric,
                  const DistanceOptions& options) {
    return make(points, metric, options);
}

struct Maker {
    const char* name;
    Result<std::string> (*unavailable)();
    Made (*make)(const std::string& name, PointsView points, Metric metric,
                 const DistanceOptions& options);
};

/// In order of preference.
constexpr Maker kMakers[] = {
    {"cuda", why_device_unavailable, make_on_device},
    {"cpu", always_available, make_on_host<make_cpu>},
    {"sequential", always_available, make_on_host<make_sequential>},
    {"global", why_device_unavailable, make_on_device},
    {"shared8", why_device_unavailable, make_on_device},
    {"shared16", why_device_unavailable, make_on_device},
    {"shared32", why_device_unavailable, make_on_device},
};

}  // namespace

std::vector<MakerEntry> list_distance_engines() { return entries_of(kMakers); }

Result<std::unique_ptr<Engine>> make_distance_engine(const std::string& name, PointsView points,
                                                     Metric metric,
                                                     const DistanceOptions& options) {
    const auto maker = choose_maker(kMakers, name, true);
    if (!maker) return maker.error();
    return (*maker)->make((*maker)->name, points, metric, options);
}

}  // namespace gloved::kernels::distance
