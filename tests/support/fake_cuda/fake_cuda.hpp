// A fake of the CUDA runtime, with kernels on the CPU in place of the .cu files, for tests of the
// cuda engine's host code without a GPU. It shows the devices that a test sets, fails the calls
// that a test names, and counts live resources. It aborts with a message where a GPU would fail
// silently or corrupt memory:
//
//   * device memory has addresses that only the fake can resolve: SIGSEGV ends a host that reads
//     one. Memory that was not written reads as 0xA5 bytes. Freed addresses are not reused;
//   * copies and launches outside of an allocation, on a stream of another device, on the default
//     stream, with shapes that contradict launches.hpp, or on handles that are not alive, abort.
//
// Nothing here needs CUDA's headers. Every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace gloved::tests::fake_cuda {

/// A fault: call number `at`, counted from 1, does nothing and returns the cudaError_t `code`.
/// After a sticky code every later call returns it too, as after a real device fault. at = 0: none.
struct Fault {
    std::uint64_t at = 0;
    int code = 0;
};

struct Settings {
    int devices = 1;  ///< 0: cudaErrorNoDevice; negative: no driver either,
                      ///< cudaErrorInsufficientDriver
    std::size_t memory_bytes = std::size_t{1} << 30;  ///< of each device; beyond it,
                                                      ///< cudaErrorMemoryAllocation
    bool refuse_pin = false;  ///< cudaHostRegister returns cudaErrorNotSupported
    /// Runs enqueued work only when something waits for it, so that a missing wait shows.
    bool lazy = false;
    int capability = 90;   ///< compute capability of the devices, as 10 * major + minor
    bool has_code = true;  ///< whether this build has kernels for them
    /// plane_pass_capacity where there is any, and code_pass_capacity: few queries, since each
    /// takes much memory in every test.
    std::uint32_t plane_pass_capacity = 40;
    Fault call;    ///< counts every launch and every runtime call that can fail, not those that
                   ///< release something
    Fault launch;  ///< counts launches alone
    /// The call of that number, counted as for `call`, hangs until `release`. Other threads' calls
    /// return. 0: none.
    std::uint64_t hang_at = 0;
};

/// Starts over: counts from 0, healthy devices, these settings, device 0 current on every thread.
/// Aborts while any resource is alive.
void reset(const Settings& settings);

/// Sets these faults and counts from 0. Resources and sticky errors stay.
void arm(Fault call, Fault launch = {}, std::uint64_t hang_at = 0);

/// Calls that hang now.
std::size_t hanging();
/// Lets hanging calls continue. `reset` aborts while any hangs.
void release();

std::uint64_t calls();
std::uint64_t launches();
/// Calls of the function of that name («cudaMalloc», «launch_scan»), failed or not; releasing ones
/// too.
std::uint64_t count_of(std::string_view name);
/// cudaPeekAtLastError of the calling thread, as an int: 0 if the code under test took errors out.
int last_error();
/// The function that an armed fault has failed; empty if none.
std::string injected();

/// Resources that were created and not released.
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
/// `live` as text, for messages.
std::string describe(const Live& live);

/// Whether every later call fails after that code.
bool is_sticky(int code);

// Whole programs set the same by environment variables, read at the first call. Faults are then
// announced on stderr, as «fake cuda: call 12 (cudaMalloc) returns 2» or «fake cuda: call 12
// (cudaMalloc) hangs»:
//
//   GLOVED_FAKE_CUDA_DEVICES=3          GLOVED_FAKE_CUDA_MEMORY=BYTES
//   GLOVED_FAKE_CUDA_FAIL=k:code        GLOVED_FAKE_CUDA_FAIL_LAUNCH=n:code
//   GLOVED_FAKE_CUDA_HANG=k             GLOVED_FAKE_CUDA_REFUSE_PIN=1
//   GLOVED_FAKE_CUDA_LAZY=1             GLOVED_FAKE_CUDA_ARM=PATH (calls count while it exists)
//   GLOVED_FAKE_CUDA_HANG_AT_EXIT=1     (after main, as a driver's own end may)

}  // namespace gloved::tests::fake_cuda
