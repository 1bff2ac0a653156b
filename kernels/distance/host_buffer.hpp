// HostBuffer: memory for Engine::time_resident of an engine that computes on the CPU.
#pragma once

#include <cstddef>
#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

/// Memory for a whole distance matrix. Each engine owns one.
class HostBuffer {
  public:
    /// Runs `engine` for its whole distance matrix, rows × rows, and returns the milliseconds.
    /// `rows` is the same in all calls of one object. The first allocates the memory, before the
    /// time begins. Errors: unavailable, if rows² float32 exceed half of the machine's memory;
    /// those of Engine::run.
    Result<double> time_all(Engine& engine, std::size_t rows);

  private:
    std::unique_ptr<float[]> values_;
};

}  // namespace gloved::kernels::distance
