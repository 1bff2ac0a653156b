// Inner loops of the cpu engine's float32 pass, one set per instruction set, chosen at run time:
// dot products of rows and queries, and which of them reach a cutoff.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gloved::kernels::cpu {

/// A row and a query whose dot product reached the query's cutoff.
struct Pick {
    std::uint32_t row = 0;
    std::uint32_t query = 0;
};

/// The loops of one instruction set. `block` is consecutive rows, shape (rows, dim), float32,
/// row-major, any alignment. A dot product is a sum of `dim` products; each operation is rounded to
/// float32 or fused. The order of additions differs between sets, so callers rely only on the bound
/// in bounds.hpp. No function allocates; any thread.
struct ScanKernels {
    std::string_view name;
    /// Numbers of queries that `dots_packed` accepts as `width`, ascending.
    std::span<const std::size_t> widths;
    /// Whether this processor and operating system can run it.
    bool (*supported)();

    /// out[r] = query · row r.
    void (*dots)(const float* query, const float* block, std::size_t rows, std::size_t dim,
                 float* out);
    /// out[r * out_stride + q] = query q · row r for q < width. `packed` has shape (dim, width):
    /// element i of all queries is contiguous. `width` is one of `widths`.
    void (*dots_packed)(const float* packed, std::size_t width, const float* block,
                        std::size_t rows, std::size_t dim, float* out, std::size_t out_stride);
    /// Lists each row r with dots[r] >= cutoff * norms[r] (never true for NaN) in `picks` as {r,
    /// query}, and returns their number. `picks` has room for `rows`.
    std::size_t (*pick_rows)(const float* dots, const float* norms, std::size_t rows, float cutoff,
                             std::uint32_t query, Pick* picks);
    /// As pick_rows, for `width` queries: lists each (r, q) with dots[r * stride + q] >= cutoffs[q]
    /// * norms[r] as {r, first_query + q}. `picks` has room for rows * width.
    std::size_t (*pick_packed)(const float* dots, std::size_t stride, const float* norms,
                               std::size_t rows, const float* cutoffs, std::size_t width,
                               std::uint32_t first_query, Pick* picks);
};

/// All instruction sets of this build, best first. The last one, «baseline», runs everywhere.
std::span<const ScanKernels* const> all_scan_kernels();

}  // namespace gloved::kernels::cpu
