// The kernels of launches.hpp, plainly: what they read and write, and nothing of how a GPU would. What the header leaves open is done
// in the way that is hardest on the host: multiply's estimates are off by up to 0.9 of the error that is allowed, hits are found
// from the last row to the first, and fields that no description mentions are left as they were.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cuda/launches.hpp"
#include "tests/support/fake_cuda/fake_device.hpp"

namespace gloved::kernels::cuda {
namespace {

using tests::fake_cuda::Launch;
using tests::fake_cuda::misuse;

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t kAllRanks = std::numeric_limits<std::uint32_t>::max();
/// The share of DeviceQuery::error by which the fake multiply errs.
constexpr double kErrorShare = 0.9;
constexpr std::size_t kVectorAlignment = 16;
/// As few, so that small models have many groups a warp too.
constexpr std::uint32_t kScanWarps = 12;
/// What travels with a launch, at most.
constexpr std::uint32_t kInlineFloats = 300;
constexpr std::uint32_t kInlineExcluded = 3;
/// Warps for each wanted row, at least, for the fake select to go by warps.
constexpr std::uint32_t kWarpsForAWant = 2;

/// A shard as the fake reads it.
struct Shard {
    DeviceModel model;
    std::span<const float> vectors;
    std::span<const double> norms;
    std::span<const float> inverse_norms;
    std::span<const std::uint32_t> ranks;
    std::span<const std::uint32_t> uncovered;

    Shard(const Launch& launch, const DeviceModel& of)
        : model(of),
          vectors(launch.device(of.vectors, std::size_t{of.rows} * of.stride, "vectors")),
          norms(launch.device(of.norms, of.rows, "norms")),
          inverse_norms(launch.device(of.inverse_norms, std::size_t{of.groups} * kGroupRows, "inverse_norms")),
          ranks(launch.device(of.ranks, of.rows, "ranks")),
          uncovered(launch.device(of.uncovered, of.uncovered_count, "uncovered")) {
        launch.require(of.rows > 0, "a shard without rows");
        launch.require(of.dim > 0 && of.stride == (of.dim + kStrideFloats - 1) / kStrideFloats * kStrideFloats,
                       "stride is not dim rounded up");
        launch.require(of.groups == (of.rows - 1) / kGroupRows + 1, "groups is not rows / kGroupRows rounded up");
        launch.require(reinterpret_cast<std::uintptr_t>(of.vectors) % kVectorAlignment == 0, "vectors are not aligned");
    }

    const float* row(std::uint32_t at) const { return vectors.data() + std::size_t{at} * model.stride; }
};

/// The queries of a pass as the fake reads them: on the device, when the work is done, for their content may arrive by an earlier
/// copy; or on the host, at once.
struct Asked {
    std::uint32_t count;
    std::uint32_t stride;
    bool any_rank;
    std::uint32_t max_want;
    bool all_rows;
    std::span<const DeviceQuery> queries;
    std::span<const float> raw;
    std::span<const float> unit;
    std::span<const std::uint32_t> excluded;  // to the end of its allocation

    Asked(const Launch& launch, const DeviceQueries& of, const DeviceModel& model, bool from_host = false)
        : count(of.count), stride(model.stride), any_rank(of.any_rank), max_want(of.max_want), all_rows(of.all_rows) {
        launch.require(of.count <= kMaxPass, "more than kMaxPass queries");
        const std::size_t floats = std::size_t{of.count} * model.stride;
        if (from_host) {
            take(of.host, floats);
            return;
        }
        queries = launch.device(of.queries, of.count, "queries");
        raw = launch.device(of.raw, floats, "raw");
        unit = launch.device(of.unit, floats, "unit");
        if (of.excluded != nullptr) excluded = launch.device(of.excluded, 0, "excluded");
        launch.require(reinterpret_cast<std::uintptr_t>(of.raw) % kVectorAlignment == 0 &&
                           reinterpret_cast<std::uintptr_t>(of.unit) % kVectorAlignment == 0,
                       "query vectors are not aligned");
    }

