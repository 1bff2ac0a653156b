#include "kernels/distance/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/error_with.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/host_buffer.hpp"
#include "kernels/distance/tile.hpp"
#include "kernels/simd.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::distance {
namespace {

/// Rows and columns of a tile, the work a thread claims at a time. Its sums and kDepth components
/// of its points stay in the L2 cache. It and its halves down to kMinTile are multiples of every
/// kernel's columns.
constexpr std::size_t kTile = 192;
constexpr std::size_t kMinTile = 48;
/// Components at a time. A panel of them stays in the L1 cache while it is compared with all rows
/// of a tile.
constexpr std::size_t kDepth = 128;
static_assert(kBlock % kDepth == 0);

struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const { return end - begin; }
};

struct Tile {
    Range rows;
    Range columns;
};

/// to[c * to_stride + r] = from[r * from_stride + c]
void transpose(const float* from, std::size_t from_stride, std::size_t rows, std::size_t columns,
               float* to, std::size_t to_stride) {
    constexpr std::size_t kFour = 4;
    const std::size_t whole_rows = rows / kFour * kFour;
    const std::size_t whole_columns = columns / kFour * kFour;
    for (std::size_t c = 0; c < whole_columns; c += kFour) {
        for (std::size_t r = 0; r < whole_rows; r += kFour) {
            FourFloats lines[kFour];
#pragma GCC unroll 4
            for (std::size_t i = 0; i < kFour; ++i)
                std::memcpy(&lines[i], from + (r + i) * from_stride + c, sizeof lines[i]);
            const FourFloats low_even = interleave_low(lines[0], lines[2]);
            const FourFloats low_odd = interleave_low(lines[1], lines[3]);
            const FourFloats high_even = interleave_high(lines[0], lines[2]);
            const FourFloats high_odd = interleave_high(lines[1], lines[3]);
            const FourFloats columns_of[kFour] = {
                interleave_low(low_even, low_odd), interleave_high(low_even, low_odd),
                interleave_low(high_even, high_odd), interleave_high(high_even, high_odd)};
#pragma GCC unroll 4
            for (std::size_t i = 0; i < kFour; ++i)
                std::memcpy(to + (c + i) * to_stride + r, &columns_of[i], sizeof columns_of[i]);
        }
    }
    for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r)
            to[c * to_stride + r] = from[r * from_stride + c];
    }
}

/// One thread's sums of a tile.
struct Scratch {
    std::vector<float> acc;
    std::vector<float> sum;  // of the blocks before, where there is more than one
};

class Cpu final : public Engine {
  public:
    Cpu(PointsView points, Metric metric, const TileKernel& kernel, unsigned threads)
        : rows_(points.rows),
          dim_(points.dim),
          metric_(metric),
          kernel_(kernel),
          pool_(threads),
          scratch_(pool_.size()) {
        pack(points);
    }

    Status run(const Rectangle& rectangle, float* out, std::size_t stride, float* mirror,
               std::size_t mirror_stride) override;
    Result<double> time_resident() override { return buffer_.time_all(*this, rows_); }
    std::string description() const override {
        return fmt::format("cpu: {}, {} thread{}", kernel_.name, pool_.size(),
                           pool_.size() == 1 ? "" : "s");
    }

  private:
    void pack(PointsView points);
    /// Component 0 of a point; component k is k * kernel_.columns further.
    const float* packed(std::size_t row) const {
        return packed_.data() + row / kernel_.columns * kernel_.columns * dim_ +
               row % kernel_.columns;
    }
    /// Computes the distances of `rows` and `columns`. Returns the first one, in scratch; rows are
    /// kTileStride apart.
    const float* tile(Range rows, Range columns, Scratch& scratch) const;

    std::size_t rows_;
    std::size_t dim_;
    Metric metric_;
    const TileKernel& kernel_;
    ThreadPool pool_;
    std::vector<Scratch> scratch_;
    std::vector<float> packed_;
    HostBuffer buffer_;
};

void Cpu::pack(PointsView points) {
    const std::size_t width = kernel_.columns;
    const std::size_t panels = (rows_ + width - 1) / width;
    packed_.resize(panels * width * dim_);
    pool_.for_ranges(panels, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin * width; row < std::min(end * width, rows_); ++row) {
            const float* const from = points.row(row);
            float* const to = packed_.data() + row / width * width * dim_ + row % width;
            for (std::size_t k = 0; k < dim_; ++k) to[k * width] = from[k];
        }
    });
}

/// A tile may begin and end within a panel or within the rows of a kernel. It is computed with the
/// rest of them, including zeros after the last point.
constexpr std::size_t kMaxColumns = 48;  // of any kernel
constexpr std::size_t kTileStride = kTile + 2 * kMaxColumns;

