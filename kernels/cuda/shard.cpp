#include "kernels/cuda/shard.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <thread>
#include <tuple>
#include <utility>

#include "common/error_with.hpp"
#include "kernels/bounds.hpp"
#include "kernels/cuda/row_upper.hpp"
#include "kernels/planes/shape.hpp"

namespace gloved::kernels::cuda {
namespace {

constexpr int kOldestCapability = 75;
/// Bytes of queries' vectors that a thread writes at once, and the maximum number of copies in
/// which all go to the device: the bus takes some while the next are written, and to start a copy
/// takes some microseconds.
constexpr std::size_t kPieceBytes = std::size_t{300} << 10;
constexpr std::size_t kMaxCopies = 8;
/// One thread writes fewer bytes in the time that others take to wake up.
constexpr std::size_t kMinWritersBytes = std::size_t{1} << 20;

/// Fewest queries of one filter for which marking its rows takes less time than looking up those
/// that reach a cutoff.
constexpr std::uint32_t kMinMarkedQueries = 4;
/// Marking takes about as long for every filter, and saves little for long lists: one filter, and
/// another for each so many queries of a pass, cost little beside the pass.
constexpr std::size_t kQueriesOfAMark = 32;

void write_vector(const QueryVector& vector, std::size_t stride, float* raw) {
    std::fill(std::copy(vector.values.begin(), vector.values.end(), raw), raw + stride, 0.0F);
}

/// Writes the queries' vectors, padded with zeros to `stride`.
void write_vectors(std::span<const PassQuery> queries, std::size_t stride, float* raw) {
    for (const PassQuery& query : queries) {
        write_vector(*query.vector, stride, raw);
        raw += stride;
    }
}

/// Whether the query's vector has to be sent: it is no row that the device holds.
bool needs_vector(const DeviceQuery& query) { return query.vector_row == kNotARow; }

/// The digits of all queries, planes::PlaneQuery::bytes. Sets the facts about them.
std::vector<std::int8_t> make_digits(std::span<const PassQuery> queries,
                                     std::span<DeviceQuery> described) {
    std::vector<std::int8_t> digits;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        const planes::PlaneQuery own = planes::make_plane_query(*queries[q].vector);
        described[q].upper = upper_facts(own.facts, queries[q].vector->values.size());
        described[q].digits = own.facts;
        digits.insert(digits.end(), own.bytes.begin(), own.bytes.end());
    }
    return digits;
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
    if (lists.size() == 0) return {};
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

DeviceQuery Shard::describe(const PassQuery& query, std::uint32_t* excluded,
                            std::size_t& count) const {
    DeviceQuery out;
    out.norm = query.vector->norm;
    if (query.query == nullptr) return out;
    const Filter& filter = query.query->filter;
    const RowRange range = local(query.rows);
    out.excluded_begin = static_cast<std::uint32_t>(count);
    for (const Row row : query.excluded) {
        if (row < rows_.first || row >= rows_.last) continue;
        assert(count < sizes_.excluded);
        excluded[count++] = row - static_cast<std::uint32_t>(rows_.first);
    }
    out.excluded_count = static_cast<std::uint32_t>(count) - out.excluded_begin;
    out.min_score = filter.min_score;
    out.k = static_cast<std::uint32_t>(std::min<std::size_t>(query.k, kMaxHits));
    out.k_plus_excluded = out.k + out.excluded_count;
    out.rank_below = filter.rank_below;
    out.within = filter.within;
    out.without = filter.without;
    if (const auto list = shortest_list(filter.within)) {
        out.list_begin = list->begin;
        out.listed = list->count;
    }
    out.first = static_cast<std::uint32_t>(range.first);
    out.last = static_cast<std::uint32_t>(range.last);
    return out;
}

std::uint32_t Shard::held_row(const QueryVector& vector) const {
    if (!vector.row || !holds_vectors() || *vector.row < rows_.first || *vector.row >= rows_.last)
        return kNotARow;
    return *vector.row - static_cast<std::uint32_t>(rows_.first);
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

/// Sets what `queries_` says of all of them.
void Shard::summarize(std::span<const DeviceQuery> described) {
    for (const DeviceQuery& query : described) {
        queries_.any_filter = queries_.any_filter || query.rank_below != ~std::uint32_t{0} ||
                              (query.within | query.without) != 0;
        queries_.all_rows = queries_.all_rows && query.first == 0 && query.last == rows_.size();
        queries_.max_k = std::max(queries_.max_k, query.k);
        queries_.max_k_plus_excluded =
            std::max(queries_.max_k_plus_excluded, query.k_plus_excluded);
    }
}

void Shard::mark_filters(std::span<DeviceQuery> described) {
    if (!queries_.any_filter && queries_.all_rows) return;
    const auto of_filter = [](const DeviceQuery& query) {
        return std::tuple(query.rank_below, query.first, query.last, query.within, query.without);
    };
    struct Shared {
        std::uint32_t query;  // the first that has the filter
        std::uint32_t queries = 0;
    };
    std::vector<Shared> filters;
    const auto find = [&](const DeviceQuery& query) {
        return std::ranges::find_if(filters, [&](const Shared& filter) {
            return of_filter(described[filter.query]) == of_filter(query);
        });
    };
    for (std::uint32_t q = 0; q < described.size(); ++q) {
        auto filter = find(described[q]);
        if (filter == filters.end()) {
            if (filters.size() == kMaxMarkedFilters) continue;
            filter = filters.insert(filter, {q});
        }
        ++filter->queries;
    }
    std::erase_if(filters, [](const Shared& filter) { return filter.queries < kMinMarkedQueries; });
    std::ranges::stable_sort(filters, std::greater(), &Shared::queries);
    const std::size_t most = std::max<std::size_t>(1, described.size() / kQueriesOfAMark);
    if (filters.size() > most) filters.resize(most);
    for (const Shared& filter : filters) queries_.marked[queries_.marked_count++] = filter.query;
    for (DeviceQuery& query : described) {
        const auto filter = find(query);
        if (filter != filters.end())
            query.marks = static_cast<std::uint32_t>(filter - filters.begin());
    }
}

/// Copies all at once: each copy takes some microseconds, however small.
Status Shard::send(std::span<const PassQuery> queries, Inputs inputs, std::size_t slot) {
    const bool of_many = inputs != Inputs::plane_query;
    assert(queries.size() <= (of_many ? sizes_.inputs : 1));
    if (Status used = use_device(device_); !used) return used;
    // An earlier copy may still read the staging buffer.
    if (slots_[slot].sent) {
        if (Status done = stream_.synchronize(); !done) return done;
    }
    const std::size_t stride = model_.stride;
    queries_ = {};
    const ShardMemory::Slot& buffers = memory_.slots[slot];
    std::byte* const host = buffers.input_staging;
    const std::span described(reinterpret_cast<DeviceQuery*>(host), queries.size());
    auto* const excluded =
        reinterpret_cast<std::uint32_t*>(host + InputLayout(queries.size(), 0, stride, 0).excluded);
    std::size_t excluded_count = 0;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        assert(queries[q].vector->values.size() == model_.dim);
        described[q] = describe(queries[q], excluded, excluded_count);
        if (inputs == Inputs::raw_or_row) described[q].vector_row = held_row(*queries[q].vector);
    }
    std::vector<std::int8_t> digits;
    if (inputs == Inputs::plane_query) digits = make_digits(queries, described);

    const InputLayout layout(queries.size(), digits.size(), stride, excluded_count);
    if (!digits.empty()) std::memcpy(host + layout.digits, digits.data(), digits.size());
    std::byte* const device = buffers.input;
    queries_ = {.queries = reinterpret_cast<const DeviceQuery*>(device),
                .raw = reinterpret_cast<float*>(device + layout.raw),
                .excluded = reinterpret_cast<const std::uint32_t*>(device + layout.excluded),
                .digits = reinterpret_cast<const std::int8_t*>(device + layout.digits),
                .count = static_cast<std::uint32_t>(queries.size()),
                .host = {.queries = reinterpret_cast<const DeviceQuery*>(host),
                         .raw = reinterpret_cast<const float*>(host + layout.raw),
                         .excluded = reinterpret_cast<const std::uint32_t*>(host + layout.excluded),
                         .digits = reinterpret_cast<const std::int8_t*>(host + layout.digits)}};
    summarize(described);
    if (inputs == Inputs::raw_or_row) mark_filters(described);
    if (Status done = begin(slot); !done) return done;
    if (of_many && queries.size() * stride * sizeof(float) > kPieceBytes) {
        if (!runs_beside(slot)) return send_in_pieces(queries, described, layout, slot, stream_);
        const Event& copied = slots_[slot].copied;
        Status sent = send_in_pieces(queries, described, layout, slot, copies_);
        if (!sent) return sent;
        if (Status done = copied.record(copies_); !done) return done;
        return copied.hold_up(stream_);
    }
    const bool any_missing = std::ranges::any_of(described, needs_vector);
    if (any_missing) write_vectors(queries, stride, reinterpret_cast<float*>(host + layout.raw));
    if (inputs == Inputs::plane_query && plane_query_fits_parameters(model_, queries_)) return {};
    if (inputs == Inputs::plane_pass && plane_pass_fits_parameters(model_, queries_)) return {};
    slots_[slot].sent = true;
    return copy_async(buffers.input, static_cast<const std::byte*>(host),
                      any_missing ? layout.end : layout.raw, stream_);
}

bool Shard::runs_beside(std::size_t slot) const {
    return std::ranges::any_of(
        slots_, [&](const SlotState& other) { return &other != &slots_[slot] && other.begun; });
}

/// Copies vectors while the next are written to the staging buffer, which holds the rest already.
Status Shard::send_in_pieces(std::span<const PassQuery> queries,
                             std::span<const DeviceQuery> described, const InputLayout& layout,
                             std::size_t slot, const Stream& by) {
    slots_[slot].sent = true;
    const ShardMemory::Slot& buffers = memory_.slots[slot];
    std::byte* const host = buffers.input_staging;
    const auto copy = [&](std::size_t begin, std::size_t end) {
        return copy_async(buffers.input + begin, static_cast<const std::byte*>(host) + begin,
                          end - begin, by);
    };
    if (Status done = copy(0, layout.raw); !done) return done;
    const auto missing_count =
        static_cast<std::size_t>(std::ranges::count_if(described, needs_vector));
    if (missing_count == 0) return {};
    const std::size_t vector_bytes = model_.stride * sizeof(float);
    const std::size_t step = std::max<std::size_t>(kPieceBytes / vector_bytes, 1);
    const std::size_t pieces = (queries.size() + step - 1) / step;
    std::vector<std::atomic<bool>> written(pieces);
    std::atomic<std::size_t> next = 0;
    const auto write_next = [&] {
        const std::size_t piece = next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= pieces) return false;
        for (std::size_t q = piece * step; q < std::min((piece + 1) * step, queries.size()); ++q) {
            if (!needs_vector(described[q])) continue;
            write_vector(*queries[q].vector, model_.stride,
                         reinterpret_cast<float*>(host + layout.raw + q * vector_bytes));
        }
        written[piece].store(true, std::memory_order_release);
        return true;
    };
    const std::size_t at_once = (pieces + kMaxCopies - 1) / kMaxCopies;
    const auto copy_all = [&]() -> Status {
        for (std::size_t piece = 0; piece < pieces; piece += at_once) {
            const std::size_t last = std::min(piece + at_once, pieces);
            for (std::size_t i = piece; i < last; ++i) {
                while (!written[i].load(std::memory_order_acquire)) {
                    if (!write_next()) std::this_thread::yield();
                }
            }
            const std::size_t begin = piece * step;
            const std::size_t end = std::min(last * step, queries.size());
            if (std::ranges::none_of(described.subspan(begin, end - begin), needs_vector)) continue;
            Status done = copy(layout.raw + begin * vector_bytes, layout.raw + end * vector_bytes);
            if (!done) return done;
        }
        return {};
    };
    if (writers_ == nullptr || missing_count * vector_bytes < kMinWritersBytes) return copy_all();
    Status done;
    writers_->run([&](unsigned worker) {
        if (worker == 0) {
            done = copy_all();
        } else {
            while (write_next()) {
            }
        }
    });
    return done;
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

Status Shard::start_score(std::span<const ScoreQuery> queries, ScoreResult result) {
    assert(!queries.empty() && queries.size() <= kMaxScoredQueries);
    std::vector<PassQuery> vectors;
    ScorePass pass;
    pass.result = result;
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
