// Facts about a GPU, and how fast it reads its own memory, for gloved-bench. Needs no CUDA headers;
// without CUDA all functions that give a Result return `unavailable`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/result.hpp"

namespace gloved::bench {

/// Facts about a GPU.
struct DeviceFacts {
    std::string name;         ///< «NVIDIA H100 80GB HBM3»
    std::string driver;       ///< «580.159.04, CUDA 13.0; runtime 13.0»
    double start_ms = 0;      ///< time of start_device; the first call starts the driver
    std::uint64_t bytes = 0;  ///< size of its memory
};

/// Starts the device with this number. Errors: unavailable (a build without CUDA, no driver, no
/// such device); device.
Result<DeviceFacts> start_device(int device);

/// Times a plain read of as many bytes as a model's vectors have. No search that reads all vectors
/// can be faster. Not safe for concurrent use.
class DeviceReader {
  public:
    /// Allocates and fills a buffer of `bytes`, or of a quarter of the free memory if that is less,
    /// and finds the fastest launch to read it. Errors: unavailable, device.
    static Result<DeviceReader> create(std::size_t bytes, int device);

    DeviceReader(DeviceReader&&) noexcept;
    DeviceReader& operator=(DeviceReader&&) noexcept;
    ~DeviceReader();

    /// Reads the buffer once from the device's memory into registers. Evicts older data from the
    /// device's caches.
    /// Returns the milliseconds, measured by CUDA events, scaled up to the `bytes` of `create` if
    /// the buffer is smaller. Error: device.
    Result<double> read_ms();
    /// A line for people about how the buffer is read.
    const std::string& description() const;

  private:
    struct State;
    explicit DeviceReader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace gloved::bench