const float* Cpu::tile(Range rows, Range columns, Scratch& scratch) const {
    const std::size_t first_row = rows.begin / kernel_.rows * kernel_.rows;
    const std::size_t first_column = columns.begin / kernel_.columns * kernel_.columns;
    scratch.acc.resize(kTileStride * kTileStride);
    if (dim_ > kBlock) scratch.sum.resize(kTileStride * kTileStride);
    for (std::size_t k = 0; k < dim_; k += kDepth) {
        const std::size_t depth = std::min(kDepth, dim_ - k);
        for (std::size_t column = first_column; column < columns.end; column += kernel_.columns) {
            const float* const b = packed(column) + k * kernel_.columns;
            for (std::size_t row = first_row; row < rows.end; row += kernel_.rows) {
                kernel_.add(
                    packed(row) + k * kernel_.columns, b, depth,
                    scratch.acc.data() + (row - first_row) * kTileStride + (column - first_column),
                    kTileStride, k % kBlock == 0);
            }
        }
        const bool block_ends = (k + depth) % kBlock == 0 || k + depth == dim_;
        if (!block_ends || dim_ <= kBlock) continue;
        // Most rows have one block and never get here.
        const std::size_t used = (rows.end - first_row) * kTileStride;
        if (k + depth <= kBlock) {
            std::copy_n(scratch.acc.data(), used, scratch.sum.data());
        } else {
            for (std::size_t i = 0; i < used; ++i) scratch.sum[i] += scratch.acc[i];
        }
    }
    float* const result = (dim_ > kBlock ? scratch.sum : scratch.acc).data() +
                          (rows.begin - first_row) * kTileStride + (columns.begin - first_column);
    if (metric_ != Metric::sqeuclidean) {
        for (std::size_t r = 0; r < rows.size(); ++r) {
            float* const values = result + r * kTileStride;
            for (std::size_t c = 0; c < columns.size(); ++c)
                values[c] = distance_from_sum(metric_, values[c]);
        }
    }
    return result;
}

/// Splits [begin, end) at the multiples of `step`: the first and last piece may be smaller.
std::vector<Range> split(std::size_t begin, std::size_t end, std::size_t step) {
    std::vector<Range> pieces;
    while (begin < end) {
        const std::size_t next = std::min(end, (begin / step + 1) * step);
        pieces.push_back({begin, next});
        begin = next;
    }
    return pieces;
}

Status Cpu::run(const Rectangle& rectangle, float* out, std::size_t stride, float* mirror,
                std::size_t mirror_stride) {
    const bool half = rectangle.on_diagonal();
    // Smaller tiles if there are too few to keep all threads busy to the end.
    std::size_t step = kTile;
    const std::size_t enough_tiles = 8 * std::size_t{pool_.size()};
    const auto tiles = [&] {
        return ((rectangle.rows + step - 1) / step) * ((rectangle.columns + step - 1) / step) /
               (half ? 2 : 1);
    };
    while (pool_.size() > 1 && step > kMinTile && tiles() < enough_tiles) step /= 2;

    const auto rows = split(rectangle.first_row, rectangle.first_row + rectangle.rows, step);
    const auto columns =
        split(rectangle.first_column, rectangle.first_column + rectangle.columns, step);
    std::vector<Tile> work;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        // Rows and columns of a square are split alike: a tile is on, above or below the diagonal.
        for (std::size_t c = half ? r : 0; c < columns.size(); ++c)
            work.push_back({rows[r], columns[c]});
    }
    pool_.for_ranges(work.size(), 1, [&](unsigned worker, std::size_t w, std::size_t) {
        const Range row = work[w].rows;
        const Range column = work[w].columns;
        const float* const values = tile(row, column, scratch_[worker]);
        const std::size_t i = row.begin - rectangle.first_row;
        const std::size_t j = column.begin - rectangle.first_column;
        const bool diagonal = half && row.begin == column.begin;
        const auto copy_to = [&](float* to, std::size_t to_stride) {
            for (std::size_t r = 0; r < row.size(); ++r) {
                std::memcpy(to + r * to_stride, values + r * kTileStride,
                            column.size() * sizeof(float));
            }
        };
        const auto transpose_to = [&](float* to, std::size_t to_stride) {
            transpose(values, kTileStride, row.size(), column.size(), to, to_stride);
        };
        copy_to(out + i * stride + j, stride);
        if (half && !diagonal) transpose_to(out + j * stride + i, stride);
        if (mirror == nullptr) return;
        transpose_to(mirror + j * mirror_stride + i, mirror_stride);
        if (half && !diagonal) copy_to(mirror + i * mirror_stride + j, mirror_stride);
    });
    return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> make_cpu(PointsView points, Metric metric,
                                         const DistanceOptions& options) {
    for (const TileKernel* kernel : all_tile_kernels()) {
        if (!kernel->supported() || (!options.simd.empty() && options.simd != kernel->name))
            continue;
        return std::unique_ptr<Engine>(
            std::make_unique<Cpu>(points, metric, *kernel, options.threads));
    }
    return error_with(ErrorCode::unavailable, "no instruction set '{}': there are {}", options.simd,
                      fmt::join(simd_names(), ", "));
}

std::vector<std::string> simd_names() {
    std::vector<std::string> names;
    for (const TileKernel* kernel : all_tile_kernels()) {
        if (kernel->supported()) names.emplace_back(kernel->name);
    }
    return names;
}

}  // namespace gloved::kernels::distance
