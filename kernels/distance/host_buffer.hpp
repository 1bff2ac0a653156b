// HostBuffer: times distance engines that write their result to host memory, for benchmarks.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Memory for a whole distance matrix, allocated at the first use.
class HostBuffer {
  public:
    /// Runs `engine` for its whole distance matrix, rows × rows, and returns the milliseconds.
    /// `rows` must be the same in all calls, which share the memory. Errors: unavailable, if rows²
    /// float32 exceed half of the machine's memory; those of Engine::run.
    Result<double> time_all(Engine& engine, std::size_t rows);

  private:
    std::unique_ptr<float[]> values_;
};

}  // namespace gloved::kernels::distance
