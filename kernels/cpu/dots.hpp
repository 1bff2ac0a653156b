// Canonical dot products of rows and queries, one loop per instruction set, chosen at run time. All
// loops give the bits of canonical_dot: its eight lanes are the lanes of vectors, added in its
// order. §11 of docs/certified-search.md proves it, fused operations included.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/canonical.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels::cpu {

/// Eight components of a query, as float64. Aligned, since a load across two cache lines costs two.
struct alignas(64) QueryStep {
    double components[kCanonicalLanes] = {};
};

/// Query vectors that a loop multiplies with a row together.
struct QueryGroup {
    std::size_t count = 0;
    std::vector<QueryStep> steps;  ///< (dim / 8 rounded up, count); 0 beyond the last component

    /// `vectors`: at least one, all of the same dim.
    explicit QueryGroup(std::span<const QueryVector* const> vectors);
};

/// The loops of one instruction set.
struct DotKernel {
    std::string_view name;
    /// Whether this processor and operating system can run it.
    bool (*supported)();
    /// The largest count of a group: as many queries as registers hold.
    std::size_t width;
    /// dots[q · rows + r] = canonical_dot(query q, row r). `block`: consecutive rows, shape
    /// (rows, dim), any alignment; dim is that of the group. Prefetches memory beyond the rows.
    /// Does not allocate; any thread.
    void (*dots_of_block)(const QueryGroup& group, const float* block, std::size_t rows,
                          std::size_t dim, double* dots);
    /// dots[r] = canonical_dot(query, row r), for a group of one query and `count` rows that are
    /// anywhere. Rows are prefetched. Does not allocate; any thread.
    void (*dots_of_rows)(const QueryGroup& query, const float* const* rows, std::size_t count,
                         std::size_t dim, double* dots);
    /// Turns the dot products of rows with a query into canonical scores: score_from_dot.
    void (*cosines)(double* dots, const double* row_norms, std::size_t rows, double query_norm);
};

/// The loops of this build, best first: «avx512» and «avx2» on x86-64, «neon» on aarch64, then
/// «baseline», which runs everywhere.
std::span<const DotKernel* const> all_dot_kernels();

}  // namespace gloved::kernels::cpu
