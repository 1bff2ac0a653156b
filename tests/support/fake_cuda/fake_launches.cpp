// The launches of launches.hpp as plain loops on the CPU. Where the header leaves a choice, they
// take the one that is hardest on the host code: hits are found from the last row to the first, and
// fields that no description mentions are not written.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernels/canonical.hpp"
#include "kernels/cuda/code_tiles.hpp"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/plane_grid.hpp"
#include "kernels/cuda/row_upper.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/shape.hpp"
#include "tests/support/fake_cuda/fake_device.hpp"

namespace gloved::kernels::cuda {
namespace {

using tests::fake_cuda::Launch;
using tests::fake_cuda::misuse;

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr std::uint32_t kAllRanks = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kVectorAlignment = 16;
/// Most excluded rows of queries that are passed as a parameter.
constexpr std::uint32_t kInlineExcluded = 3;

/// Warps for each unit of rows in the fake plane_query: its grid is made of whole blocks, so that
/// some warps have no row.
constexpr std::uint32_t kPlaneBlockWarps = 8;
/// Most steps of a query that plane_query takes as a parameter, and most floats of the queries that
/// plane_pass takes.
constexpr std::uint32_t kInlineSteps = 38;
constexpr std::uint32_t kInlinePassFloats = 400;
/// Rows of a query that a pass over the plane lists.
constexpr std::size_t kFakePlaneListed = 3072;
/// The largest int8 code.
constexpr float kInt8Top = 127;

/// Lists of a pass over code tiles, and the rows that they take for a query.
constexpr std::uint32_t kFakeCodeLists = 8;
constexpr std::size_t kFakeListed = 3072;
/// Scratch memory of a row.
constexpr std::size_t kScratchBytes = 16;

/// Where a shard's vectors may be.
enum class Vectors { on_device, anywhere };

/// A shard as the fake reads it.
struct Shard {
    DeviceModel model;
    std::span<const float> vectors;
    std::span<const double> norms;
    std::span<const std::uint32_t> ranks;
    std::span<const ListMask> memberships;  // empty: there are no lists
    std::span<const std::uint32_t> uncovered;

    Shard(const Launch& launch, const DeviceModel& of, Vectors where = Vectors::on_device)
        : model(of),
          vectors(vectors_of(launch, of, where)),
          norms(launch.device(of.norms, of.rows, "norms")),
          ranks(launch.device(of.ranks, of.rows, "ranks")),
          memberships(of.memberships == nullptr
                          ? std::span<const ListMask>()
                          : launch.device(of.memberships, of.rows, "memberships")),
          uncovered(launch.device(of.uncovered, of.uncovered_count, "uncovered")) {
        launch.require(of.rows > 0, "a shard without rows");
        launch.require(of.units == (of.rows - 1) / kUnitRows + 1,
                       "units is not rows / kUnitRows rounded up");
    }

    const float* row(std::uint32_t at) const {
        return vectors.data() + std::size_t{at} * model.stride;
    }
    bool covered(std::uint32_t row) const { return bound_covers(norms[row]); }

  private:
    static std::span<const float> vectors_of(const Launch& launch, const DeviceModel& of,
                                             Vectors where) {
        const std::size_t floats = std::size_t{of.rows} * of.stride;
        launch.require(of.dim > 0, "rows without components");
        if (where == Vectors::anywhere && of.vectors_on_host) {
            launch.require(of.stride == of.dim, "rows in host memory with padding");
            return launch.pinned(of.vectors, floats, "vectors");
        }
        launch.require(of.stride == (of.dim + kStrideFloats - 1) / kStrideFloats * kStrideFloats,
                       "stride is not dim rounded up");
        launch.require(reinterpret_cast<std::uintptr_t>(of.vectors) % kVectorAlignment == 0,
                       "vectors are not aligned");
        return launch.device(of.vectors, floats, "vectors");
    }
};

/// Which forms of its queries' vectors a launch reads.
enum class Reads { raw, raw_and_digits };

/// The queries of a pass as the fake reads them. On the device they are read when the work runs,
/// since an earlier copy may bring them; on the host, at once.
struct PassQueries {
    std::uint32_t count;
    std::uint32_t stride;
    bool any_filter;
    std::uint32_t max_k_plus_excluded;
    bool all_rows;
    std::span<const DeviceQuery> queries;
    std::span<const float> raw;
    std::span<const std::int8_t> digits;      // empty where they are not read
    std::span<const std::uint32_t> excluded;  // to the end of its allocation

    PassQueries(const Launch& launch, const DeviceQueries& of, const DeviceModel& model,
                bool from_host, Reads reads, std::uint32_t most)
        : count(of.count),
          stride(model.stride),
          any_filter(of.any_filter),
          max_k_plus_excluded(of.max_k_plus_excluded),
          all_rows(of.all_rows) {
        launch.require(of.count <= most, "more queries than a pass takes");
        const std::size_t floats = std::size_t{of.count} * model.stride;
        const std::size_t digit_bytes =
            reads == Reads::raw_and_digits ? of.count * digit_bytes_of(model) : 0;
        if (from_host) {
            take(of.host, floats, reads, digit_bytes);
            return;
        }
        queries = launch.device(of.queries, of.count, "queries");
        raw = launch.device(of.raw, floats, "raw");
        if (reads == Reads::raw_and_digits)
            digits = launch.device(of.digits, digit_bytes, "digits").first(digit_bytes);
        if (of.excluded != nullptr) excluded = launch.device(of.excluded, 0, "excluded");
        launch.require(is_aligned(of.raw) && (digits.empty() || is_aligned(of.digits)),
                       "query vectors are not aligned");
    }

    const float* raw_of(std::uint32_t query) const {
        return raw.data() + std::size_t{query} * stride;
    }

    /// The digits of a query, (steps * 8), zeros behind dim.
    std::vector<std::int32_t> whole_digits(std::uint32_t query) const {
        std::vector<std::int32_t> whole;
        const auto own = digits.subspan(digits.size() / count * query, digits.size() / count);
        for (std::size_t i = 0; i < own.size() / 2; ++i) {
            const std::int8_t* const step =
                own.data() + i / planes::kStepDims * 2 * planes::kStepDims + i % planes::kStepDims;
            whole.push_back(128 * step[0] + step[planes::kStepDims]);
        }
        return whole;
    }

    std::span<const std::uint32_t> excluded_by(const DeviceQuery& query, bool sorted = true) const {
        if (query.excluded_count == 0) return {};
        if (std::size_t{query.excluded_begin} + query.excluded_count > excluded.size()) {
            misuse("excluded rows beyond their allocation");
        }
        const auto list = excluded.subspan(query.excluded_begin, query.excluded_count);
        if (sorted && !std::is_sorted(list.begin(), list.end()))
            misuse("excluded rows out of order");
        return list;
    }

