#include "kernels/cuda/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/bounds.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr int kOldestCapability = 75;
constexpr std::size_t kAlignment = 16;
/// Excluded rows that a pass can carry even where it takes few queries.
constexpr std::size_t kMinExcluded = std::size_t{1} << 16;

constexpr std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Where the parts of what is sent for a pass lie, from the start of the input buffer.
struct InputLayout {
    std::size_t raw = 0;
    std::size_t unit = 0;
    std::size_t digits = 0;
    std::size_t excluded = 0;
    std::size_t end = 0;

    InputLayout(std::size_t raws, std::size_t units, std::size_t digit_bytes, std::size_t stride,
                std::size_t excluded_rows)
        : raw(aligned(raws * sizeof(DeviceQuery))),
          unit(raw + aligned(raws * stride * sizeof(float))),
          digits(unit + aligned(units * stride * sizeof(float))),
          excluded(digits + aligned(digit_bytes)),
          end(excluded + aligned(excluded_rows * sizeof(std::uint32_t))) {}
};

/// How many elements each buffer of a shard has.
struct Sizes {
    planes::PlaneShape plane;
    std::size_t stride, groups, pass, plane_pass, digit_stride, int8_codes, keys, found, answers,
        hits, excluded, input;

    Sizes(std::size_t rows, std::size_t dim, const DeviceShape& shape, Holding holding)
        : plane{holding.plane ? rows : 0, dim},
          stride(holding.vectors ? (dim + kStrideFloats - 1) / kStrideFloats * kStrideFloats : dim),
          groups((rows + kGroupRows - 1) / kGroupRows),
          pass(holding.vectors
                   ? std::max(multiply_capacity(static_cast<std::uint32_t>(stride), shape), 1U)
                   : 1),
          // Without int8 codes, what such a pass lets through takes longer to read from the host
          // than queries take one by one.
          plane_pass(
              holding.plane && (holding.vectors || int8_codes_on_host(dim, holding))
                  ? std::min(plane_pass_capacity(rows, static_cast<std::uint32_t>(dim), shape),
                             holding.together)
                  : 0),
          digit_stride((dim + kDigitStep - 1) / kDigitStep * kDigitStep),
          int8_codes(int8_codes_on_host(dim, holding) ||
                             (holding.vectors && holding.int8_codes && plane_pass > 0)
                         ? int8_stride(static_cast<std::uint32_t>(dim))
                         : 0),
          keys((plane.groups() + kPlaneSample - 1) / kPlaneSample),
          found(std::max(pass * kFoundCapacity, plane_pass * kPlanePassFound)),
          answers(std::max(pass, plane_pass)),
          hits(std::max(pass * kMaxHits, plane_pass * kMaxPlanePassHits)),
          excluded(std::max(
              {pass * kMaxKPlusExcluded, plane_pass * kMaxPlanePassKPlusExcluded, kMinExcluded})),
          input(std::max(
              InputLayout(pass, pass, 0, stride, excluded).end,
              InputLayout(std::max<std::size_t>(plane_pass, 1), 0, digit_bytes(), stride, excluded)
                  .end)) {}

    static bool int8_codes_on_host(std::size_t dim, Holding holding) {
        return holding.int8_codes && !holding.vectors && dim <= kMaxInt8Dim;
    }

    /// Of one query for launch_plane_scan.
    std::size_t digit_bytes() const { return plane.steps() * 2 * planes::kStepDims; }
    std::size_t plane_bytes() const { return plane.rows > 0 ? plane.bytes() : 0; }
};

template <class Buffer>
Status allocate(Buffer& buffer, std::size_t count) {
    auto made = Buffer::allocate(count);
    if (!made) return made.error();
    buffer = *std::move(made);
    return {};
}

}  // namespace

