// RAII for the CUDA runtime: checked calls, streams, events, buffers, page locks. A resource
// belongs to the device that was current when it was created. Errors are `device` where a function
// does not say otherwise; destructors ignore them, since the device cannot be used after one
// anyway.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <utility>

#include "common/result.hpp"

namespace gloved::kernels::cuda {

/// Converts the result of a CUDA call to a Status. The error `device` names the `call` and the
/// driver's reason. Resets the runtime's last error (cudaGetLastError), so that it is not reported
/// twice.
Status check(cudaError_t code, const char* call);

/// Makes `device` current for the calling thread.
Status use_device(int device);

/// As use_device, but with error unavailable for a number that no device has.
Status use_existing_device(int device);

/// Free memory of the current device, in bytes.
Result<std::size_t> free_device_bytes();

Result<int> processors_of(int device);

/// Moves the value of `made` into `target`. After an error `target` is as before.
template <class T>
Status move_into(T& target, Result<T> made) {
    if (!made) return std::move(made).error();
    target = *std::move(made);
    return {};
}

/// Owns a CUDA stream.
class Stream {
  public:
    Stream() = default;
    Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Stream& operator=(Stream&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~Stream() {
        if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
    }
    /// Creates a stream that does not wait for the legacy default stream.
    static Result<Stream> create();

    cudaStream_t get() const { return stream_; }
    Status synchronize() const {
        return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

  private:
    cudaStream_t stream_ = nullptr;
};

/// Owns a CUDA event, which marks a point in a stream and its time.
class Event {
  public:
    Event() = default;
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event& operator=(Event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    ~Event() {
        if (event_ != nullptr) (void)cudaEventDestroy(event_);
    }
    static Result<Event> create();

    cudaEvent_t get() const { return event_; }
    Status record(const Stream& stream) const {
        return check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
    }
    Status synchronize() const {
        return check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    }
    /// What is enqueued on `stream` from now on waits for the event.
    Status hold_up(const Stream& stream) const {
        return check(cudaStreamWaitEvent(stream.get(), event_, 0), "cudaStreamWaitEvent");
    }

  private:
    cudaEvent_t event_ = nullptr;
};

/// Milliseconds between two events that have both completed.
Result<float> elapsed_ms(const Event& from, const Event& to);

/// Owns memory for `size()` elements of type T, which `Free` frees.
template <class T, cudaError_t (*Free)(void*)>
class Block {
  public:
    Block() = default;
    Block(Block&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    Block& operator=(Block&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~Block() {
        if (data_ != nullptr) (void)Free(data_);
    }

    T* data() const { return data_; }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }
    std::span<T> span() const { return {data_, count_}; }

  protected:
    Block(T* data, std::size_t count) : data_(data), count_(count) {}

  private:
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

/// Memory of the current device, not initialised.
template <class T>
class DeviceBuffer : public Block<T, cudaFree> {
  public:
    static constexpr bool kOnDevice = true;
    DeviceBuffer() = default;
    /// Allocates `count` elements. 0 makes an empty buffer without a CUDA call.
    static Result<DeviceBuffer> allocate(std::size_t count) {
        if (count == 0) return DeviceBuffer();
        void* data = nullptr;
        if (Status done = check(cudaMalloc(&data, count * sizeof(T)), "cudaMalloc"); !done)
            return done.error();
        return DeviceBuffer(static_cast<T*>(data), count);
    }

  private:
    using Block<T, cudaFree>::Block;
};

/// Page-locked host memory, not initialised. Every device can read and write it at the same
/// address.
template <class T>
class PinnedBuffer : public Block<T, cudaFreeHost> {
  public:
    static constexpr bool kOnDevice = false;
    PinnedBuffer() = default;
    static Result<PinnedBuffer> allocate(std::size_t count) {
        if (count == 0) return PinnedBuffer();
        void* data = nullptr;
        const Status allocated = check(
            cudaHostAlloc(&data, count * sizeof(T), cudaHostAllocPortable | cudaHostAllocMapped),
            "cudaHostAlloc");
        if (!allocated) return allocated.error();
        return PinnedBuffer(static_cast<T*>(data), count);
    }

  private:
    using Block<T, cudaFreeHost>::Block;
};

/// Keeps a read-only range of this process's memory page-locked while it lives.
class Registration {
  public:
    Registration() = default;
    Registration(Registration&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    Registration& operator=(Registration&& other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }
    ~Registration() {
        if (data_ != nullptr) (void)cudaHostUnregister(data_);
    }
    /// Locks the pages that contain `bytes`. `mapped`: devices can then read them in place. After
    /// an error, the driver's refusal, the device can still be used.
    static Result<Registration> create(std::span<const std::byte> bytes, bool mapped = false);
    /// The address at which the current device sees a byte that was locked with `mapped`.
    static Result<const std::byte*> device_address(const std::byte* address);

  private:
    void* data_ = nullptr;
};

/// Enqueues a copy of `count` elements, between host and device memory in any direction. May wait
/// if the host memory is pageable.
template <class T>
Status copy_async(T* to, const T* from, std::size_t count, const Stream& stream) {
    return check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream.get()),
                 "cudaMemcpyAsync");
}

}  // namespace gloved::kernels::cuda