    /// Aborts on queries that contradict launches.hpp.
    void check(const Shard& shard) const {
        std::uint32_t largest = 0;
        for (const DeviceQuery& query : queries.first(count))
            largest = std::max(largest, query.k_plus_excluded);
        if (count == 0) misuse("a pass without queries");
        if (largest != max_k_plus_excluded)
            misuse("max_k_plus_excluded is not the largest k_plus_excluded");
        if (all_rows &&
            std::any_of(queries.begin(), queries.begin() + count, [&](const DeviceQuery& query) {
                return query.first != 0 || query.last != shard.model.rows;
            })) {
            misuse("all_rows is true, and a query leaves rows out");
        }
        for (const DeviceQuery& query : queries.first(count)) {
            if (!(query.norm > 0) || !std::isfinite(query.norm)) misuse("a query without a norm");
            if (std::isnan(query.min_score)) misuse("min_score is NaN");
            if (query.k_plus_excluded < query.k) misuse("k_plus_excluded is less than k");
            if ((query.within | query.without) != 0) {
                if (shard.memberships.empty()) misuse("a query names lists, and there are none");
                if (!any_filter) misuse("any_filter is false, and a query names lists");
            }
            if (any_filter || query.rank_below == kAllRanks) continue;
            if (*std::max_element(shard.ranks.begin(), shard.ranks.begin() + shard.model.rows) >=
                query.rank_below) {
                misuse("any_filter is false, and a query leaves ranks out");
            }
        }
        for (std::uint32_t q = 0; q < count; ++q) {
            for (std::uint32_t i = shard.model.dim; i < stride; ++i) {
                if (raw[q * stride + i] != 0) misuse("a query vector is not padded with zeros");
            }
        }
    }

  private:
    struct Copies {
        std::vector<DeviceQuery> queries;
        std::vector<float> raw;
        std::vector<std::int8_t> digits;
        std::vector<std::uint32_t> excluded;
    };

    static bool is_aligned(const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) % kVectorAlignment == 0;
    }

    static std::size_t digit_bytes_of(const DeviceModel& model) {
        return planes::PlaneShape{model.rows, model.dim}.steps() * 2 * planes::kStepDims;
    }

    /// Copies the queries, which the host may overwrite after the launch.
    void take(const DeviceQueries::Host& host, std::size_t floats, Reads reads,
              std::size_t digit_bytes) {
        auto copies = std::make_shared<Copies>();
        copies->queries.assign(host.queries, host.queries + count);
        copies->raw.assign(host.raw, host.raw + floats);
        if (reads == Reads::raw_and_digits)
            copies->digits.assign(host.digits, host.digits + digit_bytes);
        std::size_t rows = 0;
        for (const DeviceQuery& query : copies->queries) {
            rows = std::max(rows, std::size_t{query.excluded_begin} + query.excluded_count);
        }
        copies->excluded.assign(host.excluded, host.excluded + rows);
        queries = copies->queries;
        raw = copies->raw;
        digits = copies->digits;
        excluded = copies->excluded;
        copies_ = std::move(copies);
    }

    std::shared_ptr<const Copies> copies_;
};

/// Whether a row is eligible by range, rank and lists.
bool admits(const DeviceQuery& query, const Shard& shard, std::uint32_t row) {
    const ListMask named = query.within | query.without;
    return row >= query.first && row < query.last &&
           (query.rank_below == kAllRanks || shard.ranks[row] < query.rank_below) &&
           (named == 0 || ((query.within & query.without) == 0 &&
                           (shard.memberships[row] & named) == query.within));
}

bool contains(std::span<const std::uint32_t> sorted, std::uint32_t row) {
    return std::binary_search(sorted.begin(), sorted.end(), row);
}

/// The largest float that is not above `value`.
float rounded_down(double value) {
    const auto nearest = static_cast<float>(value);
    return static_cast<double>(nearest) > value ? std::nextafterf(nearest, kNone) : nearest;
}

/// The k_plus_excluded-th largest value, or min_score where that is more.
double floor_of(const DeviceQuery& query, std::span<const float> values) {
    std::vector<float> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const float kth =
        query.k_plus_excluded <= sorted.size() ? sorted[query.k_plus_excluded - 1] : kNone;
    return std::max(static_cast<double>(kth), query.min_score);
}

/// Writes the k best found rows in order; none after an overflow.
void rank(const DeviceQuery& query, std::span<const Found> found, DeviceAnswer& answer,
          std::span<Found> hits) {
    answer.hits = 0;
    if (answer.found > found.size()) return;
    std::vector<Found> sorted(found.begin(), found.begin() + answer.found);
    std::sort(sorted.begin(), sorted.end(), [](const Found& a, const Found& b) {
        return a.score != b.score ? a.score > b.score : a.row < b.row;
    });
    answer.hits = std::min(query.k, answer.found);
    std::copy_n(sorted.begin(), answer.hits, hits.begin());
}

void check_idle(std::span<const std::uint32_t> counters) {
    if (std::any_of(counters.begin(), counters.end(),
                    [](std::uint32_t value) { return value != 0; })) {
        misuse("counters are not 0 between passes");
    }
}

/// A shard's plane as the fake reads it.
struct PlaneRows {
    planes::PlaneShape shape;
    std::span<const std::uint8_t> bytes;

    PlaneRows(const Launch& launch, const DeviceModel& model) : shape{model.rows, model.dim} {
        launch.require(model.plane.bytes != nullptr, "a shard without a plane");
        launch.require(model.plane.groups == shape.groups() && model.plane.steps == shape.steps(),
                       "a plane of another shape than the shard's");
        launch.require(reinterpret_cast<std::uintptr_t>(model.plane.bytes) % kVectorAlignment == 0,
                       "the plane is not aligned");
        bytes = launch.device(model.plane.bytes, shape.bytes(), "plane");
    }

    /// The code of component `i` of a row, 0 … 15.
    int code(std::uint32_t row, std::size_t i) const {
        const std::size_t lane = row % planes::kGroupRows * sizeof(std::uint32_t);
        const std::size_t half = planes::kStepDims / 2;
        const std::uint8_t pair =
            group_of(row)[i / planes::kStepDims * planes::kStepBytes + lane + i % half];
        return i % planes::kStepDims < half ? pair & 15 : pair >> 4;
    }
    std::uint16_t projection(std::uint32_t row) const {
        return bound(row, row % planes::kGroupRows);
    }
    std::uint16_t residual(std::uint32_t row) const {
        return bound(row, planes::kGroupRows + row % planes::kGroupRows);
    }
    bool covers(std::uint32_t row) const { return (projection(row) | residual(row)) != 0; }

