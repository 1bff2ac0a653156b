// A checked kernel launch.
#pragma once

#include <cstddef>

#include "kernels/cuda/runtime.hpp"

namespace gloved::kernels::ladder {

/// Threads of a block, in every kernel of the ladder.
inline constexpr unsigned kBlockThreads = 256;

/// Enqueues `kernel` on `stream` with `blocks` blocks of kBlockThreads and `shared_bytes` of
/// dynamic shared memory. Does not wait; the error is what the launch reported.
template <class... Parameters, class... Arguments>
Status launch(const char* name, void (*kernel)(Parameters...), std::size_t blocks,
              std::size_t shared_bytes, const cuda::Stream& stream, const Arguments&... arguments) {
    kernel<<<static_cast<unsigned>(blocks), kBlockThreads, shared_bytes, stream.get()>>>(
        arguments...);
    return cuda::check(cudaGetLastError(), name);
}

/// Blocks with at least one thread for each of `threads`.
inline std::size_t blocks_for(std::size_t threads) {
    return (threads + kBlockThreads - 1) / kBlockThreads;
}

}  // namespace gloved::kernels::ladder
