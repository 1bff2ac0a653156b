// The functions of the CUDA runtime that the cuda engine's host code uses. If one does not link,
// add it here.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/fake_cuda/fake_device.hpp"

namespace gloved::tests::fake_cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPoison = 0xA5;
/// Alignment of cudaMalloc, and least gap between two allocations.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kArenaBytes = std::size_t{1} << 38;
/// Handles of streams and events are numbers that no pointer equals; they are not reused.
constexpr std::uintptr_t kFirstHandle = 0x1000;

struct Storage {
    explicit Storage(std::size_t bytes) : size(bytes) {
        if (::posix_memalign(&data, kAlignment, bytes) != 0) misuse("out of host memory");
        std::memset(data, kPoison, bytes);
    }
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    ~Storage() { ::free(data); }

    void* data = nullptr;
    std::size_t size = 0;
};

struct Allocation {
    int device = 0;
    std::unique_ptr<Storage> storage;
};

struct Stream;

/// An enqueued step: work, or a wait for another stream's first `awaited_steps` steps.
struct Step {
    std::function<void()> work;
    std::shared_ptr<Stream> awaited;
    std::uint64_t awaited_steps = 0;
};

struct Stream {
    int device = 0;
    std::deque<Step> pending;
    std::uint64_t enqueued = 0;
    std::uint64_t done = 0;
};

struct Event {
    int device = 0;
    bool timed = true;
    std::shared_ptr<Stream> stream;  // where it was recorded last; none before
    std::uint64_t steps = 0;         // of that stream, before the event
    std::shared_ptr<std::optional<Clock::time_point>> happened;
};

/// State of a thread. A state of an older generation means device 0 and success.
struct ThreadState {
    std::uint64_t generation = 0;
    int device = 0;
    cudaError_t last_error = cudaSuccess;
};

