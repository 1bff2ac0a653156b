#include "kernels/reduce/registry.hpp"

#include "kernels/reduce/host_reducers.hpp"
#ifdef GLOVED_HAVE_CUDA
#include "kernels/cuda/cuda_engine.hpp"
#include "kernels/cuda/reduce/device_reducer.hpp"
#endif

namespace gloved::kernels::reduce {
namespace {

template <class T>
struct Maker {
    const char* name;
    Result<std::string> (*unavailable)();
    Result<std::unique_ptr<Reducer<T>>> (*make)(const ReducerOptions& options);
};

Result<std::string> never_unavailable() { return std::string(); }

#ifdef GLOVED_HAVE_CUDA
constexpr auto device_unavailable = cuda::why_unavailable;
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_device(const ReducerOptions& options) {
    return cuda::make_device_reducer<T>(options);
}
#else
constexpr const char* kNotBuilt = "this build has no CUDA engine";
Result<std::string> device_unavailable() { return std::string(kNotBuilt); }
template <class T>
Result<std::unique_ptr<Reducer<T>>> make_device(const ReducerOptions&) {
    return Error{ErrorCode::unavailable, kNotBuilt};
}
#endif

template <class T>
constexpr Maker<T> kMakers[] = {
    {"cuda", device_unavailable, make_device<T>},
    {"cpu", never_unavailable, make_cpu_reducer<T>},
};

}  // namespace

std::vector<MakerEntry> list_reducers() { return entries_of(kMakers<double>); }

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_reducer(const std::string& name,
                                                 const ReducerOptions& options) {
    const auto maker = choose_maker(kMakers<T>, name, false);
    if (!maker) return maker.error();
    return (*maker)->make(options);
}

template Result<std::unique_ptr<Reducer<float>>> make_reducer(const std::string&,
                                                              const ReducerOptions&);
template Result<std::unique_ptr<Reducer<double>>> make_reducer(const std::string&,
                                                               const ReducerOptions&);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_reducer(const std::string&,
                                                                     const ReducerOptions&);

}  // namespace gloved::kernels::reduce
