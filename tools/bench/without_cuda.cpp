// device_read.hpp and museum.hpp for a build without CUDA.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "common/result.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/museum.hpp"

namespace gloved::bench {
namespace {

Error none() { return {ErrorCode::unavailable, "this build has no CUDA"}; }

}  // namespace

struct DeviceReader::State {
    std::string description;
};

Result<DeviceFacts> start_device(int) { return none(); }
Result<DeviceReader> DeviceReader::create(std::size_t, int) { return none(); }

DeviceReader::DeviceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceReader::DeviceReader(DeviceReader&&) noexcept = default;
DeviceReader& DeviceReader::operator=(DeviceReader&&) noexcept = default;
DeviceReader::~DeviceReader() = default;
Result<double> DeviceReader::read_ms() { return none(); }
const std::string& DeviceReader::description() const { return state_->description; }

Status print_museum(const MuseumSettings&) {
    return Error{ErrorCode::unavailable, "this build has no CUDA, which the museum's kernels need"};
}

}  // namespace gloved::bench
