#include "kernels/planes/fine_plane.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/bounds.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/encode.hpp"

namespace gloved::kernels::planes {
namespace {

constexpr std::size_t kGrainGroups = 256;
/// Sums are kept in as many parts, so that additions need not wait for one another.
constexpr std::size_t kLanes = 8;
constexpr float kTopCell = kFineTopLevel;
/// Relative difference of two sums of the same squares, at most, with much to spare.
constexpr double kSameNorm = 1e-9;

std::size_t steps_of(std::size_t dim) { return (dim + kFineStepDims - 1) / kFineStepDims; }

}  // namespace

// The largest component gets the top level (§10). The code of a NaN is 0.
RowCode encode_fine_row(std::span<const float> row, double norm) {
    const std::size_t dim = row.size();
    RowCode code;
    code.codes.resize(dim);
    float largest = 0;
    for (const float value : row) largest = std::max(largest, std::abs(value));
    const float inverse_cell = 0.5F * kFineTopLevel / largest;
    double products[kLanes] = {};
    double squares[kLanes] = {};
    double row_squares[kLanes] = {};
    const auto encode = [&](const float* from, std::uint8_t* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            // The middle of the levels is the edge between two cells; rounding down finds the cell.
            const float cell = from[i] * inverse_cell + 0.5F * (kFineTopLevel + 1);
            const int a = static_cast<int>(std::min(cell > 0 ? cell : 0.0F, kTopCell));
            to[i] = static_cast<std::uint8_t>(a);
            const double level = 2 * a - kFineTopLevel;
            const double value = from[i];
            products[i] += value * level;
            row_squares[i] += value * value;
            squares[i] += level * level;
        }
    };
    std::size_t at = 0;
    for (; at + kLanes <= dim; at += kLanes)
        encode(row.data() + at, code.codes.data() + at, kLanes);
    encode(row.data() + at, code.codes.data() + at, dim - at);
    CodeSums sums;
    double square = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        square += row_squares[lane];
        sums.product += products[lane];
        sums.square += squares[lane];
    }
    // Of a damaged row, a lower bound would prove nothing: one that is not finite, or has another
    // norm.
    if (!(std::abs(std::sqrt(square) - norm) <= kSameNorm * norm)) sums.product = 0;
    const StoredBounds stored = stored_bounds(sums, norm, stored_step(dim, kFineTopLevel));
    code.projection = stored.projection;
    code.residual = stored.residual;
    return code;
}

std::size_t FinePlane::bytes_of(const PlaneShape& shape) {
    return shape.groups() * (steps_of(shape.dim) + 1) * kStepBytes;
}

FinePlane::FinePlane(const format::Model& model, ThreadPool& pool, const std::stop_token& stop)
    : steps_(steps_of(model.dim())) {
    const PlaneShape shape{model.rows(), model.dim()};
    bytes_.resize(bytes_of(shape));
    pool.for_ranges(shape.groups(), kGrainGroups, [&](std::size_t begin, std::size_t end) {
        if (stop.stop_requested()) return;
        for (std::size_t row = begin * kGroupRows; row < std::min(end * kGroupRows, shape.rows);
             ++row) {
            if (!bound_covers(model.norms()[row])) continue;
            RowCode code = encode_fine_row(model.vector(row), model.norms()[row]);
            code.codes.resize(steps_ * kFineStepDims);
            std::byte* const group = bytes_.data() + row / kGroupRows * group_bytes();
            const std::size_t lane = row % kGroupRows;
            for (std::size_t step = 0; step < steps_; ++step) {
                std::memcpy(group + step * kStepBytes + lane * kFineStepDims,
                            code.codes.data() + step * kFineStepDims, kFineStepDims);
            }
            std::byte* const bounds = group + steps_ * kStepBytes;
            std::memcpy(bounds + 2 * lane, &code.projection, sizeof code.projection);
            std::memcpy(bounds + 2 * (kGroupRows + lane), &code.residual, sizeof code.residual);
        }
    });
}

}  // namespace gloved::kernels::planes