Result<DeviceFacts> read_device(int device) {
    DeviceFacts facts;
    facts.device = device;
    if (Status used = use_device(device); !used) return used.error();
    const auto read = [&](int& into, cudaDeviceAttr attribute) {
        return check(cudaDeviceGetAttribute(&into, attribute, device), "cudaDeviceGetAttribute");
    };
    int major = 0;
    int minor = 0;
    int shared = 0;
    int shared_processor = 0;
    for (const auto& [into, attribute] : std::initializer_list<std::pair<int*, cudaDeviceAttr>>{
             {&major, cudaDevAttrComputeCapabilityMajor},
             {&minor, cudaDevAttrComputeCapabilityMinor},
             {&facts.shape.processors, cudaDevAttrMultiProcessorCount},
             {&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin},
             {&shared_processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor}}) {
        if (Status done = read(*into, attribute); !done) return done.error();
    }
    facts.shape.shared_bytes = static_cast<std::size_t>(shared);
    facts.shape.shared_bytes_processor = static_cast<std::size_t>(shared_processor);
    cudaDeviceProp properties{};
    if (Status done =
            check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        !done) {
        return done.error();
    }
    facts.name = properties.name;
    if (10 * major + minor < kOldestCapability) {
        return Error{ErrorCode::unavailable,
                     fmt::format("device {} ({}) has compute capability {}.{}; 7.5 is the least",
                                 device, facts.name, major, minor)};
    }
    const cudaError_t loaded = load_kernels();
    if (loaded == cudaErrorNoKernelImageForDevice || loaded == cudaErrorUnsupportedPtxVersion) {
        (void)check(loaded, "load_kernels");
        return Error{ErrorCode::unavailable,
                     fmt::format("this build has no code for device {} ({}, compute capability "
                                 "{}.{}): build it there with "
                                 "-DGLOVED_CUDA_ARCHITECTURES=native, or say --engine cpu",
                                 device, facts.name, major, minor)};
    }
    if (Status done = check(loaded, "load_kernels"); !done) return done.error();
    facts.shape.integer_products = major >= 8;
    facts.shape.bulk_copies = major >= 9 && stream_is_built();
    std::size_t total = 0;
    if (Status done = check(cudaMemGetInfo(&facts.free_bytes, &total), "cudaMemGetInfo"); !done)
        return done.error();
    return facts;
}

Status check_shard_rows(std::size_t rows) {
    if (rows <= kMaxShardRows) return {};
    return Error{
        ErrorCode::unavailable,
        fmt::format(
            "{} rows are too many for one device, which takes {}: spread them over several with "
            "--device, or say --engine cpu",
            rows, kMaxShardRows)};
}

std::size_t Shard::bytes_needed(std::size_t rows, std::size_t dim, const DeviceShape& shape,
                                Holding holding) {
    const Sizes sizes(rows, dim, shape, holding);
    const std::size_t a_row = (holding.vectors ? sizes.stride * sizeof(float) : 0) +
                              3 * sizeof(double) + 2 * sizeof(std::uint32_t);
    const std::size_t a_query =
        sizes.groups * sizeof(float) + sizeof(double) + kCounters * sizeof(std::uint32_t);
    std::size_t bytes = rows * a_row + sizes.groups * kGroupRows * sizeof(float) +
                        sizes.pass * a_query + sizes.found * sizeof(Found) +
                        kMaxWarps * sizeof(float) + sizes.input;
    if (holding.plane) {
        const std::size_t a_plane_query =
            sizes.digit_stride + sizeof(planes::DigitFacts) + sizeof(planes::PlaneCutoff) +
            sizeof(double) + sizes.keys * sizeof(float) +
            (kPlanePassSurvivors + kPlaneCounters) * sizeof(std::uint32_t);
        bytes += sizes.plane_bytes() + sizes.groups * kGroupRows * sizeof(float) +
                 kMaxWarps * sizeof(std::uint32_t) + sizes.plane_pass * a_plane_query;
    }
    if (holding.vectors) bytes += rows * sizes.int8_codes;
    if (sizes.int8_codes > 0)
        bytes += sizes.plane_pass * (2 * sizes.int8_codes + sizeof(planes::DigitFacts));
    return bytes;
}