    /// Σ a Q.
    std::int32_t sum(std::uint32_t row, std::span<const std::int32_t> digits) const {
        std::int32_t total = 0;
        for (std::size_t i = 0; i < shape.dim; ++i) total += code(row, i) * digits[i];
        return total;
    }

  private:
    const std::uint8_t* group_of(std::uint32_t row) const {
        return bytes.data() + row / planes::kGroupRows * shape.group_bytes();
    }
    std::uint16_t bound(std::uint32_t row, std::size_t at) const {
        std::uint16_t value = 0;
        std::memcpy(&value, group_of(row) + shape.steps() * planes::kStepBytes + at * sizeof value,
                    sizeof value);
        return value;
    }
};

/// A query's digits, integers of at most `largest`.
struct Digits {
    std::vector<std::int32_t> values;
    planes::DigitFacts facts;

    Digits(const float* raw, double norm, std::size_t dim, int largest) {
        double longest = 0;
        for (std::size_t i = 0; i < dim; ++i)
            longest = std::max(longest, std::fabs(double{raw[i]}));
        facts.scale = longest / norm / largest;
        double squares = 0;
        for (std::size_t i = 0; i < dim; ++i) {
            const double component = double{raw[i]} / norm;
            const auto digit = static_cast<std::int32_t>(
                std::clamp<long>(std::lrint(component / facts.scale), -largest, largest));
            const double left = component - facts.scale * digit;
            squares += left * left;
            facts.sum += digit;
            facts.size += std::abs(digit);
            values.push_back(digit);
        }
        facts.remainder = planes::remainder_bound(squares);
    }
};

/// A row whose canonical score may make the floor.
struct Candidate {
    float estimate = kNone;
    std::uint32_t row = 0;
};

/// A canonical score that `k_plus_excluded` of the candidates reach, or min_score where that is
/// more.
double floor_of_candidates(const Shard& shard, const DeviceQuery& query, const float* raw,
                           std::span<const Candidate> candidates) {
    std::vector<double> scores;
    for (const Candidate& candidate : candidates) {
        if (candidate.estimate == kNone) continue;
        const double score = canonical_score(raw, query.norm, shard.row(candidate.row),
                                             shard.norms[candidate.row], shard.model.dim);
        if (!std::isnan(score)) scores.push_back(score);  // a damaged row's is
    }
    std::sort(scores.begin(), scores.end(), std::greater<>());
    const double reached = query.k_plus_excluded <= scores.size()
                               ? scores[query.k_plus_excluded - 1]
                               : -std::numeric_limits<double>::infinity();
    return std::max(reached, query.min_score);
}

/// Aborts where a query asks for more than lists hold.
void check_k(const DeviceQuery& query) {
    if (query.k == 0 || query.k > kMaxHits) misuse("k is 0 or beyond kMaxHits");
    if (query.k_plus_excluded > kMaxKPlusExcluded)
        misuse("k and excluded rows are beyond kMaxKPlusExcluded");
}

/// A row whose norm the bounds do not cover.
std::uint32_t uncovered_row(const Shard& shard, std::uint32_t at) {
    const std::uint32_t row = shard.uncovered[at];
    if (row >= shard.model.rows) misuse("an uncovered row that the shard does not have");
    if (shard.covered(row)) misuse("an uncovered row whose norm the bounds cover");
    return row;
}

/// Scores a row that query number `q` cannot rule out, and lists it in `found` if it reaches the
/// answer's floor.
void consider(const Shard& shard, const PassQueries& pass, std::uint32_t q, std::uint32_t row,
              std::span<Found> found, DeviceAnswer& answer) {
    const DeviceQuery& query = pass.queries[q];
    if (!admits(query, shard, row) || contains(pass.excluded_by(query), row)) return;
    const double score = canonical_score(pass.raw_of(q), query.norm, shard.row(row),
                                         shard.norms[row], shard.model.dim);
    ++answer.rescored;
    ++answer.survivors;
    if (!(score >= answer.floor)) return;
    const std::uint32_t at = answer.found++;
    if (at < found.size()) found[at] = {score, row, 0};
}

std::uint32_t plane_warps(const DeviceModel& model) {
    return (model.units + kPlaneBlockWarps - 1) / kPlaneBlockWarps * kPlaneBlockWarps;
}

/// A shard's int8 codes.
struct Int8Rows {
    std::uint32_t dim = 0;
    std::uint32_t stride = 0;
    std::span<std::int8_t> bytes;

    Int8Rows() = default;
    Int8Rows(const Launch& launch, const DeviceModel& model)
        : dim(model.dim), stride(model.int8_codes.stride) {
        const std::size_t count = std::size_t{model.rows} * stride;
        bytes = model.vectors_on_host ? launch.pinned(model.int8_codes.rows, count, "int8 rows")
                                      : launch.device(model.int8_codes.rows, count, "int8 rows");
        launch.require(stride % kInt8Step == 0 && stride >= dim + sizeof(Int8Bounds) &&
                           stride < dim + sizeof(Int8Bounds) + kInt8Step,
                       "stride of int8 rows is not dim and bounds rounded up");
        launch.require(dim <= kMaxInt8Dim, "int8 rows too wide for 32 bits");
        launch.require(
            reinterpret_cast<std::uintptr_t>(model.int8_codes.rows) % kVectorAlignment == 0,
            "int8 rows are not aligned");
    }

    std::int8_t* row(std::uint32_t at) const { return bytes.data() + std::size_t{at} * stride; }
    std::byte* bounds_at(std::uint32_t at) const {
        return reinterpret_cast<std::byte*>(row(at) + stride) - sizeof(Int8Bounds);
    }
    void set_bounds(std::uint32_t at, Int8Bounds bounds) const {
        std::memcpy(bounds_at(at), &bounds, sizeof bounds);
    }
    bool rules_out(std::uint32_t at, std::span<const std::int32_t> digits,
                   const Int8Cutoff& cutoff) const {
        std::int32_t sum = 0;
        for (std::uint32_t i = 0; i < dim; ++i) sum += row(at)[i] * digits[i];
        Int8Bounds bounds;
        std::memcpy(&bounds, bounds_at(at), sizeof bounds);
        return int8_rejects(sum, bounds, cutoff);
    }
};

/// The int8 codes of a covered row.
struct EncodedRow {
    std::vector<std::int8_t> codes;
    Int8Bounds bounds;

