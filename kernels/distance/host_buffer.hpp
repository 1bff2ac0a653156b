// Times engines whose result is in host memory.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

class HostBuffer {
  public:
    /// Runs `engine` for all rows × all rows and returns the milliseconds. Keeps the memory for
    /// further calls. Error: unavailable, if rows² float32 exceed half of the machine's memory.
    Result<double> time_all(Engine& engine, std::size_t rows);

  private:
    std::unique_ptr<float[]> values_;
};

}  // namespace gloved::kernels::distance