Result<std::unique_ptr<Shard>> Shard::create(const format::Model& model, RowRange rows,
                                             const DeviceFacts& device, Holding holding,
                                             bool timed) {
    assert(rows.size() <= kMaxShardRows);
    assert(holding.vectors || holding.plane);
    assert(!holding.plane || rows.first % kGroupRows == 0);
    std::unique_ptr<Shard> shard(new Shard);
    shard->rows_ = rows;
    shard->device_ = device.device;
    shard->shape_ = device.shape;
    shard->timed_ = timed;
    const Sizes sizes(rows.size(), model.dim(), device.shape, holding);
    if (holding.vectors) {
        shard->float16_capacity_ =
            multiply_capacity(static_cast<std::uint32_t>(sizes.stride), device.shape);
    }
    shard->plane_capacity_ = static_cast<std::uint32_t>(sizes.plane_pass);
    shard->pass_limit_ = sizes.pass;
    shard->max_excluded_ = sizes.excluded;

    if (Status used = use_device(device.device); !used) return used.error();
    auto stream = Stream::create();
    if (!stream) return stream.error();
    shard->stream_ = *std::move(stream);
    if (timed) {
        for (Event* event : {&shard->begin_, &shard->end_}) {
            auto made = Event::create();
            if (!made) return made.error();
            *event = *std::move(made);
        }
    }
    // Rows whose norm the bounds do not cover are scored canonically for every query.
    const std::size_t uncovered =
        planes::uncovered_rows(model.norms().subspan(rows.first, rows.size())).size();

    const auto try_all = [&]() -> Status {
        Shard& s = *shard;
        Status done;
        const auto next = [&](auto& buffer, std::size_t count) {
            if (done) done = allocate(buffer, count);
        };
        if (holding.vectors) next(s.vectors_, rows.size() * sizes.stride);
        next(s.norms_, rows.size());
        next(s.inverse_norms_, sizes.groups * kGroupRows);
        next(s.ranks_, rows.size());
        next(s.uncovered_, uncovered);
        next(s.maxima_, sizes.pass * sizes.groups);
        next(s.floors_, sizes.pass);
        next(s.counters_, kCounters * sizes.pass);
        next(s.warp_maxima_, kMaxWarps);
        next(s.found_, sizes.found);
        next(s.scores_, rows.size());
        next(s.below_, rows.size());
        next(s.input_, sizes.input);
        next(s.input_staging_, sizes.input);
        next(s.answers_, sizes.answers);
        next(s.hits_, sizes.hits);
        next(s.host_scores_, rows.size());
        if (!holding.plane) return done;
        next(s.plane_, sizes.plane_bytes());
        next(s.uppers_, sizes.groups * kGroupRows);
        next(s.warp_rows_, kMaxWarps);
        next(s.plane_digits_, sizes.plane_pass * sizes.digit_stride);
        next(s.plane_facts_, sizes.plane_pass);
        next(s.plane_cutoffs_, sizes.plane_pass);
        next(s.plane_floors_, sizes.plane_pass);
        next(s.plane_keys_, sizes.plane_pass * sizes.keys);
        next(s.plane_survivors_, sizes.plane_pass * kPlanePassSurvivors);
        next(s.plane_counters_, sizes.plane_pass * kPlaneCounters);
        if (sizes.int8_codes == 0) return done;
        holding.vectors ? next(s.int8_rows_, rows.size() * sizes.int8_codes)
                        : next(s.host_int8_rows_, rows.size() * sizes.int8_codes);
        next(s.int8_digits_, sizes.plane_pass * 2 * sizes.int8_codes);
        next(s.int8_facts_, sizes.plane_pass);
        return done;
    };
    if (Status done = try_all(); !done) return done.error();

    Shard& s = *shard;
    s.device_bytes_ = s.vectors_.bytes() + s.norms_.bytes() + s.inverse_norms_.bytes() +
                      s.ranks_.bytes() + s.uncovered_.bytes() + s.maxima_.bytes() +
                      s.floors_.bytes() + s.counters_.bytes() + s.warp_maxima_.bytes() +
                      s.found_.bytes() + s.scores_.bytes() + s.below_.bytes() + s.input_.bytes() +
                      s.plane_.bytes() + s.uppers_.bytes() + s.warp_rows_.bytes() +
                      s.plane_digits_.bytes() + s.plane_facts_.bytes() + s.plane_cutoffs_.bytes() +
                      s.plane_floors_.bytes() + s.plane_keys_.bytes() + s.plane_survivors_.bytes() +
                      s.plane_counters_.bytes() + s.int8_rows_.bytes() + s.int8_digits_.bytes() +
                      s.int8_facts_.bytes();
    s.model_ = {s.vectors_.data(),
                s.norms_.data(),
                s.inverse_norms_.data(),
                s.ranks_.data(),
                s.uncovered_.data(),
                static_cast<std::uint32_t>(rows.size()),
                static_cast<std::uint32_t>(rows.first),
                static_cast<std::uint32_t>(model.dim()),
                static_cast<std::uint32_t>(sizes.stride),
                static_cast<std::uint32_t>(sizes.groups),
                static_cast<std::uint32_t>(uncovered),
                !holding.vectors,
                {},
                {holding.vectors ? s.int8_rows_.data() : s.host_int8_rows_.data(),
                 static_cast<std::uint32_t>(sizes.int8_codes)}};
    if (holding.plane) {
        s.model_.plane = {reinterpret_cast<const std::uint8_t*>(s.plane_.data()),
                          static_cast<std::uint32_t>(sizes.plane.groups()),
                          static_cast<std::uint32_t>(sizes.plane.steps())};
    }
    s.work_ = {s.maxima_.data(),
               s.floors_.data(),
               s.warp_maxima_.data(),
               s.counters_.data(),
               s.found_.data(),
               s.scores_.data(),
               s.below_.data(),
               s.uppers_.data(),
               s.warp_rows_.data(),
               {s.plane_digits_.data(), s.plane_facts_.data(), s.int8_digits_.data(),
                s.int8_facts_.data(), s.plane_cutoffs_.data(), s.plane_floors_.data(),
                s.plane_keys_.data(), s.plane_survivors_.data(), s.plane_counters_.data()},
               s.answers_.data(),
               s.hits_.data()};
    return shard;
}

