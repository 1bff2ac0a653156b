#include "kernels/planes/plane.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "kernels/bounds.hpp"

namespace gloved::kernels::planes {
namespace {

/// In steps: far more than float64 can be off by (§3).
constexpr double kGuard = 0.25;
constexpr std::size_t kGrainGroups = 256;

constexpr int kLow = 128;  // Q = kLow · high + low

std::uint16_t to_stored(double steps) {
    return static_cast<std::uint16_t>(std::clamp(steps, 0.0, kStoredSteps));
}

std::size_t code_room(std::size_t dim) { return (dim + kCodeLanes - 1) / kCodeLanes * kCodeLanes; }

/// `codes`: room for code_room(dim).
StoredBounds encode(const EncodeKernel& kernel, std::span<const float> row, double norm,
                    std::uint8_t* codes) {
    return stored_bounds(kernel.encode(row.data(), row.size(), codes), norm,
                         stored_step(row.size()));
}

}  // namespace

StoredBounds stored_bounds(const CodeSums& sums, double norm, double step) {
    const double projection = sums.product / norm;
    // Only a damaged row has another projection: it is not finite, or has another norm than stored
    // (§3). Every query reads its vector.
    constexpr double kLongest = 1 + 1e-9;  // of the codes' length, squared
    if (!(projection > 0 && projection * projection <= sums.square * kLongest))
        return {0, static_cast<std::uint16_t>(kStoredSteps)};
    const double residual = std::sqrt(std::max(0.0, sums.square - projection * projection));
    return {to_stored(std::floor(projection / step - kGuard)),
            to_stored(std::ceil(residual / step + kGuard))};
}

RowCode encode_row(std::span<const float> row, double norm, const EncodeKernel& kernel) {
    assert(bound_covers(norm));
    RowCode code;
    code.codes.resize(code_room(row.size()));
    const StoredBounds encoded = encode(kernel, row, norm, code.codes.data());
    code.codes.resize(row.size());
    code.projection = encoded.projection;
    code.residual = encoded.residual;
    return code;
}

void build_groups(const PlaneSource& source, std::size_t first, std::size_t last,
                  std::span<std::byte> bytes) {
    const PlaneShape shape = source.shape();
    assert(bytes.size() == (last - first) * shape.group_bytes());
    const EncodeKernel& kernel = best_encode_kernel();
    std::ranges::fill(bytes, std::byte{0});
    std::vector<std::uint8_t> codes(code_room(shape.dim));
    for (std::size_t row = first * kGroupRows; row < std::min(last * kGroupRows, shape.rows);
         ++row) {
        const double norm = source.norms[row];
        if (!bound_covers(norm)) continue;
        const StoredBounds encoded =
            encode(kernel, source.vectors.subspan(row * shape.dim, shape.dim), norm, codes.data());
        std::byte* const group = bytes.data() + (row / kGroupRows - first) * shape.group_bytes();
        const std::size_t lane = row % kGroupRows;
        for (std::size_t step = 0; step < shape.steps(); ++step) {
            // Packs four codes at once: none exceeds 15, so none spills into the next byte.
            std::array<std::uint32_t, 2> of_step;
            std::memcpy(of_step.data(), codes.data() + step * kStepDims, sizeof of_step);
            const std::uint32_t packed = of_step[0] | of_step[1] << 4;
            std::memcpy(group + step * kStepBytes + lane * sizeof packed, &packed, sizeof packed);
        }
        std::byte* const bounds = group + shape.steps() * kStepBytes;
        std::memcpy(bounds + lane * sizeof encoded.projection, &encoded.projection,
                    sizeof encoded.projection);
        std::memcpy(bounds + (kGroupRows + lane) * sizeof encoded.residual, &encoded.residual,
                    sizeof encoded.residual);
    }
}

std::vector<std::byte> build_plane(const format::Model& model, ThreadPool& pool) {
    const PlaneSource source{model.vectors(), model.norms(), model.dim()};
    const PlaneShape shape = source.shape();
    std::vector<std::byte> bytes(shape.bytes());
    pool.for_ranges(shape.groups(), kGrainGroups, [&](std::size_t begin, std::size_t end) {
        build_groups(source, begin, end,
                     std::span(bytes).subspan(begin * shape.group_bytes(),
                                              (end - begin) * shape.group_bytes()));
    });
    return bytes;
}

std::vector<Row> uncovered_rows(std::span<const double> norms) {
    std::vector<Row> rows;
    for (std::size_t row = 0; row < norms.size(); ++row) {
        if (!bound_covers(norms[row])) rows.push_back(static_cast<Row>(row));
    }
    return rows;
}

Plane::Plane(const format::Model& model, ThreadPool& pool)
    : shape_{model.rows(), model.dim()}, uncovered_(uncovered_rows(model.norms())) {
    if (const auto stored = model.planes()) {
        bytes_ = *stored;
    } else {
        built_ = build_plane(model, pool);
        bytes_ = built_;
    }
}

PlaneQuery make_plane_query(const QueryVector& query, int largest) {
    const std::size_t dim = query.values.size();
    const std::size_t steps = PlaneShape{0, dim}.steps();
    PlaneQuery plane_query;
    plane_query.bytes.assign(steps * 2 * kStepDims, 0);
    DigitFacts& facts = plane_query.facts;
    double largest_component = 0;
    for (const float value : query.values)
        largest_component = std::max(largest_component, std::abs(static_cast<double>(value)));
    // Scale of the direction, not of the vector. Norms are not 0 and, as float64, far from its
    // limits.
    facts.scale = largest_component / query.norm / largest;
    DigitFacts& high_facts = plane_query.high_facts;
    high_facts.scale = kLow * facts.scale;
    double remainder = 0;
    double high_remainder = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        const double component = static_cast<double>(query.values[i]) / query.norm;
        const auto digit = static_cast<int>(
            std::clamp<long>(std::lrint(component / facts.scale), -largest, largest));
        const double left = component - facts.scale * digit;
        remainder += left * left;
        facts.sum += digit;
        facts.size += std::abs(digit);
        // Rounded to nearest, so that both bytes are in range.
        const int high = (digit + kLow / 2) >> 7;
        std::int8_t* const step = plane_query.bytes.data() + i / kStepDims * 2 * kStepDims;
        step[i % kStepDims] = static_cast<std::int8_t>(high);
        step[kStepDims + i % kStepDims] = static_cast<std::int8_t>(digit - kLow * high);
        const double left_by_high = component - high_facts.scale * high;
        high_remainder += left_by_high * left_by_high;
        high_facts.sum += high;
        high_facts.size += std::abs(high);
    }
    facts.remainder = remainder_bound(remainder);
    high_facts.remainder = remainder_bound(high_remainder);
    return plane_query;
}

}  // namespace gloved::kernels::planes