    std::span<const std::uint32_t> excluded_by(const DeviceQuery& query) const {
        if (query.excluded_count == 0) return {};
        if (std::size_t{query.excluded_begin} + query.excluded_count > excluded.size()) {
            misuse("excluded rows beyond their allocation");
        }
        const auto list = excluded.subspan(query.excluded_begin, query.excluded_count);
        if (!std::is_sorted(list.begin(), list.end())) misuse("excluded rows out of order");
        return list;
    }

    /// What no query may be, whatever is asked of it.
    void check(const Shard& shard) const {
        std::uint32_t largest = 0;
        for (const DeviceQuery& query : queries.first(count)) largest = std::max(largest, query.want);
        if (count == 0) misuse("a pass without queries");
        if (largest != max_want) misuse("max_want is not the largest want");
        if (all_rows && std::any_of(queries.begin(), queries.begin() + count, [&](const DeviceQuery& query) {
                return query.first != 0 || query.last != shard.model.rows;
            })) {
            misuse("all_rows is true, and a query leaves rows out");
        }
        for (const DeviceQuery& query : queries.first(count)) {
            if (!(query.norm > 0) || !std::isfinite(query.norm)) misuse("a query without a norm");
            if (!(query.error >= 0)) misuse("a query without an error");
            if (std::isnan(query.min_score)) misuse("min_score is NaN");
            if (query.want < query.k) misuse("want is less than k");
            if (any_rank || query.rank_below == kAllRanks) continue;
            if (*std::max_element(shard.ranks.begin(), shard.ranks.begin() + shard.model.rows) >= query.rank_below) {
                misuse("any_rank is false, and a query leaves ranks out");
            }
        }
        for (std::uint32_t q = 0; q < count; ++q) {
            for (std::uint32_t i = shard.model.dim; i < stride; ++i) {
                if (raw[q * stride + i] != 0 || unit[q * stride + i] != 0)
                    misuse("a query vector is not padded with zeros");
            }
        }
    }

    /// The real kernel may be off by `bound`.
    void check_error(double bound) const {
        for (const DeviceQuery& query : queries.first(count)) {
            if (!(query.error >= bound)) misuse("a query is told of a smaller error than the kernel's bound");
        }
    }

  private:
    struct Copies {
        std::vector<DeviceQuery> queries;
        std::vector<float> raw;
        std::vector<float> unit;
        std::vector<std::uint32_t> excluded;
    };

    /// Copies what the host may overwrite as soon as the launch has returned.
    void take(const DeviceQueries::Host& host, std::size_t floats) {
        auto copies = std::make_shared<Copies>();
        copies->queries.assign(host.queries, host.queries + count);
        copies->raw.assign(host.raw, host.raw + floats);
        copies->unit.assign(host.unit, host.unit + floats);
        std::size_t rows = 0;
        for (const DeviceQuery& query : copies->queries) {
            rows = std::max(rows, std::size_t{query.excluded_begin} + query.excluded_count);
        }
        copies->excluded.assign(host.excluded, host.excluded + rows);
        queries = copies->queries;
        raw = copies->raw;
        unit = copies->unit;
        excluded = copies->excluded;
        copies_ = std::move(copies);
    }

