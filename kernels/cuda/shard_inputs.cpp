// What a pass needs of its queries: their description, vectors and digits, written to the staging
// buffer of a slot and copied to the device.
#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <functional>
#include <thread>
#include <tuple>
#include <utility>

#include "kernels/cuda/row_upper.hpp"
#include "kernels/cuda/shard.hpp"

namespace gloved::kernels::cuda {
namespace {

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

}  // namespace gloved::kernels::cuda