std::uint64_t number_from(const char* name, const std::string& text) {
    char* end = nullptr;
    const auto number = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0') misuse(fmt::format("{}={} is not a number", name, text));
    return number;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

Fault fault_from(const char* name) {
    const std::string text = variable(name);
    if (text.empty()) return {};
    const auto colon = text.find(':');
    if (colon == std::string::npos) misuse(fmt::format("{}={} is not «number:code»", name, text));
    return {number_from(name, text.substr(0, colon)),
            static_cast<int>(number_from(name, text.substr(colon + 1)))};
}

void hang_at_exit() {
    while (true) ::pause();
}

struct State {
    std::mutex mutex;
    Settings settings;
    bool announce = false;
    std::string arm_path;
    std::uint64_t generation = 1;
    std::uint64_t calls = 0;
    std::uint64_t launches = 0;
    std::map<std::string, std::uint64_t, std::less<>> counts;
    std::string injected;
    cudaError_t broken = cudaSuccess;  // a sticky error
    std::size_t hanging = 0;
    std::uint64_t releases = 0;
    std::condition_variable released;

    std::uintptr_t arena = 0;
    std::size_t arena_used = kAlignment;
    std::uintptr_t next_handle = kFirstHandle;
    std::map<std::uintptr_t, Allocation> allocations;
    std::map<std::uintptr_t, std::unique_ptr<Storage>> pinned;
    std::map<std::uintptr_t, std::size_t> registrations;
    std::map<std::uintptr_t, std::shared_ptr<Stream>> streams;
    std::map<std::uintptr_t, Event> events;

    State() {
        void* const reserved = ::mmap(nullptr, kArenaBytes, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (reserved == MAP_FAILED) misuse("cannot reserve addresses");
        arena = reinterpret_cast<std::uintptr_t>(reserved);

        constexpr const char* kDevices = "GLOVED_FAKE_CUDA_DEVICES";
        constexpr const char* kMemory = "GLOVED_FAKE_CUDA_MEMORY";
        if (const auto text = variable(kDevices); !text.empty()) {
            settings.devices = text == "-1" ? -1 : static_cast<int>(number_from(kDevices, text));
        }
        if (const auto text = variable(kMemory); !text.empty())
            settings.memory_bytes = number_from(kMemory, text);
        settings.refuse_pin = variable("GLOVED_FAKE_CUDA_REFUSE_PIN") == "1";
        settings.lazy = variable("GLOVED_FAKE_CUDA_LAZY") == "1";
        settings.call = fault_from("GLOVED_FAKE_CUDA_FAIL");
        settings.launch = fault_from("GLOVED_FAKE_CUDA_FAIL_LAUNCH");
        constexpr const char* kHang = "GLOVED_FAKE_CUDA_HANG";
        if (const auto text = variable(kHang); !text.empty())
            settings.hang_at = number_from(kHang, text);
        arm_path = variable("GLOVED_FAKE_CUDA_ARM");
        announce = settings.call.at != 0 || settings.launch.at != 0 || settings.hang_at != 0;
        if (variable("GLOVED_FAKE_CUDA_HANG_AT_EXIT") == "1") std::atexit(hang_at_exit);
    }

    ThreadState& thread() const {
        thread_local ThreadState mine;
        if (mine.generation != generation) mine = {generation, 0, cudaSuccess};
        return mine;
    }

    Live live() const {
        Live now{allocations.size(), 0, pinned.size(), registrations.size(), streams.size(),
                 events.size()};
        for (const auto& [address, allocation] : allocations)
            now.device_bytes += allocation.storage->size;
        return now;
    }

    std::size_t used_bytes(int device) const {
        std::size_t bytes = 0;
        for (const auto& [address, allocation] : allocations) {
            if (allocation.device == device) bytes += allocation.storage->size;
        }
        return bytes;
    }

    bool in_arena(std::uintptr_t address) const {
        return address >= arena && address < arena + kArenaBytes;
    }

    /// Enqueues work if lazy; otherwise the caller runs it without the lock.
    bool put_off(Stream& stream, Step step) {
        ++stream.enqueued;
        if (settings.lazy) {
            stream.pending.push_back(std::move(step));
            return true;
        }
        ++stream.done;
        return false;
    }

    /// Runs a stream's work up to a number of steps. Waits are for steps that were enqueued before
    /// them, so it ends.
    void finish(Stream& stream, std::uint64_t steps) {
        while (stream.done < steps && !stream.pending.empty()) {
            const Step step = std::move(stream.pending.front());
            stream.pending.pop_front();
            ++stream.done;
            if (step.awaited) finish(*step.awaited, step.awaited_steps);
            if (step.work) step.work();
        }
    }
    void finish(Stream& stream) { finish(stream, stream.enqueued); }
    void finish_all(int device = -1) {
        for (const auto& [handle, stream] : streams) {
            if (device < 0 || stream->device == device) finish(*stream);
        }
    }

    void break_down(cudaError_t code) {
        broken = code;
        for (const auto& [handle, stream] : streams) stream->pending.clear();
    }
};

State& state() {
    // Never destroyed: a program's statics may release device memory as it ends.
    static State* const shared = new State;
    return *shared;
}

enum class Kind { can_fail, releases, launch, never_fails };

/// One call of a runtime or launch function: holds the lock, counts, and decides whether it fails.
class Call {
  public:
    Call(const char* name, Kind kind) : name_(name), shared_(state()), lock_(shared_.mutex) {
        ++shared_.counts[name];
        // Every call fails without a device or driver; only sticky errors fail releasing calls.
        if (kind != Kind::never_fails && shared_.settings.devices <= 0) {
            fail(shared_.settings.devices < 0 ? cudaErrorInsufficientDriver : cudaErrorNoDevice);
            return;
        }
        const bool counted = kind == Kind::can_fail || kind == Kind::launch;
        const bool armed =
            shared_.arm_path.empty() || ::access(shared_.arm_path.c_str(), F_OK) == 0;
        if (counted && armed) {
            ++shared_.calls;
            if (kind == Kind::launch) ++shared_.launches;
            if (shared_.calls == shared_.settings.hang_at) hang();
            if (shared_.broken == cudaSuccess) {
                if (shared_.calls == shared_.settings.call.at) inject(shared_.settings.call.code);
                if (kind == Kind::launch && shared_.launches == shared_.settings.launch.at) {
                    inject(shared_.settings.launch.code);
                }
            }
        }
        if (shared_.broken != cudaSuccess && kind != Kind::never_fails) fail(shared_.broken);
    }

    State& shared() { return shared_; }
    ThreadState& thread() { return shared_.thread(); }
    const char* name() const { return name_; }
    bool failed() const { return code_ != cudaSuccess; }
    cudaError_t code() const { return code_; }
    /// Stores the error as the thread's last one and returns it.
    cudaError_t fail(cudaError_t code) {
        code_ = code;
        shared_.thread().last_error = code;
        return code;
    }
    [[noreturn]] void misused(const std::string& how) const {
        misuse(fmt::format("{}: {}", name_, how));
    }
    void unlock() { lock_.unlock(); }

    void check_device(int device) const {
        if (device < 0 || device >= shared_.settings.devices)
            misused(fmt::format("there is no device {}", device));
    }

    std::shared_ptr<Stream> stream_of(cudaStream_t handle) const {
        if (handle == nullptr) misused("the default stream, which everything waits for");
        const auto at = shared_.streams.find(reinterpret_cast<std::uintptr_t>(handle));
        if (at == shared_.streams.end()) misused("no such stream, or one that has been destroyed");
        return at->second;
    }

    Event& event_of(cudaEvent_t handle) const {
        const auto at = shared_.events.find(reinterpret_cast<std::uintptr_t>(handle));
        if (at == shared_.events.end()) misused("no such event, or one that has been destroyed");
        return at->second;
    }

    /// Storage of `bytes` at a device address; nullptr for a host address.
    void* storage_of(std::uintptr_t address, std::size_t bytes, int device,
                     std::size_t* available = nullptr) const {
        if (!shared_.in_arena(address)) return nullptr;
        auto at = shared_.allocations.upper_bound(address);
        if (at == shared_.allocations.begin()) misused("device memory that is not allocated");
        --at;
        const auto& [base, allocation] = *at;
        const std::size_t offset = address - base;
        const std::size_t size = allocation.storage->size;
        // No bytes at the end of an allocation are within it.
        if (offset >= size && !(bytes == 0 && offset == size))
            misused("device memory that is not allocated, or no more");
        if (bytes > size - offset) {
            misused(
                fmt::format("{} bytes from byte {} of an allocation of {}", bytes, offset, size));
        }
        if (allocation.device != device) {
            misused(fmt::format("memory of device {} on a stream of device {}", allocation.device,
                                device));
        }
        if (available != nullptr) *available = size - offset;
        return static_cast<std::byte*>(allocation.storage->data) + offset;
    }

    /// Whether a range is page-locked. Aborts where only a part is; the driver refuses that.
    bool page_locked(std::uintptr_t address, std::size_t bytes) const {
        const auto inside = [&](std::uintptr_t base, std::size_t size) {
            if (address >= base + size || address + bytes <= base) return false;
            if (address < base || address + bytes > base + size)
                misused("host memory that is page-locked in part");
            return true;
        };
        bool locked = false;
        for (const auto& [base, storage] : shared_.pinned)
            locked = inside(base, storage->size) || locked;
        for (const auto& [base, size] : shared_.registrations)
            locked = inside(base, size) || locked;
        return locked;
    }

  private:
    /// Hangs without the lock, so that other threads continue.
    void hang() {
        if (shared_.announce) {
            std::fprintf(stderr, "fake cuda: call %" PRIu64 " (%s) hangs\n", shared_.calls, name_);
        }
        ++shared_.hanging;
        shared_.released.wait(
            lock_, [this, before = shared_.releases] { return shared_.releases > before; });
        --shared_.hanging;
    }

    void inject(int code) {
        shared_.injected = name_;
        if (shared_.announce) {
            std::fprintf(stderr, "fake cuda: call %" PRIu64 " (%s) returns %d\n", shared_.calls,
                         name_, code);
        }
        if (is_sticky(code)) {
            shared_.break_down(static_cast<cudaError_t>(code));
        } else {
            fail(static_cast<cudaError_t>(code));
        }
    }

    const char* const name_;
    State& shared_;
    std::unique_lock<std::mutex> lock_;
    cudaError_t code_ = cudaSuccess;
};

struct ErrorText {
    cudaError_t code;
    const char* name;
    const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHardwareStackError, "cudaErrorHardwareStackError", "hardware stack error"},
    {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction",
     "an illegal instruction was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorInvalidAddressSpace, "cudaErrorInvalidAddressSpace",
     "operation not supported on global/shared address space"},
    {cudaErrorInvalidPc, "cudaErrorInvalidPc", "invalid program counter"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* text_of(cudaError_t code) {
    const auto* const at = std::find_if(std::begin(kErrors), std::end(kErrors),
                                        [&](const ErrorText& error) { return error.code == code; });
    return at == std::end(kErrors) ? nullptr : at;
}

/// Attributes of the fake devices, large enough for every pass.
constexpr int kProcessors = 4;
constexpr int kSharedBytes = 227 * 1024;
constexpr int kSharedBytesProcessor = 228 * 1024;
constexpr int kPlainSharedBytes = 48 * 1024;
constexpr int kRegisters = 65536;
constexpr int kThreadsPerBlock = 1024;
constexpr int kThreadsPerProcessor = 2048;
constexpr int kCacheBytes = 50 << 20;
constexpr int kDriverVersion = 13000;
constexpr const char* kDeviceName = "Fake GPU";

/// `over`: it is done on return.
void enqueue(Call& call, Stream& stream, std::function<void()> work, bool over = false) {
    // Another thread's call has failed since this one began.
    if (call.shared().broken != cudaSuccess) return;
    if (call.shared().put_off(stream, {work, nullptr, 0})) {
        if (over) call.shared().finish(stream);
        return;
    }
    // The lock would hide races between two threads' work.
    call.unlock();
    work();
}

void wait_for(Call& call, const Event& event) {
    if (event.stream) call.shared().finish(*event.stream, event.steps);
}

cudaError_t create_event(const char* name, cudaEvent_t* handle, unsigned flags) {
    Call call(name, Kind::can_fail);
    if (call.failed()) return call.code();
    Event event;
    event.device = call.thread().device;
    event.timed = (flags & cudaEventDisableTiming) == 0;
    const std::uintptr_t number = call.shared().next_handle++;
    call.shared().events.emplace(number, std::move(event));
    *handle = reinterpret_cast<cudaEvent_t>(number);
    return cudaSuccess;
}

bool happened(const Event& event) { return !event.stream || event.stream->done >= event.steps; }

}  // namespace

void misuse(const std::string& what) {
    std::fprintf(stderr, "fake cuda: misuse: %s\n", what.c_str());
    std::fflush(stderr);
    std::abort();
}

bool is_sticky(int code) {
    switch (code) {
        case cudaErrorECCUncorrectable:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case cudaErrorUnknown:
            return true;
        default:
            return false;
    }
}

void reset(const Settings& settings) {
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    if (const Live now = shared.live(); !(now == Live{}))
        misuse("reset while there are " + describe(now));
    if (shared.hanging > 0) misuse("reset while a call hangs");
    shared.settings = settings;
    shared.announce = false;
    shared.arm_path.clear();
    ++shared.generation;
    shared.calls = 0;
    shared.launches = 0;
    shared.counts.clear();
    shared.injected.clear();
    shared.broken = cudaSuccess;
    shared.arena_used = kAlignment;
}

void arm(Fault call, Fault launch, std::uint64_t hang_at) {
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    shared.settings.call = call;
    shared.settings.launch = launch;
    shared.settings.hang_at = hang_at;
    shared.calls = 0;
    shared.launches = 0;
    shared.counts.clear();
    shared.injected.clear();
}

std::size_t hanging() {
    const std::lock_guard lock(state().mutex);
    return state().hanging;
}

void release() {
    const std::lock_guard lock(state().mutex);
    ++state().releases;
    state().released.notify_all();
}

std::uint64_t calls() {
    const std::lock_guard lock(state().mutex);
    return state().calls;
}

std::uint64_t launches() {
    const std::lock_guard lock(state().mutex);
    return state().launches;
}

std::uint64_t count_of(std::string_view name) {
    const std::lock_guard lock(state().mutex);
    const auto at = state().counts.find(name);
    return at == state().counts.end() ? 0 : at->second;
}

int last_error() {
    const std::lock_guard lock(state().mutex);
    return state().broken != cudaSuccess ? state().broken : state().thread().last_error;
}

std::string injected() {
    const std::lock_guard lock(state().mutex);
    return state().injected;
}

Live live() {
    const std::lock_guard lock(state().mutex);
    return state().live();
}

std::string describe(const Live& live) {
    return fmt::format(
        "{} allocations ({} bytes), {} page-locked buffers, {} registrations, {} streams, {} "
        "events",
        live.allocations, live.device_bytes, live.pinned, live.registrations, live.streams,
        live.events);
}

std::uint32_t plane_pass_capacity() {
    const std::lock_guard lock(state().mutex);
    return state().settings.plane_pass_capacity;
}

cudaError_t load() {
    Call call("load_kernels", Kind::can_fail);
    if (call.failed()) return call.code();
    return call.shared().settings.has_code ? cudaSuccess
                                           : call.fail(cudaErrorNoKernelImageForDevice);
}

Launch::Launch(const char* name, cudaStream_t stream) : name_(name), stream_(stream) {
    Call call(name, Kind::launch);
    code_ = call.code();
    if (failed()) return;
    device_ = call.stream_of(stream)->device;
    if (device_ != call.thread().device) {
        call.misused(fmt::format("a stream of device {} while device {} is current", device_,
                                 call.thread().device));
    }
}

void* Launch::resolve_device(const volatile void* address, std::size_t bytes, std::size_t alignment,
                             const char* what, std::size_t& available) const {
    if (bytes == 0 && address == nullptr) return nullptr;
    Call call(what, Kind::never_fails);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    void* const storage = call.storage_of(at, bytes, device_, &available);
    require(storage != nullptr, fmt::format("{} is not device memory", what).c_str());
    require(at % alignment == 0, fmt::format("{} is not aligned", what).c_str());
    return storage;
}

void Launch::check_pinned(const void* address, std::size_t bytes, const char* what) const {
    Call call(what, Kind::never_fails);
    require(call.page_locked(reinterpret_cast<std::uintptr_t>(address), bytes),
            fmt::format("{} is not page-locked host memory", what).c_str());
}

bool Launch::is_device_memory(const void* address) const {
    return state().in_arena(reinterpret_cast<std::uintptr_t>(address));
}

cudaError_t Launch::run(std::function<void()> work) const {
    Call call("launched work", Kind::never_fails);
    enqueue(call, *call.stream_of(stream_), std::move(work));
    return cudaSuccess;
}

void Launch::require(bool holds, const char* what) const {
    if (!holds) misuse(fmt::format("{}: {}", name_, what));
}

}  // namespace gloved::tests::fake_cuda

using namespace gloved::tests::fake_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    Call call(__func__, Kind::can_fail);
    *count = call.failed() ? 0 : call.shared().settings.devices;
    return call.code();
}

