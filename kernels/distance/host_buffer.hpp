// Room for all distances, for engines that are timed on the host.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "kernels/distance/engine.hpp"

namespace gloved::kernels::distance {

class HostBuffer {
  public:
    /// Milliseconds that `engine.run` takes for all rows × all rows into memory that stays for
    /// further calls. Error: unavailable, where rows² float32 are more than half of the machine's
    /// memory.
    Result<double> time_all(Engine& engine, std::size_t rows);

  private:
    std::unique_ptr<float[]> values_;
};

}  // namespace gloved::kernels::distance
