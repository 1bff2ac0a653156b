// The cases that every engine must answer, on a GPU: whole, and shown as several.
#include <gtest/gtest.h>

#include "tests/gpu/device.hpp"
#include "tests/support/engine_cases.hpp"

namespace gloved::tests {
namespace {

EnginePath path_of(const std::string& name, std::vector<int> devices) {
    EnginePath path;
    path.name = name;
    path.make = [devices](const format::Model& model) {
        kernels::EngineOptions options;
        options.devices = devices;
        return require_engine("cuda", model, options);
    };
    path.why_skip = [] { return no_device() ? std::string(kNoDevice) : std::string(); };
    return path;
}

std::vector<EnginePath> gpu_paths() {
    return {path_of("one", {0}), path_of("two_shards", {0, 0}), path_of("five_shards", {0, 0, 0, 0, 0})};
}

const std::vector<Shape> kShapes = {{1, 1},     {1, 25},    {16, 1},    {97, 7},    {33, 301},  {2500, 25},
                                    {1003, 50}, {700, 100}, {500, 200}, {333, 300}, {64, 1025}, {40, 4096}};

INSTANTIATE_TEST_SUITE_P(Gpu, EveryPath, testing::ValuesIn(on_shapes(gpu_paths(), kShapes)), path_name);
INSTANTIATE_TEST_SUITE_P(Gpu, ManyTies, testing::ValuesIn(gpu_paths()), path_name);

}  // namespace
}  // namespace gloved::tests
