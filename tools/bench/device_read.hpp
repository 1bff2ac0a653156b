// Facts about a GPU, and how fast it reads its own memory. Plain C++; in a build without CUDA every
// function returns unavailable.
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
    double start_ms = 0;      ///< of the call; the first one starts the driver and the context
    std::uint64_t bytes = 0;  ///< of memory
};

/// Starts the device. Errors: unavailable (a build without CUDA, no driver, no such device),
/// device.
Result<DeviceFacts> start_device(int device);

/// Memory of the device that all processes use (cudaMemGetInfo). Errors: as above.
Result<std::uint64_t> device_bytes_in_use(int device);

/// A plain read of as many bytes as a model's vectors have: the ceiling for searches that read them
/// all. Not thread-safe.
class DeviceReader {
  public:
    /// Allocates and fills a buffer of `bytes`, or of a quarter of the free memory if that is less,
    /// and finds the fastest launch to read it. Errors: unavailable, device.
    static Result<DeviceReader> create(std::size_t bytes, int device);

    DeviceReader(DeviceReader&&) noexcept;
    DeviceReader& operator=(DeviceReader&&) noexcept;
    ~DeviceReader();

    /// Reads the buffer once from the device's memory into registers, which empties its caches.
    /// Returns milliseconds by the device's events for the `bytes` of `create`, scaled if the
    /// buffer is smaller.
    Result<double> read_ms();
    /// A line for people: how it reads.
    const std::string& description() const;

  private:
    struct State;
    explicit DeviceReader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace gloved::bench
