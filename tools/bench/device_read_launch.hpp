// Launch functions of the kernels of device_read.cu, which DeviceReader times. Needs no CUDA
// headers.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;  // what a cudaStream_t points to

namespace gloved::bench {

/// Threads of a block.
inline constexpr unsigned kReadThreads = 256;
/// Number of words that a thread has in flight.
inline constexpr unsigned kReadLoads = 8;
/// Size of a word, which a thread loads at once.
inline constexpr std::size_t kReadWordBytes = 16;
/// Words that a block reads at a time.
inline constexpr std::size_t kReadTile = std::size_t{kReadThreads} * kReadLoads;

// Both functions enqueue a kernel on `stream` and return the launch's cudaError_t, 0 on success.
// `words` is device memory, 16-byte aligned.

/// Fills `count` words with random numbers, since constant memory might be faster to read.
int launch_fill(void* words, std::size_t count, unsigned blocks, CUstream_st* stream);

/// Reads `count` words into registers. `sink` is a uint32 in device memory, which is almost never
/// written; without it the compiler would drop the reads.
int launch_read(const void* words, std::size_t count, unsigned blocks, std::uint32_t* sink,
                CUstream_st* stream);

}  // namespace gloved::bench