    std::shared_ptr<const Copies> copies_;
};

/// Whether the query lets the row take part, as far as that depends neither on its score nor on the excluded rows.
bool admits(const DeviceQuery& query, const Shard& shard, std::uint32_t row) {
    return row >= query.first && row < query.last &&
           (query.rank_below == kAllRanks || shard.ranks[row] < query.rank_below);
}

bool contains(std::span<const std::uint32_t> sorted, std::uint32_t row) {
    return std::binary_search(sorted.begin(), sorted.end(), row);
}

/// The largest float that is not above `value`.
float rounded_down(double value) {
    const auto nearest = static_cast<float>(value);
    return static_cast<double>(nearest) > value ? std::nextafterf(nearest, kNone) : nearest;
}

/// From -1 to 1, for one of four rows an end of it: the same for the same row and query.
double wobble(std::uint32_t row, const float* unit) {
    std::uint64_t mixed = row + 1 + static_cast<std::uint64_t>(std::fabs(unit[0]) * 1e6F) * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    mixed ^= mixed >> 31;
    if (mixed % 8 == 0) return 1;
    if (mixed % 8 == 1) return -1;
    return static_cast<double>(mixed >> 11) * 0x1p-52 - 1;
}

/// maxima of all queries, from an estimate of (query index, row).
template <class Estimate>
void write_maxima(const Shard& shard, const Asked& asked, std::span<float> maxima, Estimate estimate) {
    const std::uint32_t groups = shard.model.groups;
    for (std::uint32_t q = 0; q < asked.count; ++q) {
        for (std::uint32_t group = 0; group < groups; ++group) {
            float best = kNone;
            const std::uint32_t end = std::min((group + 1) * kGroupRows, shard.model.rows);
            for (std::uint32_t row = group * kGroupRows; row < end; ++row) {
                if (std::isnan(shard.inverse_norms[row]) || !admits(asked.queries[q], shard, row)) continue;
                const float value = estimate(q, row);
                if (!std::isfinite(value)) misuse("an estimate that is not finite");
                best = std::max(best, value);
            }
            maxima[std::size_t{q} * groups + group] = best;
        }
    }
}

/// max(min_score, m - error), m being the want-th largest value.
double floor_of(const DeviceQuery& query, std::span<const float> values) {
    std::vector<float> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const bool reached = query.want <= sorted.size() && sorted[query.want - 1] != kNone;
    const double floor =
        reached ? static_cast<double>(sorted[query.want - 1]) - query.error : -std::numeric_limits<double>::infinity();
    return std::max(floor, query.min_score);
}

/// The k best of what was found, none after an overflow.
void rank(const DeviceQuery& query, std::span<const Found> found, DeviceAnswer& answer, std::span<Found> hits) {
    answer.hits = 0;
    if (answer.found > kFoundCapacity) return;
    std::vector<Found> sorted(found.begin(), found.begin() + answer.found);
    std::sort(sorted.begin(), sorted.end(),
              [](const Found& a, const Found& b) { return a.score != b.score ? a.score > b.score : a.row < b.row; });
    answer.hits = std::min(query.k, answer.found);
    std::copy_n(sorted.begin(), answer.hits, hits.begin());
}

void check_idle(std::span<const std::uint32_t> counters) {
    if (std::any_of(counters.begin(), counters.end(), [](std::uint32_t value) { return value != 0; })) {
        misuse("counters are not 0 between passes");
    }
}

void check_shape(const Launch& launch, const DeviceShape& shape) {
    launch.require(shape.processors > 0 && shape.shared_bytes > 0 && shape.shared_bytes_processor > 0,
                   "a device without processors or shared memory");
}

}  // namespace

cudaError_t load_kernels() { return tests::fake_cuda::load(); }

bool stream_is_built() { return true; }

bool travels_with_launch(const DeviceModel& model, const DeviceQueries& queries, const DeviceShape& shape) {
    return shape.bulk_copies && queries.count == 1 && queries.all_rows && model.dim <= kInlineFloats &&
           queries.host.queries[0].excluded_count <= kInlineExcluded;
}

cudaError_t launch_scan(const DeviceModel& model, const DeviceQueries& queries, const Workspace& work,
                        const DeviceShape& shape, std::uint32_t& warps, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(queries.count == 1, "takes one query");
    check_shape(launch, shape);
    const Shard shard(launch, model);
    const Asked asked(launch, queries, model, travels_with_launch(model, queries, shape));
    const auto maxima = launch.device(work.maxima, model.groups, "maxima");
    const auto warp_maxima = launch.device(work.warp_maxima, kMaxWarps, "warp_maxima");
    // A few more than have a group to look at, as where a grid is made of whole blocks.
    warps = std::min(model.groups, kScanWarps) + 1;
    return launch.run([=, count = warps] {
        asked.check(shard);
        asked.check_error(device_error_bound(shard.model.dim));
        write_maxima(shard, asked, maxima, [&](std::uint32_t, std::uint32_t row) {
            float sum = 0;
            for (std::uint32_t i = 0; i < shard.model.stride; ++i) sum += asked.unit[i] * shard.row(row)[i];
            return sum * shard.inverse_norms[row];
        });
        std::fill_n(warp_maxima.begin(), count, kNone);
        for (std::uint32_t group = 0; group < shard.model.groups; ++group) {
            float& largest = warp_maxima[group % (count - 1)];
            largest = std::max(largest, maxima[group]);
        }
    });
}

std::uint32_t multiply_capacity(std::uint32_t stride, const DeviceShape& shape) {
    const std::uint32_t forced = tests::fake_cuda::forced_multiply_capacity();
    if (forced != std::numeric_limits<std::uint32_t>::max()) return std::min(forced, kMaxPass);
    // Queries and one group of rows side by side in float16; whole and half passes.
    const auto fits = [&](std::uint32_t count) {
        return std::size_t{count + kGroupRows} * (stride + kStrideFloats) * 2 <= shape.shared_bytes;
    };
    return fits(kMaxPass) ? kMaxPass : fits(kMaxPass / 2) ? kMaxPass / 2 : 0;
}

cudaError_t launch_multiply(const DeviceModel& model, const DeviceQueries& queries, const Workspace& work,
                            const DeviceShape& shape, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(queries.count <= multiply_capacity(model.stride, shape), "more queries than multiply_capacity");
    check_shape(launch, shape);
    const Shard shard(launch, model);
    const Asked asked(launch, queries, model);
    const auto maxima = launch.device(work.maxima, std::size_t{queries.count} * model.groups, "maxima");
    return launch.run([=] {
        asked.check(shard);
        asked.check_error(half_error_bound(shard.model.dim));
        write_maxima(shard, asked, maxima, [&](std::uint32_t q, std::uint32_t row) {
            const DeviceQuery& query = asked.queries[q];
            const double score = canonical_score(asked.raw.data() + std::size_t{q} * asked.stride, query.norm,
                                                 shard.row(row), shard.norms[row], shard.model.dim);
            const float* const unit = asked.unit.data() + std::size_t{q} * asked.stride;
            return static_cast<float>(score + kErrorShare * query.error * wobble(row, unit));
        });
    });
}

cudaError_t launch_score(const DeviceModel& model, const DeviceQueries& queries, ScorePart part, bool first,
                         std::uint32_t first_row, std::uint32_t last_row, const Workspace& work,
                         const DeviceShape& shape, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    check_shape(launch, shape);
    const Shard shard(launch, model);
    const Asked asked(launch, queries, model);
    launch.require(first_row <= last_row && last_row <= model.rows, "rows that the shard does not have");
    launch.require(part != ScorePart::cosine || queries.count == 1, "the cosine of more than one vector");
    const bool above = part != ScorePart::divide_by;
    const auto values = launch.device(above ? work.scores : work.below, model.rows, above ? "scores" : "below");
    return launch.run([=] {
        for (std::uint32_t row = first_row; row < last_row; ++row) {
            double value = first ? 1.0 : values[row];
            for (std::uint32_t v = 0; v < asked.count; ++v) {
                const double norm = asked.queries[v].norm;
                if (!(norm > 0) || !std::isfinite(norm)) misuse("a vector without a norm");
                const double cosine = canonical_score(asked.raw.data() + std::size_t{v} * asked.stride, norm,
                                                      shard.row(row), shard.norms[row], shard.model.dim);
                value = part == ScorePart::cosine ? cosine : value * cosmul_part(cosine);
            }
            values[row] = value;
        }
    });
}

cudaError_t launch_finish_scores(const DeviceModel& model, const DeviceQueries& queries, bool divide,
                                 const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(queries.count > 0, "no query");
    check_shape(launch, shape);
    const Shard shard(launch, model);
    const Asked asked(launch, queries, model);
    const auto scores = launch.device(work.scores, model.rows, "scores");
    const auto below = divide ? launch.device(work.below, model.rows, "below") : std::span<double>();
    const auto maxima = launch.device(work.maxima, model.groups, "maxima");
    return launch.run([=] {
        const DeviceQuery& query = asked.queries[0];
        for (std::uint32_t group = 0; group < shard.model.groups; ++group) {
            float best = kNone;
            const std::uint32_t end = std::min((group + 1) * kGroupRows, shard.model.rows);
            for (std::uint32_t row = group * kGroupRows; row < end; ++row) {
                double value = std::numeric_limits<double>::quiet_NaN();
                if (admits(query, shard, row)) {
                    const double score = divide ? cosmul_score(scores[row], below[row]) : scores[row];
                    if (score >= query.min_score) value = score;
                }
                scores[row] = value;
                if (!std::isnan(value)) best = std::max(best, rounded_down(value));
            }
            maxima[group] = best;
        }
    });
}

cudaError_t launch_select(const DeviceModel& model, const DeviceQueries& queries, Estimates estimates,
                          std::uint32_t warps, const Workspace& work, const DeviceShape& shape, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    check_shape(launch, shape);
    const Shard shard(launch, model);
    const bool stored = estimates == Estimates::stored_scores;
    const Asked asked(launch, queries, model,
                      estimates == Estimates::warp_maxima && travels_with_launch(model, queries, shape));
    launch.require(queries.count == 1 || estimates == Estimates::maxima,
                   "warp_maxima and stored scores are of one query");
    launch.require(warps <= kMaxWarps && (estimates != Estimates::warp_maxima || warps > 0), "warps of no launch_scan");
    const auto maxima = launch.device(work.maxima, std::size_t{queries.count} * model.groups, "maxima");
    const auto warp_maxima = launch.device(work.warp_maxima, kMaxWarps, "warp_maxima");
    const auto floors = launch.device(work.floors, queries.count, "floors");
    const auto counters = launch.device(work.counters, std::size_t{kCounters} * queries.count, "counters");
    const auto all_found = launch.device(work.found, std::size_t{queries.count} * kFoundCapacity, "found");
    const auto scores = stored ? launch.device(work.scores, model.rows, "scores") : std::span<double>();
    const auto answers = launch.pinned(work.answers, queries.count, "answers");
    const auto all_hits = launch.pinned(work.hits, std::size_t{queries.count} * kMaxHits, "hits");
    const bool by_warps = estimates == Estimates::warp_maxima && queries.max_want * kWarpsForAWant <= warps;
    return launch.run([=] {
        asked.check(shard);
        check_idle(counters.first(std::size_t{kCounters} * asked.count));
        for (std::uint32_t q = 0; q < asked.count; ++q) {
            const DeviceQuery& query = asked.queries[q];
            if (query.k == 0 || query.k > kMaxHits) misuse("k is 0 or beyond kMaxHits");
            if (query.want > kMaxWant) misuse("k and excluded rows are beyond kMaxWant");
            const auto of_groups = maxima.subspan(std::size_t{q} * shard.model.groups, shard.model.groups);
            const double floor = floor_of(query, by_warps ? warp_maxima.first(warps) : of_groups);
            floors[q] = floor;
            const auto found = all_found.subspan(std::size_t{q} * kFoundCapacity, kFoundCapacity);
            answers[q].floor = floor;
            answers[q].found = 0;
            answers[q].rescored = 0;
            const auto excluded = asked.excluded_by(query);
            const auto consider = [&](std::uint32_t row) {
                if (!admits(query, shard, row) || contains(excluded, row)) return;
                const double score = stored
                                         ? scores[row]
                                         : canonical_score(asked.raw.data() + std::size_t{q} * asked.stride, query.norm,
                                                           shard.row(row), shard.norms[row], shard.model.dim);
                ++answers[q].rescored;
                if (!(score >= floor)) return;
                const std::uint32_t at = answers[q].found++;
                if (at < kFoundCapacity) found[at] = {score, row, 0};
            };
            // As the maxima of stored scores are rounded: what they are compared with must not be above it.
            const float cut = rounded_down(floor - query.error);
            for (std::uint32_t row = shard.model.rows; row-- > 0;) {
                const float maximum = of_groups[row / kGroupRows];
                const bool covered = stored || !std::isnan(shard.inverse_norms[row]);
                if (covered && maximum >= cut && maximum != kNone) consider(row);
            }
            for (std::uint32_t i = 0; i < shard.model.uncovered_count && !stored; ++i) {
                const std::uint32_t row = shard.uncovered[i];
                if (row >= shard.model.rows) misuse("an uncovered row that the shard does not have");
                if (!std::isnan(shard.inverse_norms[row])) misuse("an uncovered row that takes part in estimates");
                consider(row);
            }
            rank(query, found, answers[q], all_hits.subspan(std::size_t{q} * kMaxHits, kMaxHits));
        }
    });
}

cudaError_t launch_count_before(const DeviceModel& model, const DeviceQueries& queries, std::uint32_t target_row,
                                double target_score, const Workspace& work, const DeviceShape& shape,
                                cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(queries.count > 0, "no query");
    check_shape(launch, shape);
    const Shard shard(launch, model);
    const Asked asked(launch, queries, model);
    const auto scores = launch.device(work.scores, model.rows, "scores");
    const auto counters = launch.device(work.counters, kCounters, "counters");
    const auto answers = launch.pinned(work.answers, 1, "answers");
    return launch.run([=] {
        check_idle(counters.first(kCounters));
        const auto excluded = asked.excluded_by(asked.queries[0]);
        std::uint32_t count = 0;
        for (std::uint32_t row = 0; row < shard.model.rows; ++row) {
            const std::uint32_t of_model = shard.model.first_row + row;
            if (of_model == target_row || contains(excluded, row)) continue;
            // NaN, which is never before anything, where a row is not eligible.
            if (scores[row] > target_score || (scores[row] == target_score && of_model < target_row)) ++count;
        }
        answers[0].found = count;
    });
}

cudaError_t launch_pad_rows(const float* packed, std::uint32_t rows, std::uint32_t dim, std::uint32_t stride,
                            float* padded, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(rows > 0 && dim > 0 && dim <= stride, "a shape that has nothing to pad");
    const auto from = launch.device(packed, std::size_t{rows} * dim, "packed");
    const auto to = launch.device(padded, std::size_t{rows} * stride, "padded");
    return launch.run([=] {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t i = 0; i < stride; ++i) to[row * stride + i] = i < dim ? from[row * dim + i] : 0.0F;
        }
    });
}

cudaError_t launch_invert_norms(const double* norms, std::uint32_t rows, std::uint32_t groups, double smallest,
                                double largest, float* inverse_norms, cudaStream_t stream) {
    const Launch launch(__func__, stream);
    if (launch.failed()) return launch.code();
    launch.require(rows > 0 && groups == (rows - 1) / kGroupRows + 1, "groups is not rows / kGroupRows rounded up");
    const auto from = launch.device(norms, rows, "norms");
    const auto to = launch.device(inverse_norms, std::size_t{groups} * kGroupRows, "inverse_norms");
    return launch.run([=] {
        for (std::uint32_t row = 0; row < groups * kGroupRows; ++row) {
            const bool covered = row < rows && from[row] >= smallest && from[row] <= largest;
            to[row] = covered ? static_cast<float>(1.0 / from[row]) : kNoNumber;
        }
    });
}

}  // namespace gloved::kernels::cuda