    EncodedRow(const Shard& shard, std::uint32_t row) : codes(shard.model.dim) {
        const float* const values = shard.row(row);
        float largest = 0;
        for (std::size_t i = 0; i < codes.size(); ++i)
            largest = std::max(largest, std::fabs(values[i]));
        double product = 0;
        double squares = 0;
        for (std::size_t i = 0; i < codes.size(); ++i) {
            const float code = std::rint(values[i] * (kInt8Top / largest));
            if (!std::isnan(code))
                codes[i] = static_cast<std::int8_t>(std::clamp(code, -kInt8Top, kInt8Top));
            product += double{values[i]} * codes[i];
            squares += codes[i] * codes[i];
        }
        bounds = int8_bounds(product, squares, shard.norms[row]);
    }
};

/// A shard's code tiles.
struct TileRows {
    DeviceCodeTiles shape;
    std::uint32_t dim = 0;
    std::span<std::int8_t> codes;
    std::span<Int8Range> ranges;
    std::span<Int8Bounds> bounds;
    std::span<std::uint32_t> rows;
    std::span<std::uint32_t> places_of;

    TileRows(const Launch& launch, const DeviceModel& model)
        : shape(model.code_tiles), dim(model.dim) {
        launch.require(shape.places == model.rows - model.uncovered_count,
                       "not every covered row has a place");
        launch.require(shape.tiles == code_tiles(shape.places) && shape.width == code_width(dim),
                       "code tiles of another shape than the shard's");
        codes = launch.device(shape.codes, std::size_t{shape.tiles} * tile_bytes(), "tile codes");
        ranges = launch.device(shape.ranges, shape.tiles, "tile ranges");
        bounds = launch.device(shape.bounds, shape.places, "tile bounds");
        rows = launch.device(shape.rows, shape.places, "tile rows");
        places_of = launch.device(shape.places_of, model.rows, "places of rows");
    }
    std::size_t tile_bytes() const { return std::size_t{kCodeTileRows} * shape.width; }
    std::int8_t& code(std::uint32_t place, std::uint32_t i) const {
        return codes[place / kCodeTileRows * tile_bytes() +
                     code_offset(kCodeTileRows, place % kCodeTileRows, i)];
    }
    /// Σ c Q.
    std::int32_t sum(std::uint32_t place, std::span<const std::int32_t> digits) const {
        std::int32_t total = 0;
        for (std::uint32_t i = 0; i < dim; ++i) total += code(place, i) * digits[i];
        return total;
    }
    Int8Range range_of(std::uint32_t place) const {
        const Int8Bounds own = bounds[place];
        return {own.projection, own.projection, own.residual};
    }
};

/// The k-th largest of some lower bounds, or min_score where that is more.
double floor_of_bounds(const DeviceQuery& query, std::uint32_t k, std::vector<double> lowers) {
    std::sort(lowers.begin(), lowers.end(), std::greater<>());
    const double kth =
        k <= lowers.size() ? lowers[k - 1] : -std::numeric_limits<double>::infinity();
    return std::max(kth, query.min_score);
}

/// Writes a query's vector that is a row of the shard.
void copy_row(const Shard& shard, const DeviceQuery& query, std::span<float> raw) {
    if (query.vector_row == kNotARow) return;
    if (query.vector_row >= shard.model.rows) misuse("a query's vector is no row of the shard");
    const float* const row = shard.row(query.vector_row);
    for (std::size_t i = 0; i < raw.size(); ++i)
        raw[i] = i < shard.model.dim ? row[i] + 0.0F : 0.0F;
}

/// Answers a query of a pass over code tiles, as launch_code_pass describes it.
void answer_by_tiles(const Shard& shard, const TileRows& tiles, const DeviceQuery& query,
                     const float* raw, std::span<const std::uint32_t> excluded,
                     std::span<Found> found, DeviceAnswer& answer, std::span<Found> hits) {
    const std::uint32_t dim = tiles.dim;
    const Digits digits(raw, query.norm, dim, planes::kOneByteDigit);
    std::vector<std::int32_t> sums(tiles.shape.places);
    std::vector<double> sample;
    const std::uint32_t step = code_sample_step(tiles.shape.tiles);
    for (std::uint32_t place = 0; place < tiles.shape.places; ++place) {
        sums[place] = tiles.sum(place, digits.values);
        const std::uint32_t tile = place / kCodeTileRows;
        if (tile % step != 0 || !admits(query, shard, tiles.rows[place])) continue;
        sample.push_back(int8_lower(sums[place], tiles.ranges[tile], digits.facts, dim));
    }
    const auto in_sample = [&](std::uint32_t row) {
        const std::uint32_t place = tiles.places_of[row];
        return place != kNoPlace && place / kCodeTileRows % step == 0;
    };
    const auto excluded_there =
        static_cast<std::uint32_t>(std::count_if(excluded.begin(), excluded.end(), in_sample));
    const double first = floor_of_bounds(query, query.k + excluded_there, std::move(sample));
    const Int8SumCutoff cutoff = int8_sum_cutoff(digits.facts, first, dim);
    std::vector<std::uint32_t> listed;
    std::vector<double> lowers;
    for (std::uint32_t place = tiles.shape.places; place-- > 0;) {
        const std::uint32_t row = tiles.rows[place];
        if (sums[place] < int8_min_sum(cutoff, tiles.ranges[place / kCodeTileRows]) ||
            !admits(query, shard, row) || contains(excluded, row)) {
            continue;
        }
        listed.push_back(place);
        lowers.push_back(int8_lower(sums[place], tiles.range_of(place), digits.facts, dim));
    }
    const double floor = std::max(first, floor_of_bounds(query, query.k, std::move(lowers)));
    const Int8SumCutoff last = int8_sum_cutoff(digits.facts, floor, dim);
    answer = {};
    answer.floor = floor;
    const auto consider = [&](std::uint32_t row) {
        ++answer.rescored;
        const double score =
            canonical_score(raw, query.norm, shard.row(row), shard.norms[row], dim);
        if (!(score >= floor)) return;
        const std::uint32_t at = answer.found++;
        if (at < kBatchFound) found[at] = {score, row, 0};
    };
    for (const std::uint32_t place : listed) {
        if (sums[place] >= int8_min_sum(last, tiles.range_of(place))) consider(tiles.rows[place]);
    }
    for (const std::uint32_t row : shard.uncovered.first(shard.model.uncovered_count)) {
        if (admits(query, shard, row) && !contains(excluded, row)) consider(row);
    }
    answer.survivors = static_cast<std::uint32_t>(listed.size()) + shard.model.uncovered_count;
    rank(query, found.first(kBatchFound), answer, hits);
    // Any number beyond kFoundCapacity means overflow.
    if (answer.found > kBatchFound || listed.size() > kFakeListed) {
        answer.hits = 0;
        answer.found = kFoundCapacity + 1;
    }
}

void check_shape(const Launch& launch, const DeviceShape& shape) {
    launch.require(
        shape.processors > 0 && shape.shared_bytes > 0 && shape.shared_bytes_processor > 0,
        "a device without processors or shared memory");
}

}  // namespace

cudaError_t load_kernels() { return tests::fake_cuda::load(); }

