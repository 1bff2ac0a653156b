// What fake_runtime.cpp and fake_launches.cpp share. Tests include fake_cuda.hpp instead.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace gloved::tests::fake_cuda {

/// Ends the program: the code under test has misused the GPU.
[[noreturn]] void misuse(const std::string& what);

/// A call of a launch function. Construction counts it and decides whether it fails.
class Launch {
  public:
    /// Aborts unless `stream` is alive and of the calling thread's current device.
    Launch(const char* name, cudaStream_t stream);

    bool failed() const { return code_ != cudaSuccess; }
    cudaError_t code() const { return code_; }

    /// The storage behind device memory at `address`, to the end of its allocation: `count`
    /// elements or more. Empty for no elements at nullptr. Aborts unless they are in one allocation
    /// on the stream's device.
    template <class T>
    std::span<T> device(T* address, std::size_t count, const char* what) const {
        std::size_t bytes = 0;
        void* const storage = resolve_device(address, count * sizeof(T), alignof(T), what, bytes);
        return {static_cast<T*>(storage), bytes / sizeof(T)};
    }
    /// The same for page-locked host memory, which has one address on all devices.
    template <class T>
    std::span<T> pinned(T* address, std::size_t count, const char* what) const {
        check_pinned(address, count * sizeof(T), what);
        return {address, count};
    }
    /// Whether an address is in device memory, allocated or not.
    bool is_device_memory(const void* address) const;
    /// Enqueues the work.
    cudaError_t run(std::function<void()> work) const;
    /// Aborts with the launch's name unless `holds`.
    void require(bool holds, const char* what) const;

  private:
    void* resolve_device(const volatile void* address, std::size_t bytes, std::size_t alignment,
                         const char* what, std::size_t& available) const;
    void check_pinned(const void* address, std::size_t bytes, const char* what) const;

    const char* name_;
    cudaStream_t stream_;
    int device_ = 0;
    cudaError_t code_ = cudaSuccess;
};

/// Counts a call of load_kernels, and what it returns.
cudaError_t load();

/// Settings::plane_pass_capacity.
std::uint32_t plane_pass_capacity();

}  // namespace gloved::tests::fake_cuda