Status Shard::fill(const format::Model& model, const float* vectors) {
    assert((vectors == nullptr) == holds_vectors());
    if (Status used = use_device(device_); !used) return used;
    if (!holds_vectors()) model_.vectors = vectors + rows_.first * model.dim();
    const auto norms = model.norms().subspan(rows_.first, rows_.size());
    const auto ranks = model.ranks().subspan(rows_.first, rows_.size());
    const std::vector<Row> uncovered = planes::uncovered_rows(norms);
    assert(uncovered.size() == uncovered_.size());
    if (Status done = copy_async(norms_.data(), norms.data(), norms.size(), stream_); !done)
        return done;
    if (Status done = copy_async(ranks_.data(), ranks.data(), ranks.size(), stream_); !done)
        return done;
    const cudaError_t zeroed =
        cudaMemsetAsync(counters_.data(), 0, counters_.bytes(), stream_.get());
    if (Status done = check(zeroed, "cudaMemsetAsync"); !done) return done;
    if (!uncovered.empty()) {
        if (Status done =
                copy_async(uncovered_.data(), uncovered.data(), uncovered.size(), stream_);
            !done)
            return done;
    }
    const cudaError_t launched =
        launch_invert_norms(norms_.data(), model_.rows, model_.groups, kMinNorm, kMaxNorm,
                            inverse_norms_.data(), stream_.get());
    if (Status done = check(launched, "launch of invert_norms"); !done) return done;
    if (model_.int8_codes.rows != nullptr) {
        if (Status done =
                check(launch_build_int8_codes(model_, stream_.get()), "launch of build_int8_codes");
            !done)
            return done;
    }
    return stream_.synchronize();
}

Status Shard::fill_plane(const planes::Plane& plane) {
    if (Status used = use_device(device_); !used) return used;
    const planes::PlaneShape here{rows_.size(), model_.dim};
    if (Status done = copy_async(plane_.data(), plane.group(rows_.first / planes::kGroupRows),
                                 here.bytes(), stream_);
        !done) {
        return done;
    }
    return stream_.synchronize();
}

RowRange Shard::local(RowRange range) const {
    const std::size_t first = std::clamp(range.first, rows_.first, rows_.last) - rows_.first;
    const std::size_t last = std::clamp(range.last, rows_.first, rows_.last) - rows_.first;
    return {first, std::max(first, last)};
}

DeviceQuery Shard::describe(const PassQuery& query, std::vector<std::uint32_t>& excluded) const {
    DeviceQuery out;
    out.norm = query.vector->norm;
    out.error = query.error;
    if (query.query == nullptr) return out;
    const Filter& filter = query.query->filter;
    const RowRange range = local(filter.rows.value_or(rows_));
    const auto begin = std::lower_bound(query.excluded.begin(), query.excluded.end(), rows_.first);
    const auto end = std::lower_bound(begin, query.excluded.end(), rows_.last);
    out.excluded_begin = static_cast<std::uint32_t>(excluded.size());
    out.excluded_count = static_cast<std::uint32_t>(end - begin);
    for (auto at = begin; at != end; ++at)
        excluded.push_back(*at - static_cast<std::uint32_t>(rows_.first));
    out.min_score = filter.min_score;
    out.k = static_cast<std::uint32_t>(std::min<std::size_t>(query.k, kMaxHits));
    out.k_plus_excluded = out.k + out.excluded_count;
    out.rank_below = filter.rank_below;
    out.first = static_cast<std::uint32_t>(range.first);
    out.last = static_cast<std::uint32_t>(range.last);
    return out;
}

