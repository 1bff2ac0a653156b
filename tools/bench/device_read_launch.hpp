// The kernels of device_read.cu as the host code beside it sees them. Without CUDA's headers, so
// that this compiles anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;  // what a cudaStream_t points to

namespace gloved::bench {

inline constexpr unsigned kReadThreads = 256;
/// Loads of 16 bytes that a thread has under way at once.
inline constexpr unsigned kReadLoads = 8;
inline constexpr std::size_t kReadWordBytes = 16;
/// Words that a block reads at a time.
inline constexpr std::size_t kReadTile = std::size_t{kReadThreads} * kReadLoads;

// Both enqueue and return at once: 0, or the cudaError_t of the launch. `words` are device memory,
// 16-byte aligned.

/// Fills `count` words with numbers that have no pattern: constant memory might be cheaper to move.
int launch_fill(void* words, std::size_t count, unsigned blocks, CUstream_st* stream);

/// Reads `count` words into registers. `sink` is a device word that is hardly ever written.
int launch_read(const void* words, std::size_t count, unsigned blocks, std::uint32_t* sink,
                CUstream_st* stream);

}  // namespace gloved::bench
