// Asks for a vector's memory ahead of its use.
#pragma once

#include <cstddef>
#include <span>

namespace gloved::kernels {

/// Asks for all of a row at once: a row that is read element by element costs many cache misses,
/// one after the other.
inline void prefetch(std::span<const float> row) {
    constexpr std::size_t kFloatsPerCacheLine = 16;
    for (std::size_t i = 0; i < row.size(); i += kFloatsPerCacheLine)
        __builtin_prefetch(row.data() + i);
}

}  // namespace gloved::kernels