Status Shard::begin() {
    if (Status used = use_device(device_); !used) return used;
    if (timed_ && !begun_) {
        if (Status done = begin_.record(stream_); !done) return done;
    }
    begun_ = true;
    return {};
}

/// Everything about the queries in one copy: small copies cost the same, some microseconds each.
Status Shard::send(std::span<const PassQuery> queries, Sending sending) {
    assert(queries.size() <= (sending == Sending::raw ? plane_capacity_ : pass_limit_));
    assert(sending != Sending::digits || queries.size() == 1);
    if (Status done = begin(); !done) return done;
    // What was sent before may still be on its way out of the same buffer.
    if (sent_) {
        if (Status done = stream_.synchronize(); !done) return done;
    }
    const std::size_t dim = model_.dim;
    const std::size_t stride = model_.stride;
    queries_ = {};
    if (queries.empty()) return {};  // an empty product
    std::vector<DeviceQuery> described;
    std::vector<std::uint32_t> excluded;
    described.reserve(queries.size());
    for (const PassQuery& query : queries) described.push_back(describe(query, excluded));
    assert(excluded.size() <= max_excluded_);
    planes::PlaneQuery digits;
    if (sending == Sending::digits) {
        digits = planes::make_plane_query(*queries.front().vector);
        described.front().upper = planes::upper_facts(digits.facts, dim);
        described.front().digits = digits.facts;
    }

    const bool with_unit = sending == Sending::both || sending == Sending::travelling;
    const InputLayout layout(queries.size(), with_unit ? queries.size() : 0, digits.bytes.size(),
                             stride, excluded.size());
    std::byte* const host = input_staging_.data();
    std::memcpy(host, described.data(), described.size() * sizeof(DeviceQuery));
    if (!excluded.empty())
        std::memcpy(host + layout.excluded, excluded.data(),
                    excluded.size() * sizeof(std::uint32_t));
    if (!digits.bytes.empty())
        std::memcpy(host + layout.digits, digits.bytes.data(), digits.bytes.size());
    auto* raw = reinterpret_cast<float*>(host + layout.raw);
    auto* unit = reinterpret_cast<float*>(host + layout.unit);
    for (const PassQuery& query : queries) {
        const auto& values = query.vector->values;
        assert(values.size() == dim);
        std::copy(values.begin(), values.end(), raw);
        std::fill(raw + dim, raw + stride, 0.0F);
        raw += stride;
        if (!with_unit) continue;
        for (std::size_t i = 0; i < dim; ++i) {
            unit[i] = static_cast<float>(static_cast<double>(values[i]) / query.vector->norm);
        }
        std::fill(unit + dim, unit + stride, 0.0F);
        unit += stride;
    }
    const bool any_rank =
        std::any_of(described.begin(), described.end(),
                    [](const DeviceQuery& query) { return query.rank_below != ~std::uint32_t{0}; });
    std::uint32_t max_k_plus_excluded = 0;
    for (const DeviceQuery& query : described)
        max_k_plus_excluded = std::max(max_k_plus_excluded, query.k_plus_excluded);
    const bool all_rows = std::all_of(
        described.begin(), described.end(),
        [&](const DeviceQuery& query) { return query.first == 0 && query.last == rows_.size(); });
    const std::byte* const device = input_.data();
    queries_ = {reinterpret_cast<const DeviceQuery*>(device),
                reinterpret_cast<const float*>(device + layout.raw),
                reinterpret_cast<const float*>(device + layout.unit),
                reinterpret_cast<const std::uint32_t*>(device + layout.excluded),
                reinterpret_cast<const std::int8_t*>(device + layout.digits),
                static_cast<std::uint32_t>(queries.size()),
                any_rank,
                max_k_plus_excluded,
                all_rows,
                {reinterpret_cast<const DeviceQuery*>(host),
                 reinterpret_cast<const float*>(host + layout.raw),
                 reinterpret_cast<const float*>(host + layout.unit),
                 reinterpret_cast<const std::uint32_t*>(host + layout.excluded),
                 reinterpret_cast<const std::int8_t*>(host + layout.digits)}};
    if (sending == Sending::travelling && travels_with_launch(model_, queries_, shape_)) return {};
    if (sending == Sending::digits && plane_travels(model_, queries_)) return {};
    sent_ = true;
    return copy_async(input_.data(), static_cast<const std::byte*>(host), layout.end, stream_);
}