cudaError_t cudaSetDevice(int device) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    if (device < 0 || device >= call.shared().settings.devices)
        return call.fail(cudaErrorInvalidDevice);
    call.thread().device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    Call call(__func__, Kind::can_fail);
    if (!call.failed()) *device = call.thread().device;
    return call.code();
}

cudaError_t cudaSetDeviceFlags(unsigned) { return Call(__func__, Kind::can_fail).code(); }

cudaError_t cudaDeviceSynchronize() {
    Call call(__func__, Kind::can_fail);
    if (!call.failed()) call.shared().finish_all(call.thread().device);
    return call.code();
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    call.check_device(device);
    switch (attribute) {
        case cudaDevAttrComputeCapabilityMajor:
            *value = call.shared().settings.capability / 10;
            break;
        case cudaDevAttrComputeCapabilityMinor:
            *value = call.shared().settings.capability % 10;
            break;
        case cudaDevAttrMultiProcessorCount:
            *value = kProcessors;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            *value = kPlainSharedBytes;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = kSharedBytes;
            break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            *value = kSharedBytesProcessor;
            break;
        case cudaDevAttrMaxThreadsPerBlock:
            *value = kThreadsPerBlock;
            break;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            *value = kThreadsPerProcessor;
            break;
        case cudaDevAttrMaxRegistersPerBlock:
            *value = kRegisters;
            break;
        case cudaDevAttrWarpSize:
            *value = 32;
            break;
        case cudaDevAttrL2CacheSize:
            *value = kCacheBytes;
            break;
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrHostRegisterSupported:
        case cudaDevAttrHostRegisterReadOnlySupported:
            *value = call.shared().settings.refuse_pin ? 0 : 1;
            break;
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
            *value = 1;
            break;
        case cudaDevAttrIntegrated:
            *value = 0;
            break;
        case cudaDevAttrComputeMode:
            *value = cudaComputeModeDefault;
            break;
        default:
            call.misused(
                fmt::format("the fake has no attribute {} yet", static_cast<int>(attribute)));
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    call.check_device(device);
    *properties = cudaDeviceProp{};
    std::strncpy(properties->name, kDeviceName, sizeof properties->name - 1);
    properties->totalGlobalMem = call.shared().settings.memory_bytes;
    properties->sharedMemPerBlock = kPlainSharedBytes;
    properties->sharedMemPerBlockOptin = kSharedBytes;
    properties->sharedMemPerMultiprocessor = kSharedBytesProcessor;
    properties->regsPerBlock = kRegisters;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = kThreadsPerBlock;
    properties->maxThreadsPerMultiProcessor = kThreadsPerProcessor;
    properties->major = call.shared().settings.capability / 10;
    properties->minor = call.shared().settings.capability % 10;
    properties->multiProcessorCount = kProcessors;
    properties->l2CacheSize = kCacheBytes;
    properties->canMapHostMemory = 1;
    properties->unifiedAddressing = 1;
    properties->pciBusID = device + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* name, int size, int device) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    call.check_device(device);
    std::snprintf(name, static_cast<std::size_t>(size), "0000:%02x:00.0",
                  static_cast<unsigned>(device + 1));
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    *total = call.shared().settings.memory_bytes;
    *free = *total - call.shared().used_bytes(call.thread().device);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    State& shared = call.shared();
    *address = nullptr;
    if (bytes == 0) return cudaSuccess;
    const int device = call.thread().device;
    if (bytes > shared.settings.memory_bytes - shared.used_bytes(device))
        return call.fail(cudaErrorMemoryAllocation);
    const std::size_t at = shared.arena_used;
    if (bytes > kArenaBytes - 2 * kAlignment - at) call.misused("the fake has no addresses left");
    shared.arena_used += (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
    shared.allocations.emplace(shared.arena + at,
                               Allocation{device, std::make_unique<Storage>(bytes)});
    *address = reinterpret_cast<void*>(shared.arena + at);
    return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
    Call call(__func__, Kind::releases);
    if (address == nullptr) return call.code();
    call.shared().finish_all();
    if (call.shared().allocations.erase(reinterpret_cast<std::uintptr_t>(address)) == 0) {
        call.misused("not the address of an allocation, or freed twice");
    }
    return call.code();
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    *address = nullptr;
    if (bytes == 0) return cudaSuccess;
    auto storage = std::make_unique<Storage>(bytes);
    *address = storage->data;
    call.shared().pinned.emplace(reinterpret_cast<std::uintptr_t>(*address), std::move(storage));
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
    Call call(__func__, Kind::releases);
    if (address == nullptr) return call.code();
    call.shared().finish_all();
    if (call.shared().pinned.erase(reinterpret_cast<std::uintptr_t>(address)) == 0) {
        call.misused("not the address of page-locked memory, or freed twice");
    }
    return call.code();
}

cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    if (!call.page_locked(reinterpret_cast<std::uintptr_t>(address), 1))
        call.misused("memory that is not page-locked");
    *device_address = address;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    if (call.shared().settings.refuse_pin) return call.fail(cudaErrorNotSupported);
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (address == nullptr || bytes == 0) call.misused("an empty range");
    for (const auto& [base, size] : call.shared().registrations) {
        if (begin < base + size && base < begin + bytes)
            return call.fail(cudaErrorHostMemoryAlreadyRegistered);
    }
    call.shared().registrations.emplace(begin, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
    Call call(__func__, Kind::releases);
    call.shared().finish_all();
    if (call.shared().registrations.erase(reinterpret_cast<std::uintptr_t>(address)) == 0) {
        call.misused("not the address of a registration, or released twice");
    }
    return call.code();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const auto stream = call.stream_of(handle);
    if (bytes == 0) return cudaSuccess;
    const auto to_address = reinterpret_cast<std::uintptr_t>(to);
    const auto from_address = reinterpret_cast<std::uintptr_t>(from);
    void* const to_device = call.storage_of(to_address, bytes, stream->device);
    void* const from_device = call.storage_of(from_address, bytes, stream->device);
    const cudaMemcpyKind actual =
        to_device != nullptr
            ? from_device != nullptr ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
        : from_device != nullptr ? cudaMemcpyDeviceToHost
                                 : cudaMemcpyHostToHost;
    if (kind != cudaMemcpyDefault && kind != actual)
        call.misused("a kind that contradicts the addresses");

    if (actual == cudaMemcpyHostToDevice && !call.page_locked(from_address, bytes)) {
        // The host may reuse pageable memory at once: the driver has copied it by then.
        auto staged = std::make_shared<std::vector<std::byte>>(bytes);
        std::memcpy(staged->data(), from, bytes);
        enqueue(call, *stream, [=] { std::memcpy(to_device, staged->data(), bytes); });
        return cudaSuccess;
    }
    // A copy to pageable memory ends before the call returns.
    const bool over = to_device == nullptr && !call.page_locked(to_address, bytes);
    const void* const source = from_device != nullptr ? from_device : from;
    void* const target = to_device != nullptr ? to_device : to;
    enqueue(
        call, *stream, [=] { std::memcpy(target, source, bytes); }, over);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const auto stream = call.stream_of(handle);
    if (bytes == 0) return cudaSuccess;
    void* const storage =
        call.storage_of(reinterpret_cast<std::uintptr_t>(address), bytes, stream->device);
    if (storage == nullptr) call.misused("an address of the host");
    enqueue(call, *stream, [=] { std::memset(storage, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    if ((flags & cudaStreamNonBlocking) == 0)
        call.misused("a stream that waits for the default stream");
    auto stream = std::make_shared<Stream>();
    stream->device = call.thread().device;
    const std::uintptr_t number = call.shared().next_handle++;
    call.shared().streams.emplace(number, std::move(stream));
    *handle = reinterpret_cast<cudaStream_t>(number);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    Call call(__func__, Kind::releases);
    call.shared().finish(*call.stream_of(handle));
    call.shared().streams.erase(reinterpret_cast<std::uintptr_t>(handle));
    return call.code();
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    call.shared().finish(*call.stream_of(handle));
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const auto stream = call.stream_of(handle);
    // Each query lets one step pass.
    call.shared().finish(*stream, stream->done + 1);
    return stream->pending.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const auto stream = call.stream_of(handle);
    const Event& event = call.event_of(event_handle);
    if (!event.stream) call.misused("an event that was never recorded: nothing would wait");
    if (event.stream != stream)
        (void)call.shared().put_off(*stream, {nullptr, event.stream, event.steps});
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
    return create_event(__func__, handle, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
    return create_event(__func__, handle, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    Call call(__func__, Kind::releases);
    (void)call.event_of(handle);
    call.shared().events.erase(reinterpret_cast<std::uintptr_t>(handle));
    return call.code();
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const auto stream = call.stream_of(stream_handle);
    Event& event = call.event_of(handle);
    if (event.device != stream->device) {
        call.misused(fmt::format("an event of device {} on a stream of device {}", event.device,
                                 stream->device));
    }
    event.stream = stream;
    const auto happened = std::make_shared<std::optional<Clock::time_point>>();
    event.happened = happened;
    event.steps = stream->enqueued + 1;
    if (!call.shared().put_off(*stream, {[happened] { *happened = Clock::now(); }, nullptr, 0})) {
        *happened = Clock::now();
    }
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    wait_for(call, call.event_of(handle));
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const Event& event = call.event_of(handle);
    if (!happened(event)) call.shared().finish(*event.stream, event.stream->done + 1);
    return happened(event) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from_handle, cudaEvent_t to_handle) {
    Call call(__func__, Kind::can_fail);
    if (call.failed()) return call.code();
    const Event& from = call.event_of(from_handle);
    const Event& to = call.event_of(to_handle);
    if (!from.timed || !to.timed) call.misused("an event made without timing");
    if (!from.stream || !to.stream) call.misused("an event that was never recorded");
    if (!happened(from) || !happened(to)) return call.fail(cudaErrorNotReady);
    // More than 0, whatever the clock's resolution.
    *ms = std::max(
        std::chrono::duration<float, std::milli>(**to.happened - **from.happened).count(), 0.0005F);
    return cudaSuccess;
}

cudaError_t cudaGetLastError() {
    Call call(__func__, Kind::never_fails);
    if (call.shared().broken != cudaSuccess) return call.shared().broken;
    return std::exchange(call.thread().last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
    Call call(__func__, Kind::never_fails);
    return call.shared().broken != cudaSuccess ? call.shared().broken : call.thread().last_error;
}

const char* cudaGetErrorName(cudaError_t code) {
    const ErrorText* const error = text_of(code);
    return error == nullptr ? "unrecognized error code" : error->name;
}

const char* cudaGetErrorString(cudaError_t code) {
    const ErrorText* const error = text_of(code);
    return error == nullptr ? "unrecognized error code" : error->text;
}

cudaError_t cudaDriverGetVersion(int* version) {
    Call call(__func__, Kind::never_fails);
    *version = call.shared().settings.devices < 0 ? 0 : kDriverVersion;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    Call call(__func__, Kind::never_fails);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

}  // extern "C"
