// A CUDA runtime without a GPU, and kernels on the CPU in place of the .cu files: what the cuda
// engine's host code is linked with in tests. It shows as many devices as it is told to, fails
// where it is told to, counts what is alive, and aborts with a message on what a GPU would answer
// with silence or corruption:
//
//   * device memory has addresses that only the fake can resolve: the host that touches one is
//   ended by SIGSEGV; what was not
//     written reads as 0xA5 bytes; freed addresses do not come back;
//   * copies and launches outside of an allocation, on a stream of another device, on the default
//   stream, with shapes that contradict
//     launches.hpp, or on handles that are not alive, abort.
//
// Nothing here needs CUDA's headers. Every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace gloved::tests::fake_cuda {

/// Call number `at`, counted from 1, does nothing and returns the cudaError_t `code`. After a
/// sticky code every later call returns it too, as after a real device fault. at = 0: never.
struct Fault {
    std::uint64_t at = 0;
    int code = 0;
};

struct Settings {
    int devices = 1;  ///< 0: cudaErrorNoDevice; negative: no driver either,
                      ///< cudaErrorInsufficientDriver
    std::size_t memory_bytes = std::size_t{1} << 30;  ///< of each device; what goes beyond is
                                                      ///< cudaErrorMemoryAllocation
    bool refuse_pin = false;  ///< cudaHostRegister returns cudaErrorNotSupported
    /// What is enqueued is done at the last moment: when something waits for it. Work that nobody
    /// waited for shows as not done.
    bool lazy = false;
    int capability = 90;   ///< compute capability of the devices, as 10 * major + minor
    bool has_code = true;  ///< this build has kernels for them
    /// multiply_capacity for any stride: below 2, no float16 pass.
    std::uint32_t multiply_capacity =
        std::numeric_limits<std::uint32_t>::max();  ///< max: by the stride, as the real one
    /// plane_pass_capacity where there is any: few, for what a pass keeps of each query is much,
    /// and is made for every test.
    std::uint32_t plane_pass_capacity = 40;
    Fault call;  ///< counts every runtime call that can fail (not those that release something) and
                 ///< every launch
    Fault launch;  ///< counts launches alone
    /// The call of that number, counted as for `call`, does not return before `release`; other
    /// threads' calls do. 0: none.
    std::uint64_t hang_at = 0;
};

/// Begins anew: counts from 0, healthy devices, these settings. Aborts while any resource is alive.
/// Every thread's current device is 0 again.
void reset(const Settings& settings);

/// From now on: counts from 0, and these faults. Resources stay. What a sticky error has broken
/// stays broken.
void arm(Fault call, Fault launch = {}, std::uint64_t hang_at = 0);

/// How many calls hang now.
std::size_t hanging();
/// Calls that hang go on as if nothing had been. To be called before `reset`, which aborts while
/// any hangs.
void release();

std::uint64_t calls();
std::uint64_t launches();
/// How often the function of that name was called («cudaMalloc», «launch_scan»), failed or not;
/// releasing ones too.
std::uint64_t count_of(std::string_view name);
/// What cudaPeekAtLastError would say on the calling thread, as an int: nothing is left there by
/// code that takes errors out.
int last_error();
/// The function that an armed fault has hit; empty if none was.
std::string injected();

/// What has been made and not been released.
struct Live {
    std::size_t allocations = 0;  ///< of device memory
    std::size_t device_bytes = 0;
    std::size_t pinned = 0;  ///< cudaHostAlloc
    std::size_t registrations = 0;
    std::size_t streams = 0;
    std::size_t events = 0;
    friend bool operator==(const Live&, const Live&) = default;
};
Live live();
/// What `live` holds, for messages.
std::string describe(const Live& live);

/// Whether every later call fails after that code.
bool is_sticky(int code);

// For whole programs, the same by environment variables, read at the first call; faults are then
// announced on stderr, as «fake cuda: call 12 (cudaMalloc) returns 2» or «fake cuda: call 12
// (cudaMalloc) hangs»:
//
//   GLOVED_FAKE_CUDA_DEVICES=3          GLOVED_FAKE_CUDA_MEMORY=BYTES
//   GLOVED_FAKE_CUDA_FAIL=k:code        GLOVED_FAKE_CUDA_FAIL_LAUNCH=n:code
//   GLOVED_FAKE_CUDA_HANG=k             GLOVED_FAKE_CUDA_REFUSE_PIN=1
//   GLOVED_FAKE_CUDA_LAZY=1             GLOVED_FAKE_CUDA_ARM=PATH (calls count while it exists)

}  // namespace gloved::tests::fake_cuda
