#include "kernels/cuda/shard.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <initializer_list>
#include <utility>

#include "common/error_with.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr int kOldestCapability = 75;

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
    const Status described =
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    if (!described) return described.error();
    facts.name = properties.name;
    if (10 * major + minor < kOldestCapability) {
        return error_with(ErrorCode::unavailable,
                          "device {} ({}) has compute capability {}.{}; 7.5 is the least", device,
                          facts.name, major, minor);
    }
    const cudaError_t loaded = load_kernels();
    if (loaded == cudaErrorNoKernelImageForDevice || loaded == cudaErrorUnsupportedPtxVersion) {
        (void)check(loaded, "load_kernels");
        return error_with(
            ErrorCode::unavailable,
            "this build has no code for device {} ({}, compute capability {}.{}): build it there "
            "with -DGLOVED_CUDA_ARCHITECTURES=native, or use --engine cpu",
            device, facts.name, major, minor);
    }
    if (Status done = check(loaded, "load_kernels"); !done) return done.error();
    facts.shape.integer_products = major >= 8;
    facts.shape.wgmma = major == 9 && minor == 0 && wgmma_is_built();
    facts.shape.early_launches = major >= 9 && early_launch_is_built();
    if (Status done = move_into(facts.free_bytes, free_device_bytes()); !done) return done.error();
    return facts;
}

Status check_shard_rows(std::size_t rows) {
    if (rows <= kMaxShardRows) return {};
    return error_with(ErrorCode::unavailable,
                      "{} rows are too many for one device, which takes {}: spread them over "
                      "several with --device, or use --engine cpu",
                      rows, kMaxShardRows);
}

Result<std::unique_ptr<Shard>> Shard::create(const format::Model& model, RowRange rows,
                                             const DeviceFacts& device, const Residency& residency,
                                             bool timed, ThreadPool* writers) {
    assert(rows.size() <= kMaxShardRows);
    assert(residency.vectors || residency.plane || residency.code_tiles);
    assert(!residency.plane || rows.first % kUnitRows == 0);
    if (Status used = use_device(device.device); !used) return used.error();
    const std::size_t uncovered =
        planes::uncovered_rows(model.norms().subspan(rows.first, rows.size())).size();
    const ShardSizes sizes(rows.size(), model.dim(), uncovered, device.shape, residency);
    std::unique_ptr<Shard> shard(new Shard(rows, device, sizes, timed, writers));

    for (Stream* stream : {&shard->stream_, &shard->copies_}) {
        if (Status made = move_into(*stream, Stream::create()); !made) return made.error();
    }
    for (SlotState& slot : shard->slots_) {
        for (Event* event : {&slot.begin, &slot.end, &slot.copied}) {
            if (Status made = move_into(*event, Event::create()); !made) return made.error();
        }
    }
    shard->memory_ = lay_out(shard->arena_, sizes);
    if (const Status& taken = shard->arena_.status(); !taken) return taken.error();
    shard->model_.first_row = static_cast<std::uint32_t>(rows.first);
    shard->model_.dim = static_cast<std::uint32_t>(model.dim());
    return shard;
}

Status Shard::fill(const format::Model& model, const float* vectors) {
    assert((vectors == nullptr) == holds_vectors());
    if (Status used = use_device(device_); !used) return used;
    if (!holds_vectors()) model_.vectors = vectors + rows_.first * model.dim();
    const auto norms = model.norms().subspan(rows_.first, rows_.size());
    const auto ranks = model.ranks().subspan(rows_.first, rows_.size());
    const std::vector<Row> uncovered = planes::uncovered_rows(norms);
    assert(uncovered.size() == sizes_.uncovered);
    if (Status done = copy_async(model_.norms, norms.data(), norms.size(), stream_); !done)
        return done;
    if (Status done = copy_async(model_.ranks, ranks.data(), ranks.size(), stream_); !done)
        return done;
    const cudaError_t zeroed = cudaMemsetAsync(
        work_.counters, 0, sizes_.counters * sizeof(*work_.counters), stream_.get());
    if (Status done = check(zeroed, "cudaMemsetAsync"); !done) return done;
    if (!uncovered.empty()) {
        Status copied = copy_async(model_.uncovered, uncovered.data(), uncovered.size(), stream_);
        if (!copied) return copied;
    }
    if (model_.int8_codes.rows != nullptr) {
        Status built =
            check(launch_build_int8_codes(model_, stream_.get()), "launch of build_int8_codes");
        if (!built) return built;
    }
    if (sizes_.code_pass > 0) return build_code_tiles();
    return stream_.synchronize();
}