Status Shard::start_bounded(std::span<const PassQuery> queries, Estimate estimate) {
    assert(estimate == Estimate::float16 || queries.size() == 1);
    const Sending sending = estimate == Estimate::float16   ? Sending::both
                            : estimate == Estimate::float32 ? Sending::travelling
                                                            : Sending::digits;
    if (Status sent = send(queries, sending); !sent) return sent;
    std::uint32_t warps = 0;
    const auto launch = [&]() -> Status {
        switch (estimate) {
            case Estimate::float32:
                return check(launch_scan(model_, queries_, work_, shape_, warps, stream_.get()),
                             "launch of scan");
            case Estimate::float16:
                return check(launch_multiply(model_, queries_, work_, shape_, stream_.get()),
                             "launch of multiply");
            case Estimate::plane:
                return check(launch_plane_scan(model_, queries_, work_, shape_, stream_.get()),
                             "launch of plane_scan");
        }
        return {};
    };
    if (Status done = launch(); !done) return done;
    return select(estimate == Estimate::float32   ? Estimates::warp_maxima
                  : estimate == Estimate::float16 ? Estimates::maxima
                                                  : Estimates::uppers,
                  warps);
}

Status Shard::start_plane_pass(std::span<const PassQuery> queries) {
    if (Status sent = send(queries, Sending::raw); !sent) return sent;
    hits_stride_ = kMaxPlanePassHits;
    return check(launch_plane_pass(model_, queries_, work_, shape_, stream_.get()),
                 "launch of plane_pass");
}

Status Shard::select(Estimates estimates, std::uint32_t warps) {
    hits_stride_ = kMaxHits;
    return check(launch_select(model_, queries_, estimates, warps, work_, shape_, stream_.get()),
                 "launch of select");
}

Status Shard::start_score(std::span<const PassQuery> vectors, ScorePart part, bool first,
                          RowRange range) {
    if (Status sent = send(vectors, Sending::both); !sent) return sent;
    const RowRange here = local(range);
    return check(launch_score(model_, queries_, part, first, static_cast<std::uint32_t>(here.first),
                              static_cast<std::uint32_t>(here.last), work_, shape_, stream_.get()),
                 "launch of score");
}

Status Shard::start_finish(const PassQuery& query, bool divide) {
    if (Status sent = send(std::span(&query, 1), Sending::both); !sent) return sent;
    return check(launch_finish_scores(model_, queries_, divide, work_, shape_, stream_.get()),
                 "launch of finish_scores");
}

Status Shard::start_select() {
    if (Status done = begin(); !done) return done;
    return select(Estimates::stored_scores, 0);
}

Status Shard::start_count(const Hit& target) {
    if (Status done = begin(); !done) return done;
    return check(launch_count_before(model_, queries_, target.row, target.score, work_, shape_,
                                     stream_.get()),
                 "launch of count_before");
}

Status Shard::start_copy_scores(RowRange range) {
    if (Status done = begin(); !done) return done;
    const RowRange here = local(range);
    if (here.size() == 0) return {};
    return copy_async(host_scores_.data() + here.first,
                      static_cast<const double*>(scores_.data()) + here.first, here.size(),
                      stream_);
}

Status Shard::wait() {
    if (Status used = use_device(device_); !used) return used;
    if (timed_ && begun_) {
        if (Status done = end_.record(stream_); !done) return done;
    }
    begun_ = false;
    sent_ = false;
    return stream_.synchronize();
}

ShardAnswer Shard::answer(std::size_t query) const {
    const DeviceAnswer& facts = answers_.data()[query];
    return {{hits_.data() + query * hits_stride_, facts.hits}, facts, facts.found > kFoundCapacity};
}

std::span<const double> Shard::scores(RowRange range) const {
    const RowRange here = local(range);
    return {host_scores_.data() + here.first, here.size()};
}

Result<double> Shard::device_ms() const {
    if (!timed_) return 0.0;
    const auto ms = elapsed_ms(begin_, end_);
    if (!ms) return ms.error();
    return static_cast<double>(*ms);
}

}  // namespace gloved::kernels::cuda