bool early_launch_is_built() { return true; }

bool plane_serves(const DeviceModel& model, std::uint32_t k_plus_excluded, const DeviceShape&) {
    return model.plane.bytes != nullptr && k_plus_excluded < plane_warps(model);
}

bool plane_query_fits_parameters(const DeviceModel& model, const DeviceQueries& queries) {
    return queries.count == 1 && model.plane.steps <= kInlineSteps &&
           queries.host.queries[0].excluded_count <= kInlineExcluded;
}

/// Aborts where facts about the digits of a query are those of others.
void check_facts(const DeviceQuery& query, std::span<const std::int32_t> digits,
                 std::uint32_t dim) {
    std::int32_t centre = 0;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        centre += planes::kTopLevel * digits[i];
        if (i >= dim && digits[i] != 0) misuse("digits are not padded with zeros");
    }
    if (centre != query.upper.centre || !(query.upper.per_unit > 0) ||
        !(query.upper.remainder >= 0)) {
        misuse("facts of other digits");
    }
}

cudaError_t launch_plane_query(const DeviceModel& model, const DeviceQueries& queries,
                               const Workspace& work, const DeviceShape& shape,
                               cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(plane_serves(model, queries.max_k_plus_excluded, shape),
                   "a query that plane_serves denies");
    check_shape(launch, shape);
    const Shard shard(launch, model, Vectors::anywhere);
    const PlaneRows plane(launch, model);
    const bool by_int8 = model.vectors_on_host && model.int8_codes.rows != nullptr;
    const Int8Rows int8_codes = by_int8 ? Int8Rows(launch, model) : Int8Rows();
    const PassQueries pass(launch, queries, model, plane_query_fits_parameters(model, queries),
                           Reads::raw_and_digits, 1);
    const std::size_t uppers = PlaneGrid(model.units, model.plane.steps, shape).uppers();
    if (uppers > 0) (void)launch.device(work.uppers, uppers, "uppers");
    (void)launch.device(work.candidate_scores, kMaxCandidates, "candidate_scores");
    const auto counters = launch.device(work.counters, kCounters, "counters");
    const auto found = launch.device(work.found, kFoundCapacity, "found");
    const auto answers = launch.pinned(work.answers, 1, "answers");
    const auto hits = launch.pinned(work.hits, kMaxHits, "hits");
    return launch.run([=] {
        pass.check(shard);
        check_idle(counters.first(kCounters));
        const std::uint32_t q = 0;
        const DeviceQuery& query = pass.queries[q];
        check_k(query);
        const std::vector<std::int32_t> digits = pass.whole_digits(q);
        check_facts(query, digits, shard.model.dim);
        std::vector<float> bounds(shard.model.rows, kNone);
        std::vector<Candidate> best(plane_warps(shard.model));
        for (std::uint32_t row = 0; row < shard.model.rows; ++row) {
            if (!plane.covers(row) || !admits(query, shard, row)) continue;
            float estimate = 0;
            bounds[row] = row_upper(plane.sum(row, digits), plane.projection(row),
                                    plane.residual(row), query.upper, estimate);
            if (!std::isfinite(bounds[row])) misuse("a bound that is not finite");
            Candidate& of_warp = best[row / kUnitRows % best.size()];
            if (estimate > of_warp.estimate) of_warp = {estimate, row};
        }
        const double floor = floor_of_candidates(shard, query, pass.raw_of(q), best);
        DeviceAnswer& answer = answers[q];
        answer = {floor, 0, 0, 0, 0};
        const Int8Cutoff second_cutoff = int8_cutoff(query.digits, floor, shard.model.dim);
        for (std::uint32_t row = shard.model.rows; row-- > 0;) {
            if (!(bounds[row] >= rounded_down(floor)) || bounds[row] == kNone) continue;
            if (by_int8 && int8_codes.rules_out(row, digits, second_cutoff)) {
                ++answer.survivors;
                continue;
            }
            consider(shard, pass, q, row, found, answer);
        }
        for (std::uint32_t i = 0; i < shard.model.uncovered_count; ++i)
            consider(shard, pass, q, uncovered_row(shard, i), found, answer);
        rank(query, found, answer, hits);
    });
}

std::uint32_t plane_pass_capacity(std::size_t, std::uint32_t, const DeviceShape& shape) {
    if (!shape.integer_products) return 0;
    return std::min(tests::fake_cuda::plane_pass_capacity(), kMaxPlanePass);
}

bool plane_pass_serves(const DeviceModel& model, std::uint32_t k_plus_excluded,
                       const DeviceShape&) {
    return model.plane.bytes != nullptr && k_plus_excluded < plane_warps(model);
}

bool plane_pass_fits_parameters(const DeviceModel& model, const DeviceQueries& queries) {
    std::uint32_t excluded = 0;
    for (std::uint32_t q = 0; q < queries.count; ++q)
        excluded += queries.host.queries[q].excluded_count;
    return queries.count * model.stride <= kInlinePassFloats && excluded <= kInlineExcluded;
}

cudaError_t launch_build_int8_codes(const DeviceModel& model, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    const Shard shard(launch, model, Vectors::anywhere);
    const Int8Rows int8_codes(launch, model);
    return launch.run([=] {
        for (std::uint32_t row = 0; row < shard.model.rows; ++row) {
            std::int8_t* const codes = int8_codes.row(row);
            std::fill_n(codes, int8_codes.stride, std::int8_t{0});
            if (!shard.covered(row)) continue;
            const EncodedRow encoded(shard, row);
            std::copy(encoded.codes.begin(), encoded.codes.end(), codes);
            int8_codes.set_bounds(row, encoded.bounds);
        }
    });
}

bool wgmma_is_built() { return true; }

std::uint32_t code_pass_capacity() {
    return std::min(tests::fake_cuda::plane_pass_capacity(), kMaxCodePass);
}

std::size_t code_lists(const DeviceShape&) { return kFakeCodeLists; }

cudaError_t code_tiles_scratch_bytes(std::uint32_t rows, std::size_t& bytes) {
    bytes = kScratchBytes * rows;
    return cudaSuccess;
}