/// Builds the code tiles, and waits.
Status Shard::build_code_tiles() {
    std::size_t bytes = 0;
    Status asked = check(code_tiles_scratch_bytes(model_.rows, bytes), "code_tiles_scratch_bytes");
    if (!asked) return asked;
    DeviceBuffer<std::byte> scratch;
    Status made = move_into(scratch, DeviceBuffer<std::byte>::allocate(bytes));
    if (!made) return made;
    Status built =
        check(launch_build_code_tiles(model_, scratch.data(), scratch.size(), stream_.get()),
              "launch of build_code_tiles");
    if (!built) return built;
    if (serves_few_rows()) {
        const cudaError_t zeroed = cudaMemsetAsync(
            work_.few.done, 0, kMaxCodePass * sizeof(*work_.few.done), stream_.get());
        if (Status done = check(zeroed, "cudaMemsetAsync"); !done) return done;
        Status sorted = check(launch_sort_by_rank(model_, scratch.data(), scratch.size(),
                                                  model_.rows_by_rank, stream_.get()),
                              "launch of sort_by_rank");
        if (!sorted) return sorted;
    }
    return stream_.synchronize();
}

Status Shard::fill_lists(const RowLists& lists) {
    lists_.clear();
    if (Status used = use_device(device_); !used) return used;
    const auto memberships = lists.memberships().subspan(rows_.first, rows_.size());
    Status copied = copy_async(model_.memberships, memberships.data(), memberships.size(), stream_);
    if (!copied) return copied;
    std::vector<std::uint32_t> rows;
    for (std::size_t list = 0; list < lists.size(); ++list) {
        const std::span<const Row> all = lists.short_list(list);
        const auto first = std::ranges::lower_bound(all, rows_.first);
        const std::span here(first, std::lower_bound(first, all.end(), rows_.last));
        const bool is_short = all.size() == lists.count(list) && here.size() <= kMaxFewRows;
        if (is_short) {
            lists_.push_back(DeviceList{static_cast<std::uint32_t>(rows.size()),
                                        static_cast<std::uint32_t>(here.size())});
            for (const Row row : here) rows.push_back(row - model_.first_row);
        } else {
            lists_.emplace_back();
        }
    }
    if (serves_few_rows() && !rows.empty()) {
        copied = copy_async(model_.list_rows, rows.data(), rows.size(), stream_);
        if (!copied) return copied;
    }
    return stream_.synchronize();
}

std::optional<Shard::DeviceList> Shard::shortest_list(ListMask within) const {
    std::optional<DeviceList> shortest;
    for (ListMask left = within; left != 0; left &= left - 1) {
        const auto& list = lists_[static_cast<std::size_t>(std::countr_zero(left))];
        if (list && (!shortest || list->count < shortest->count)) shortest = list;
    }
    return shortest;
}

std::optional<std::size_t> Shard::listed(ListMask within) const {
    const auto list = shortest_list(within);
    return list ? std::optional<std::size_t>(list->count) : std::nullopt;
}

Status Shard::fill_plane(const planes::Plane& plane) {
    if (Status used = use_device(device_); !used) return used;
    const planes::PlaneShape here{rows_.size(), model_.dim};
    const auto* const groups =
        reinterpret_cast<const std::uint8_t*>(plane.group(rows_.first / planes::kGroupRows));
    const cudaError_t zeroed =
        cudaMemsetAsync(memory_.plane + here.bytes(), 0, kPlanePadding, stream_.get());
    if (Status done = check(zeroed, "cudaMemsetAsync"); !done) return done;
    Status copied = copy_async(memory_.plane, groups, here.bytes(), stream_);
    // Even where the copy was not started: the caller may unlock the memory next.
    Status done = stream_.synchronize();
    return copied ? done : copied;
}

RowRange Shard::local(RowRange range) const {
    const std::size_t first = std::clamp(range.first, rows_.first, rows_.last) - rows_.first;
    const std::size_t last = std::clamp(range.last, rows_.first, rows_.last) - rows_.first;
    return {first, std::max(first, last)};
}

Status Shard::begin(std::size_t slot) {
    if (Status used = use_device(device_); !used) return used;
    SlotState& state = slots_[slot];
    if (timed_ && !state.begun) {
        if (Status done = state.begin.record(stream_); !done) return done;
    }
    state.begun = true;
    return {};
}

Status Shard::start_plane_query(const PassQuery& query) {
    if (Status sent = send({&query, 1}, Inputs::plane_query); !sent) return sent;
    slots_[0].hits_stride = kMaxHits;
    return check(launch_plane_query(model_, queries_, work_, shape_, stream_.get()),
                 "launch of plane_query");
}

Status Shard::start_plane_pass(std::span<const PassQuery> queries, std::size_t slot) {
    if (Status sent = send(queries, Inputs::plane_pass, slot); !sent) return sent;
    slots_[slot].hits_stride = kMaxBatchHits;
    Status launched =
        check(launch_plane_pass(model_, queries_, work_of(slot), shape_, stream_.get()),
              "launch of plane_pass");
    return launched ? mark_end(slot) : launched;
}

Workspace Shard::work_of(std::size_t slot) const {
    Workspace work = work_;
    work.answers = memory_.slots[slot].answers;
    work.hits = memory_.slots[slot].hits;
    return work;
}

