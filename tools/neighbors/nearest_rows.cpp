#include "tools/neighbors/nearest_rows.hpp"

#include <algorithm>
#include <utility>

#include "kernels/query_vector.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/source/ordered_pipeline.hpp"

namespace gloved::neighbors {
namespace {

/// A GPU takes larger batches than clients ask: the more, the less a batch's fixed costs weigh.
constexpr std::size_t kCudaBatch = 8192;
/// For each thread of the cpu engine. With more, a signal would wait for seconds.
constexpr std::size_t kCpuBatch = 256;

/// Threads that prepare batches for a GPU, at most.
constexpr unsigned kPreparers = 4;
/// Queries that such a thread takes at a time.
constexpr std::size_t kPrepareGrain = 256;

unsigned thread_count(unsigned threads) {
    return threads == 0 ? kernels::usable_processors() : threads;
}

}  // namespace

NearestRows::NearestRows(kernels::Engine& engine, unsigned threads)
    : engine_(engine),
      batch_queries_(engine.kind() == kernels::EngineKind::cuda
                         ? kCudaBatch
                         : kCpuBatch * thread_count(threads)),
      pool_(engine.kind() == kernels::EngineKind::cuda ? std::min(kPreparers, thread_count(threads))
                                                       : 1) {}

Status NearestRows::prepare(Batch& batch, std::size_t first, std::size_t last,
                            const MakeQuery& make) {
    batch.first = first;
    batch.last = last;
    batch.numbers.clear();
    const std::size_t count = last - first;
    if (batch.queries.size() < count) batch.queries.resize(count);
    batch.made.assign(count, false);
    pool_.for_ranges(count, kPrepareGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) batch.made[i] = make(first + i, batch.queries[i]);
    });
    for (std::size_t i = 0; i < count; ++i) {
        if (!batch.made[i]) return batch.made[i].error();
        if (!*batch.made[i]) continue;
        const std::size_t used = batch.numbers.size();
        if (used != i) batch.queries[used] = std::move(batch.queries[i]);
        batch.numbers.push_back(first + i);
    }
    return {};
}

Status NearestRows::hand_over(const Batch& batch, std::span<const kernels::Answer> answers,
                              const TakeHits& take) {
    std::size_t answered = 0;
    for (std::size_t number = batch.first; number < batch.last; ++number) {
        std::span<const kernels::Hit> hits;
        if (answered < batch.numbers.size() && batch.numbers[answered] == number)
            hits = answers[answered++].hits;
        if (Status taken = take(number, hits); !taken) return taken;
    }
    return {};
}

Status NearestRows::ask(std::size_t first, std::size_t last, const MakeQuery& make,
                        const TakeHits& take, const std::atomic<bool>& stop) {
    Batch* now = &batches_[0];
    Batch* next = &batches_[1];
    const auto end_of = [&](std::size_t begin) { return std::min(begin + batch_queries_, last); };
    if (Status prepared = prepare(*now, first, end_of(first), make); !prepared) return prepared;
    for (std::size_t begin = first; begin < last; begin = end_of(begin)) {
        if (stop) return source::interrupted();
        const std::size_t end = end_of(begin);
        bool is_prepared = false;
        Status prepared;
        const auto prepare_next = [&] {
            is_prepared = true;
            prepared = prepare(*next, end, end_of(end), make);
        };
        const auto answers =
            engine_.run(std::span(now->queries).first(now->numbers.size()), prepare_next);
        if (!answers) return answers.error();
        if (Status taken = hand_over(*now, *answers, take); !taken) return taken;
        if (!is_prepared) prepare_next();
        if (!prepared) return prepared;
        std::swap(now, next);
    }
    return {};
}

Result<bool> make_row_query(const format::Model& model, std::size_t row, std::size_t k,
                            kernels::Query& query) {
    const kernels::WeightedRow term{1.0, static_cast<format::Row>(row)};
    auto vector = kernels::make_query_vector(model, {&term, 1}, false);
    if (!vector) {
        if (vector.error().code == ErrorCode::zero_vector) return false;
        return vector.error();
    }
    std::get<kernels::Cosine>(query.kind).vector = *std::move(vector);
    query.k = k;
    query.excluded.assign(1, term.row);
    return true;
}

}  // namespace gloved::neighbors