cudaError_t launch_build_code_tiles(const DeviceModel& model, std::byte* scratch,
                                    std::size_t scratch_bytes, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(scratch_bytes == kScratchBytes * model.rows, "too little scratch");
    (void)launch.device(scratch, scratch_bytes, "scratch");
    const Shard shard(launch, model, Vectors::anywhere);
    const TileRows tiles(launch, model);
    return launch.run([=] {
        // In the order of the bits, as the GPU sorts: NaN, of a damaged row, comes last.
        std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
        for (std::uint32_t row = shard.model.rows; row-- > 0;) {
            if (!shard.covered(row)) continue;
            const float projection = EncodedRow(shard, row).bounds.projection;
            order.emplace_back(std::bit_cast<std::uint32_t>(projection), row);
        }
        if (order.size() != tiles.shape.places) misuse("covered rows without a place");
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        std::fill_n(tiles.codes.begin(), tiles.shape.tiles * tiles.tile_bytes(), std::int8_t{0});
        std::fill(tiles.places_of.begin(), tiles.places_of.end(), kNoPlace);
        for (std::uint32_t place = 0; place < tiles.shape.places; ++place) {
            const std::uint32_t row = order[place].second;
            const EncodedRow encoded(shard, row);
            for (std::uint32_t i = 0; i < tiles.dim; ++i) tiles.code(place, i) = encoded.codes[i];
            tiles.rows[place] = row;
            tiles.places_of[row] = place;
            tiles.bounds[place] = encoded.bounds;
            Int8Range& range = tiles.ranges[place / kCodeTileRows];
            const Int8Range own = tiles.range_of(place);
            if (place % kCodeTileRows == 0) range = own;
            range.min_projection = std::min(range.min_projection, own.min_projection);
            range.max_projection = std::max(range.max_projection, own.max_projection);
            range.max_residual = std::max(range.max_residual, own.max_residual);
        }
    });
}

cudaError_t launch_code_pass(const DeviceModel& model, const DeviceQueries& queries,
                             const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    check_shape(launch, shape);
    launch.require(queries.count <= code_pass_capacity(), "more queries than code_pass_capacity");
    const Shard shard(launch, model, Vectors::anywhere);
    const TileRows tiles(launch, model);
    const PassQueries pass(launch, queries, model, false, Reads::raw, kMaxCodePass);
    const std::size_t count = queries.count;
    const std::size_t max_k = queries.max_k;
    const auto all_raw = launch.device(queries.raw, count * model.stride, "raw");
    const CodeWorkspace& own = work.code;
    (void)launch.device(own.digits, count * tiles.shape.width, "digits of a pass");
    (void)launch.device(own.facts, count, "facts");
    (void)launch.device(own.cutoffs, count, "cutoffs");
    (void)launch.device(own.keys, count * code_sample_keys(tiles.shape.tiles), "keys");
    (void)launch.device(own.kept, count * kMaxKept, "kept rows");
    (void)launch.device(own.kept_counts, count, "counts of kept rows");
    (void)launch.device(own.marks, std::size_t{kMaxMarkedFilters} * tiles.shape.tiles * kKeysOfTile,
                        "marks");
    launch.require(queries.marked_count <= kMaxMarkedFilters, "more filters than have marks");
    const auto marked = std::to_array(queries.marked);
    const std::uint32_t marked_count = queries.marked_count;
    (void)launch.device(own.counts, kFakeCodeLists, "counts of lists");
    (void)launch.device(own.lists, std::size_t{kFakeCodeLists} * kCodeListRoom, "lists");
    const auto floors = launch.device(own.floors, count, "floors of a pass");
    const auto all_found = launch.device(work.found, kBatchFound, "found");
    const auto answers = launch.pinned(work.answers, count, "answers");
    const auto all_hits = launch.pinned(work.hits, count * queries.max_k, "hits");
    return launch.run([=] {
        for (std::uint32_t q = 0; q < pass.count; ++q) {
            const auto raw = all_raw.subspan(std::size_t{q} * pass.stride, pass.stride);
            copy_row(shard, pass.queries[q], raw);
        }
        pass.check(shard);
        for (std::uint32_t q = 0; q < pass.count; ++q) {
            DeviceQuery query = pass.queries[q];
            if (query.marks != kNoMarks) {
                if (query.marks >= marked_count) misuse("marks that are not made");
                // As the kernels: the rows that the marked query's filter admits.
                const DeviceQuery& by = pass.queries[marked[query.marks]];
                query.rank_below = by.rank_below;
                query.first = by.first;
                query.last = by.last;
                query.within = by.within;
                query.without = by.without;
            }
            if (query.k == 0 || query.k > max_k) misuse("k is 0 or beyond max_k");
            if (query.k_plus_excluded > kMaxBatchKPlusExcluded)
                misuse("k and excluded rows are beyond kMaxBatchKPlusExcluded");
            const auto named = pass.excluded_by(query, false);
            std::vector<std::uint32_t> excluded(named.begin(), named.end());
            std::sort(excluded.begin(), excluded.end());
            answer_by_tiles(shard, tiles, query, pass.raw_of(q), excluded, all_found, answers[q],
                            all_hits.subspan(std::size_t{q} * max_k, max_k));
            floors[q] = answers[q].floor;
        }
    });
}

cudaError_t launch_sort_by_rank(const DeviceModel& model, std::byte* scratch,
                                std::size_t scratch_bytes, std::uint32_t* rows,
                                cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(scratch_bytes == kScratchBytes * model.rows, "too little scratch");
    (void)launch.device(scratch, scratch_bytes, "scratch");
    const auto ranks = launch.device(model.ranks, model.rows, "ranks");
    const auto sorted = launch.device(rows, model.rows, "rows by rank");
    return launch.run([=] {
        std::iota(sorted.begin(), sorted.end(), 0U);
        std::sort(sorted.begin(), sorted.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return ranks[a] < ranks[b]; });
    });
}

cudaError_t launch_few_rows(const DeviceModel& model, const DeviceQueries& queries,
                            const Workspace& work, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    const Shard shard(launch, model);
    const PassQueries pass(launch, queries, model, false, Reads::raw, kMaxCodePass);
    const std::size_t max_k = queries.max_k;
    const auto by_rank = launch.device(model.rows_by_rank, model.rows, "rows by rank");
    const auto list_rows =
        model.list_rows == nullptr
            ? std::span<const std::uint32_t>()
            : launch.device(model.list_rows, kMaxLists * kMaxFewRows, "rows of lists");
    (void)launch.device(work.few.best, std::size_t{kMaxFewBlocks} * kMaxBatchHits, "best rows");
    (void)launch.device(work.few.counts, kMaxFewBlocks, "counts of best rows");
    const auto done = launch.device(work.few.done, kMaxCodePass, "blocks done");
    const auto answers = launch.pinned(work.answers, queries.count, "answers");
    const auto all_hits = launch.pinned(work.hits, queries.count * max_k, "hits");
    return launch.run([=] {
        pass.check(shard);
        if (done[0] != 0) misuse("blocks of another pass are not done");
        std::vector<Found> found(shard.model.rows);
        for (std::uint32_t q = 0; q < pass.count; ++q) {
            const DeviceQuery& query = pass.queries[q];
            if (query.k == 0 || query.k > max_k || query.k > kMaxBatchHits)
                misuse("k is 0 or beyond its limits");
            const std::uint32_t in_range = query.last - query.first;
            const std::uint32_t rows = std::min({query.rank_below, in_range, query.listed});
            if (rows > kMaxFewRows) misuse("more than few rows");
            const bool listed = query.listed == rows && rows < query.rank_below && rows < in_range;
            if (listed && list_rows.size() < query.list_begin + rows)
                misuse("a list beyond the rows of lists");
            const auto excluded = pass.excluded_by(query);
            DeviceAnswer& answer = answers[q];
            answer = {-std::numeric_limits<double>::infinity(), 0, 0, rows, rows};
            for (std::uint32_t i = 0; i < std::min(rows, shard.model.rows); ++i) {
                const std::uint32_t row = listed ? list_rows[query.list_begin + i]
                                          : query.rank_below < in_range ? by_rank[i]
                                                                        : query.first + i;
                if (!admits(query, shard, row) || contains(excluded, row)) continue;
                const double score = canonical_score(pass.raw_of(q), query.norm, shard.row(row),
                                                     shard.norms[row], shard.model.dim);
                if (score >= query.min_score) found[answer.found++] = {score, row, 0};
            }
            rank(query, found, answer, all_hits.subspan(std::size_t{q} * max_k, max_k));
        }
    });
}

