#include "kernels/distance/host_buffer.hpp"

#include <unistd.h>

#include <chrono>
#include <cstddef>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"

namespace gloved::kernels::distance {

Result<double> HostBuffer::time_all(Engine& engine, std::size_t rows) {
    const double bytes = static_cast<double>(rows) * static_cast<double>(rows) * sizeof(float);
    const double memory_bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                                static_cast<double>(::sysconf(_SC_PAGESIZE));
    if (bytes > memory_bytes / 2) {
        return error_with(ErrorCode::unavailable,
                          "all distances of {} rows take {:.1f} GB, more than half of the memory",
                          rows, bytes / 1e9);
    }
    if (!values_) values_.reset(new float[rows * rows]);
    const auto begun = std::chrono::steady_clock::now();
    if (Status done = engine.run({0, rows, 0, rows}, values_.get(), rows, nullptr, 0); !done)
        return done.error();
    return ms_since(begun);
}

}  // namespace gloved::kernels::distance