Status Shard::start_code_pass(std::span<const PassQuery> queries, std::size_t slot) {
    if (Status sent = send(queries, Inputs::raw_or_row, slot); !sent) return sent;
    slots_[slot].hits_stride = queries_.max_k;
    Status launched =
        check(launch_code_pass(model_, queries_, work_of(slot), shape_, stream_.get()),
              "launch of code_pass");
    return launched ? mark_end(slot) : launched;
}

Status Shard::start_few_rows(std::span<const PassQuery> queries, std::size_t slot) {
    assert(serves_few_rows());
    if (Status sent = send(queries, Inputs::raw, slot); !sent) return sent;
    slots_[slot].hits_stride = queries_.max_k;
    Status launched = check(launch_few_rows(model_, queries_, work_of(slot), stream_.get()),
                            "launch of few_rows");
    return launched ? mark_end(slot) : launched;
}

Status Shard::start_score(std::span<const ScoreQuery> queries, ScoreResult result, bool few) {
    assert(!queries.empty() && queries.size() <= kMaxScoredQueries);
    std::vector<PassQuery> vectors;
    ScorePass pass;
    pass.result = result;
    pass.few = few;
    pass.first_unit = model_.units;
    RowRange range;
    for (const ScoreQuery& query : queries) {
        const auto begin = static_cast<std::uint32_t>(vectors.size());
        for (const QueryVector* vector : query.vectors)
            vectors.push_back({vector, nullptr, {}, {}, 0});
        vectors[begin] = query.query;
        pass.queries[pass.count++] = {
            .begin = begin,
            .positives_end = begin + static_cast<std::uint32_t>(query.positives),
            .end = static_cast<std::uint32_t>(vectors.size()),
            .is_product = query.is_product,
            .target = {query.target.score, query.target.row, 0}};
        range = local(query.query.rows);
        pass.first_unit =
            std::min(pass.first_unit, static_cast<std::uint32_t>(range.first / kUnitRows));
        pass.last_unit = std::max(
            pass.last_unit, static_cast<std::uint32_t>((range.last + kUnitRows - 1) / kUnitRows));
    }
    slots_[0].hits_stride = kMaxHits;
    if (result != ScoreResult::scores) return score(vectors, pass);
    assert(queries.size() == 1);
    for (std::size_t begin = 0; begin < vectors.size(); begin += kMaxScoreVectors) {
        const auto some = std::span(vectors).subspan(
            begin, std::min<std::size_t>(kMaxScoreVectors, vectors.size() - begin));
        // Each launch tests the query's filter, or none.
        some.front().query = queries[0].query.query;
        some.front().rows = queries[0].query.rows;
        pass.continues = begin > 0;
        pass.goes_on = begin + some.size() < vectors.size();
        ScoredQuery& own = pass.queries[0];
        own.positives_end = static_cast<std::uint32_t>(
            std::clamp(queries[0].positives, begin, begin + some.size()) - begin);
        own.end = static_cast<std::uint32_t>(some.size());
        if (Status done = score(some, pass); !done) return done;
    }
    return copy_async(memory_.host_scores + range.first,
                      static_cast<const double*>(work_.scores) + range.first, range.size(),
                      stream_);
}

Status Shard::score(std::span<const PassQuery> vectors, const ScorePass& pass) {
    if (Status sent = send(vectors, Inputs::raw); !sent) return sent;
    return check(launch_score(model_, queries_, pass, work_, shape_, stream_.get()),
                 "launch of score");
}

Status Shard::wait() {
    if (Status used = use_device(device_); !used) return used;
    if (timed_ && slots_[0].begun) {
        if (Status done = slots_[0].end.record(stream_); !done) return done;
    }
    for (SlotState& slot : slots_) slot.begun = slot.sent = false;
    return stream_.synchronize();
}

Status Shard::wait(std::size_t slot) {
    if (Status used = use_device(device_); !used) return used;
    slots_[slot].begun = slots_[slot].sent = false;
    return slots_[slot].end.synchronize();
}

ShardAnswer Shard::answer(std::size_t query, std::size_t slot) const {
    const ShardMemory::Slot& buffers = memory_.slots[slot];
    const DeviceAnswer& facts = buffers.answers[query];
    return {{buffers.hits + query * slots_[slot].hits_stride, facts.hits},
            facts,
            facts.found > kFoundCapacity};
}

std::span<const double> Shard::scores(RowRange range) const {
    const RowRange here = local(range);
    return {memory_.host_scores + here.first, here.size()};
}

Result<double> Shard::device_ms(std::size_t slot) const {
    if (!timed_) return 0.0;
    const auto ms = elapsed_ms(slots_[slot].begin, slots_[slot].end);
    if (!ms) return ms.error();
    return static_cast<double>(*ms);
}

}  // namespace gloved::kernels::cuda