cudaError_t launch_plane_pass(const DeviceModel& model, const DeviceQueries& queries,
                              const Workspace& work, const DeviceShape& shape,
                              cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    check_shape(launch, shape);
    launch.require(queries.count <= plane_pass_capacity(model.dim, 0, shape),
                   "more queries than plane_pass_capacity");
    launch.require(plane_pass_serves(model, queries.max_k_plus_excluded, shape),
                   "a query that plane_pass_serves denies");
    const Shard shard(launch, model, Vectors::anywhere);
    const PlaneRows plane(launch, model);
    const bool with_int8 = model.vectors_on_host && model.int8_codes.rows != nullptr;
    const Int8Rows int8_codes = with_int8 ? Int8Rows(launch, model) : Int8Rows();
    const PassQueries pass(launch, queries, model, plane_pass_fits_parameters(model, queries),
                           Reads::raw, kMaxPlanePass);
    const std::size_t count = queries.count;
    (void)launch.device(work.candidate_scores, count * kMaxCandidates, "candidate_scores");
    const auto counters = launch.device(work.counters, count * kCounters, "counters");
    const auto all_found = launch.device(work.found, count * kBatchFound, "found");
    const auto answers = launch.pinned(work.answers, count, "answers");
    const auto all_hits = launch.pinned(work.hits, count * kMaxBatchHits, "hits");
    return launch.run([=] {
        pass.check(shard);
        check_idle(counters.first(count * kCounters));
        const std::uint32_t dim = shard.model.dim;
        for (std::uint32_t q = 0; q < pass.count; ++q) {
            const DeviceQuery& query = pass.queries[q];
            if (query.k == 0 || query.k > kMaxBatchHits) misuse("k is 0 or beyond kMaxBatchHits");
            if (query.k_plus_excluded > kMaxBatchKPlusExcluded)
                misuse("k and excluded rows are beyond kMaxBatchKPlusExcluded");
            const float* const raw = pass.raw_of(q);
            const Digits coarse(raw, query.norm, dim, planes::kOneByteDigit);
            const Digits precise(raw, query.norm, dim, planes::kTwoByteDigit);

            std::vector<std::int32_t> sums(shard.model.rows);
            std::vector<Candidate> best(plane_warps(shard.model));
            for (std::uint32_t row = 0; row < shard.model.rows; ++row) {
                sums[row] = plane.sum(row, coarse.values);
                if (!plane.covers(row) || !admits(query, shard, row)) continue;
                const float p = plane.projection(row);
                const float h = plane.residual(row);
                const double product = 2.0 * sums[row] - planes::kTopLevel * coarse.facts.sum;
                const auto estimate = static_cast<float>(product) * p / (p * p + h * h);
                Candidate& of_warp = best[row / kUnitRows % best.size()];
                if (estimate > of_warp.estimate) of_warp = {estimate, row};
            }
            const double floor = floor_of_candidates(shard, query, raw, best);

            const planes::PlaneCutoff cutoff = planes::plane_cutoff(coarse.facts, floor, dim);
            const Int8Cutoff second_cutoff = int8_cutoff(precise.facts, floor, dim);
            const auto found = all_found.subspan(std::size_t{q} * kBatchFound, kBatchFound);
            const auto excluded = pass.excluded_by(query);
            DeviceAnswer& answer = answers[q];
            answer.floor = floor;
            answer.found = 0;
            answer.rescored = answer.survivors = 0;
            const auto consider = [&](std::uint32_t row) {
                ++answer.rescored;
                ++answer.survivors;
                const double score =
                    canonical_score(raw, query.norm, shard.row(row), shard.norms[row], dim);
                if (!(score >= floor) || contains(excluded, row)) return;
                const std::uint32_t at = answer.found++;
                if (at < found.size()) found[at] = {score, row, 0};
            };
            std::size_t through = 0;
            for (std::uint32_t row = shard.model.rows; row-- > 0;) {
                if (!shard.covered(row) || !admits(query, shard, row)) continue;
                const float least = plane.projection(row) * cutoff.of_projection -
                                    plane.residual(row) * cutoff.of_residual + cutoff.constant;
                if (static_cast<float>(sums[row]) < least) continue;
                ++through;
                if (with_int8 && int8_codes.rules_out(row, precise.values, second_cutoff)) {
                    ++answer.survivors;
                    continue;
                }
                consider(row);
            }
            for (std::uint32_t i = 0; i < shard.model.uncovered_count; ++i) {
                if (admits(query, shard, shard.uncovered[i])) consider(shard.uncovered[i]);
            }
            rank(query, found, answer,
                 all_hits.subspan(std::size_t{q} * kMaxBatchHits, kMaxBatchHits));
            // Any number beyond kFoundCapacity means overflow.
            if (answer.found > kBatchFound || through > kFakePlaneListed) {
                answer.hits = 0;
                answer.found = kFoundCapacity + 1;
            }
        }
    });
}

