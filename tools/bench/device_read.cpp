#include "tools/bench/device_read.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <limits>
#include <utility>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "kernels/cuda/runtime.hpp"
#include "tools/bench/device_read_launch.hpp"

namespace gloved::bench {
namespace {

using kernels::cuda::check;
using kernels::cuda::DeviceBuffer;
using kernels::cuda::Event;
using kernels::cuda::free_device_bytes;
using kernels::cuda::processors_of;
using kernels::cuda::Stream;
using kernels::cuda::use_device;

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// The driver's version, as «580.159.04», or empty if it is unknown.
std::string kernel_driver() {
    std::ifstream file("/proc/driver/nvidia/version");
    std::string word;
    for (bool after_module = false; file >> word;) {
        if (after_module && word.find_first_not_of("0123456789.") == std::string::npos) return word;
        after_module = after_module || word == "Module";
    }
    return {};
}

}  // namespace

struct DeviceReader::State {
    int device = 0;
    double scale = 1;  // requested bytes / bytes of the buffer
    Stream stream;
    Event begin, end;
    DeviceBuffer<std::byte> buffer;
    DeviceBuffer<std::uint32_t> sink;
    unsigned blocks = 1;
    std::string description;

    Result<double> time_read(unsigned grid) {
        if (Status used = use_device(device); !used) return used.error();
        if (Status done = begin.record(stream); !done) return done.error();
        const int launch = launch_read(buffer.data(), buffer.size() / kReadWordBytes, grid,
                                       sink.data(), stream.get());
        const Status launched = check(static_cast<cudaError_t>(launch), "launch_read");
        if (!launched) return launched.error();
        if (Status done = end.record(stream); !done) return done.error();
        if (Status done = end.synchronize(); !done) return done.error();
        const auto ms = kernels::cuda::elapsed_ms(begin, end);
        if (!ms) return ms.error();
        return static_cast<double>(*ms) * scale;
    }
};

Result<DeviceFacts> start_device(int device) {
    const auto begin = std::chrono::steady_clock::now();
    int count = 0;
    if (Status counted = check(cudaGetDeviceCount(&count), "cudaGetDeviceCount"); !counted) {
        return Error{ErrorCode::unavailable, counted.error().message};
    }
    if (device < 0 || device >= count) {
        return error_with(ErrorCode::unavailable, "there is no device {}: there are {}", device,
                          count);
    }
    if (Status used = use_device(device); !used) return used.error();
    // Creates the context now, not in the first call that needs it.
    if (Status made = check(cudaFree(nullptr), "cudaFree"); !made) return made.error();
    DeviceFacts facts;
    facts.start_ms = ms_since(begin);
    cudaDeviceProp properties{};
    const Status described =
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    if (!described) return described.error();
    int driver = 0;
    int runtime = 0;
    if (Status got = check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion"); !got)
        return got.error();
    if (Status got = check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion"); !got)
        return got.error();
    const std::string kernel = kernel_driver();
    facts.name = properties.name;
    facts.driver = fmt::format("{}{}CUDA {}; runtime {}", kernel, kernel.empty() ? "" : ", ",
                               version(driver), version(runtime));
    facts.bytes = properties.totalGlobalMem;
    return facts;
}

Result<DeviceReader> DeviceReader::create(std::size_t bytes, int device) {
    auto state = std::make_unique<State>();
    state->device = device;
    if (Status used = use_device(device); !used) return used.error();
    const auto free_bytes = free_device_bytes();
    if (!free_bytes) return free_bytes.error();
    const std::size_t words =
        std::max<std::size_t>(1, std::min(bytes, *free_bytes / 4) / kReadWordBytes);
    state->scale = static_cast<double>(bytes) / static_cast<double>(words * kReadWordBytes);

    Status made = move_into(state->stream, Stream::create());
    if (made) made = move_into(state->begin, Event::create());
    if (made) made = move_into(state->end, Event::create());
    if (made) made = move_into(state->buffer, state->buffer.allocate(words * kReadWordBytes));
    if (made) made = move_into(state->sink, state->sink.allocate(1));
    if (!made) return made.error();

    const auto processors = processors_of(device);
    if (!processors) return processors.error();
    const auto many = static_cast<unsigned>(*processors);
    const Status filled = check(static_cast<cudaError_t>(launch_fill(
                                    state->buffer.data(), words, many * 8, state->stream.get())),
                                "launch_fill");
    if (!filled) return filled.error();

    // No search may be faster than the ceiling, so try several launches and keep the fastest.
    const auto tiles = static_cast<unsigned>(std::min<std::size_t>(
        (words + kReadTile - 1) / kReadTile, std::numeric_limits<int>::max()));
    const std::array<unsigned, 5> grids = {many * 2, many * 4, many * 8, many * 32, tiles};
    double best = std::numeric_limits<double>::infinity();
    for (const unsigned grid : grids) {
        for (int i = 0; i < 5; ++i) {
            const auto ms = state->time_read(std::min(grid, tiles));
            if (!ms) return ms.error();
            if (i > 0 && *ms < best) {
                best = *ms;
                state->blocks = std::min(grid, tiles);
            }
        }
    }
    state->description =
        fmt::format("{} blocks of {} threads, {} loads of 16 bytes under way in each",
                    state->blocks, kReadThreads, kReadLoads);
    if (words * kReadWordBytes + kReadWordBytes <= bytes) {
        state->description += fmt::format("; read {:.3f} GB and scaled, for want of memory",
                                          static_cast<double>(words * kReadWordBytes) / 1e9);
    }
    return DeviceReader(std::move(state));
}

DeviceReader::DeviceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceReader::DeviceReader(DeviceReader&&) noexcept = default;
DeviceReader& DeviceReader::operator=(DeviceReader&&) noexcept = default;
DeviceReader::~DeviceReader() = default;

Result<double> DeviceReader::read_ms() { return state_->time_read(state_->blocks); }

const std::string& DeviceReader::description() const { return state_->description; }

}  // namespace gloved::bench
