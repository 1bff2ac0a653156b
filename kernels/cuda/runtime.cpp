#include "kernels/cuda/runtime.hpp"

#include <unistd.h>

#include <cstdint>

#include "common/error_with.hpp"

namespace gloved::kernels::cuda {

Status check(cudaError_t code, const char* call) {
    if (code == cudaSuccess) return {};
    (void)cudaGetLastError();
    return error_with(ErrorCode::device, "{}: {} ({})", call, cudaGetErrorString(code),
                      cudaGetErrorName(code));
}

Status use_device(int device) { return check(cudaSetDevice(device), "cudaSetDevice"); }

Status use_existing_device(int device) {
    int devices = 0;
    if (Status counted = check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount"); !counted)
        return counted;
    if (device < 0 || device >= devices) {
        return error_with(ErrorCode::unavailable, "there is no device {}: there are {}", device,
                          devices);
    }
    return use_device(device);
}

Result<std::size_t> free_device_bytes() {
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    if (Status got = check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo"); !got)
        return got.error();
    return free_bytes;
}

Result<int> processors_of(int device) {
    int processors = 0;
    const Status got =
        check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
              "cudaDeviceGetAttribute");
    if (!got) return got.error();
    return processors;
}

Result<Stream> Stream::create() {
    Stream stream;
    const Status made = check(cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking),
                              "cudaStreamCreateWithFlags");
    if (!made) return made.error();
    return stream;
}

Result<Event> Event::create() {
    Event event;
    if (Status made = check(cudaEventCreate(&event.event_), "cudaEventCreate"); !made)
        return made.error();
    return event;
}

Result<float> elapsed_ms(const Event& from, const Event& to) {
    float ms = 0;
    const Status read =
        check(cudaEventElapsedTime(&ms, from.get(), to.get()), "cudaEventElapsedTime");
    if (!read) return read.error();
    return ms;
}

Result<Registration> Registration::create(std::span<const std::byte> bytes, bool mapped) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    // Whole pages, from the start of the first.
    const std::size_t before = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
    const std::size_t size = (before + bytes.size() + page - 1) / page * page;
    // The runtime takes no pointer to const; cudaHostRegisterReadOnly keeps the promise.
    void* data = const_cast<std::byte*>(bytes.data() - before);
    Registration registration;
    const unsigned flags = cudaHostRegisterReadOnly | cudaHostRegisterPortable |
                           (mapped ? cudaHostRegisterMapped : 0U);
    const Status locked = check(cudaHostRegister(data, size, flags), "cudaHostRegister");
    if (!locked) return locked.error();
    registration.data_ = data;
    return registration;
}

Result<const std::byte*> Registration::device_address(const std::byte* address) {
    void* found = nullptr;
    // No pointer to const here either.
    const Status done = check(cudaHostGetDevicePointer(&found, const_cast<std::byte*>(address), 0),
                              "cudaHostGetDevicePointer");
    if (!done) return done.error();
    return static_cast<const std::byte*>(found);
}

}  // namespace gloved::kernels::cuda