namespace {

/// The score of a row, while it takes in the vectors of a query of launch_score.
struct RunningScore {
    double value = 1;
    double divisor = 1;
    double score = 0;  ///< NaN for a row that is not eligible
};

RunningScore run_score(const Shard& shard, const PassQueries& pass, const ScoredQuery& scored,
                       std::uint32_t row, RunningScore running = {}) {
    for (std::uint32_t v = scored.begin; v < scored.end; ++v) {
        const double cosine = canonical_score(pass.raw_of(v), pass.queries[v].norm, shard.row(row),
                                              shard.norms[row], shard.model.dim);
        if (scored.is_product) {
            double& product = v < scored.positives_end ? running.value : running.divisor;
            product *= cosmul_part(cosine);
        } else {
            running.value = cosine;
        }
    }
    running.score =
        scored.is_product ? cosmul_score(running.value, running.divisor) : running.value;
    const DeviceQuery& query = pass.queries[scored.begin];
    if (!admits(query, shard, row) || !(running.score >= query.min_score))
        running.score = std::numeric_limits<double>::quiet_NaN();
    return running;
}

/// The number of rows with a score that come before the target and are not excluded.
std::uint32_t count_before(const Shard& shard, std::span<const double> scores,
                           std::span<const std::uint32_t> excluded, const Found& target) {
    std::uint32_t count = 0;
    for (std::uint32_t row = 0; row < shard.model.rows; ++row) {
        const std::uint32_t of_model = shard.model.first_row + row;
        if (of_model == target.row || contains(excluded, row)) continue;
        // NaN, which is never before anything, where a row is not eligible.
        if (scores[row] > target.score || (scores[row] == target.score && of_model < target.row))
            ++count;
    }
    return count;
}

/// The number of rows from `first` to `last` - 1 that any query of the pass admits.
std::uint32_t count_admitted(const Shard& shard, const PassQueries& vectors, const ScorePass& pass,
                             std::uint32_t first, std::uint32_t last) {
    std::uint32_t count = 0;
    for (std::uint32_t row = first; row < last; ++row) {
        const auto admits_it = [&](const ScoredQuery& query) {
            return admits(vectors.queries[query.begin], shard, row);
        };
        count +=
            std::ranges::any_of(std::span(pass.queries).first(pass.count), admits_it) ? 1U : 0U;
    }
    return count;
}

/// Aborts on a pass that contradicts launches.hpp.
void check_pass(const Launch& launch, const DeviceModel& model, const DeviceQueries& queries,
                const ScorePass& pass) {
    launch.require(pass.count > 0 && pass.count <= kMaxScoredQueries,
                   "no query, or more than a launch takes");
    launch.require(pass.first_unit < pass.last_unit && pass.last_unit <= model.units,
                   "units that the shard does not have");
    std::uint32_t next = 0;
    for (const ScoredQuery& scored : std::span(pass.queries).first(pass.count)) {
        launch.require(scored.begin == next && scored.begin < scored.end &&
                           scored.positives_end >= scored.begin &&
                           scored.positives_end <= scored.end,
                       "vectors that are no query's own");
        launch.require(scored.is_product || scored.end == scored.begin + 1,
                       "the cosine with more than one vector");
        next = scored.end;
    }
    launch.require(next == queries.count, "vectors of no query");
    launch.require(!pass.few || pass.result == ScoreResult::counts, "a list for no counts");
    launch.require(
        pass.result == ScoreResult::scores ? pass.count == 1 : !pass.continues && !pass.goes_on,
        "scores of several queries, or a part of a query's vectors");
}

}  // namespace

cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries,
                         const ScorePass& pass, const Workspace& work, const DeviceShape& shape,
                         cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    check_shape(launch, shape);
    check_pass(launch, model, queries, pass);
    const Shard shard(launch, model, Vectors::anywhere);
    const PassQueries vectors(launch, queries, model, false, Reads::raw, kMaxScoreVectors);
    const std::size_t count = pass.count;
    (void)launch.device(work.maxima, count * model.units, "maxima");
    (void)launch.device(work.floors, count, "floors");
    const auto counters = launch.device(work.counters, count * kCounters, "counters");
    const auto all_found = launch.device(work.found, count * kFoundCapacity, "found");
    const auto stored = launch.device(work.scores, model.rows, "scores");
    const auto divisors = launch.device(work.divisors, model.rows, "divisors");
    const auto answers = launch.pinned(work.answers, count, "answers");
    const auto all_hits = launch.pinned(work.hits, count * kMaxHits, "hits");
    return launch.run([=] {
        vectors.check(shard);
        check_idle(counters.first(count * kCounters));
        const std::uint32_t first = pass.first_unit * kUnitRows;
        const std::uint32_t last = std::min(pass.last_unit * kUnitRows, shard.model.rows);
        for (std::size_t q = 0; q < count; ++q) {
            const ScoredQuery& scored = pass.queries[q];
            const DeviceQuery& query = vectors.queries[scored.begin];
            if (pass.result == ScoreResult::scores) {
                for (std::uint32_t row = first; row < last; ++row) {
                    RunningScore running;
                    if (pass.continues) running = RunningScore{stored[row], divisors[row], 0};
                    running = run_score(shard, vectors, scored, row, running);
                    stored[row] = pass.goes_on ? running.value : running.score;
                    divisors[row] = running.divisor;
                }
                continue;
            }
            std::vector<double> scores(shard.model.rows, std::numeric_limits<double>::quiet_NaN());
            for (std::uint32_t row = first; row < last; ++row)
                scores[row] = run_score(shard, vectors, scored, row).score;
            const auto excluded = vectors.excluded_by(query);
            DeviceAnswer& answer = answers[q];
            if (pass.result == ScoreResult::counts) {
                answer = {};
                answer.found = count_before(shard, scores, excluded, scored.target);
                if (pass.few) answer.rescored = count_admitted(shard, vectors, pass, first, last);
                continue;
            }
            check_k(query);
            std::vector<float> maxima(shard.model.units, kNone);
            for (std::uint32_t row = 0; row < shard.model.rows; ++row) {
                float& best = maxima[row / kUnitRows];
                if (!std::isnan(scores[row])) best = std::max(best, rounded_down(scores[row]));
            }
            answer = {floor_of(query, maxima), 0, 0, 0, 0};
            const auto found = all_found.subspan(q * kFoundCapacity, kFoundCapacity);
            for (std::uint32_t row = shard.model.rows; row-- > 0;) {
                if (maxima[row / kUnitRows] < rounded_down(answer.floor)) continue;
                ++answer.rescored;
                ++answer.survivors;
                if (!(scores[row] >= answer.floor) || contains(excluded, row)) continue;
                const std::uint32_t at = answer.found++;
                if (at < found.size()) found[at] = {scores[row], row, 0};
            }
            rank(query, found, answer, all_hits.subspan(q * kMaxHits, kMaxHits));
        }
    });
}

cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim,
                            std::uint32_t stride, float* padded, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(rows > 0 && dim > 0 && dim <= stride, "a shape that has nothing to pad");
    const auto from = launch.device(packed, std::size_t{rows} * dim, "packed");
    const auto to = launch.device(padded, std::size_t{rows} * stride, "padded");
    return launch.run([=] {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t i = 0; i < stride; ++i)
                to[row * stride + i] = i < dim ? from[row * dim + i] : 0.0F;
        }
    });
}

}  // namespace gloved::kernels::cuda
