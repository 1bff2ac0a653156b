// The device as the benchmark sees it: what it is, how fast it reads its own memory, how much of
// that is in use. Plain C++; a build without CUDA has the same functions, which all say that there
// is no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/result.hpp"

namespace gloved::bench {

struct DeviceFacts {
    std::string name;         ///< «NVIDIA H100 80GB HBM3»
    std::string driver;       ///< «580.159.04, CUDA 13.0; runtime 13.0»
    double start_ms = 0;      ///< what the call took: the first in a process starts the driver and
                              ///< makes the context
    std::uint64_t bytes = 0;  ///< of memory
};

/// Makes the device ready for use. Errors: unavailable (a build without CUDA, no driver, no such
/// device), device.
Result<DeviceFacts> start_device(int device);

/// Memory in use on the device, by all processes together (cudaMemGetInfo). Errors: as above.
Result<std::uint64_t> device_bytes_in_use(int device);

/// A plain read of as many bytes as a model's vectors have: the ceiling for everything that reads
/// them all. Not safe for concurrent use.
class DeviceReader {
  public:
    /// Allocates and fills a buffer of `bytes`, or of a quarter of what is free where that is less,
    /// and finds the launch that reads it fastest. Errors: unavailable, device.
    static Result<DeviceReader> create(std::size_t bytes, int device);

    DeviceReader(DeviceReader&&) noexcept;
    DeviceReader& operator=(DeviceReader&&) noexcept;
    ~DeviceReader();

    /// Reads the buffer once, from the device's memory into registers and no further; what lay in
    /// its caches is gone afterwards. Milliseconds by the device's events, for the `bytes` of
    /// `create`: scaled where the buffer is smaller.
    Result<double> read_ms();
    /// How it reads, in a line for people.
    const std::string& description() const;

  private:
    struct State;
    explicit DeviceReader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace gloved::bench
