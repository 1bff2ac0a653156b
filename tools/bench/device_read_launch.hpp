// Launches the kernels of device_read.cu. Needs no CUDA headers.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;  // what a cudaStream_t points to

namespace gloved::bench {

inline constexpr unsigned kReadThreads = 256;
/// Loads of 16 bytes in flight per thread.
inline constexpr unsigned kReadLoads = 8;
inline constexpr std::size_t kReadWordBytes = 16;
/// Words that a block reads at a time.
inline constexpr std::size_t kReadTile = std::size_t{kReadThreads} * kReadLoads;

// Both enqueue the kernel and return 0 or the cudaError_t of the launch. `words` is device memory,
// 16-byte aligned.

/// Fills `count` words with random numbers, since constant memory might be faster to read.
int launch_fill(void* words, std::size_t count, unsigned blocks, CUstream_st* stream);

/// Reads `count` words into registers. `sink` is a device word that is almost never written.
int launch_read(const void* words, std::size_t count, unsigned blocks, std::uint32_t* sink,
                CUstream_st* stream);

}  // namespace gloved::bench
