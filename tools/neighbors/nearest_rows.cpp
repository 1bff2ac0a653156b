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

std::size_t batch_queries(kernels::EngineKind kind, unsigned threads) {
    if (kind == kernels::EngineKind::cuda) return kCudaBatch;
    return kCpuBatch * (threads == 0 ? kernels::usable_processors() : threads);
}

}  // namespace

NearestRows::NearestRows(kernels::Engine& engine, unsigned threads)
    : engine_(engine), batch_queries_(batch_queries(engine.kind(), threads)) {}

Status NearestRows::prepare(Batch& batch, std::size_t first, std::size_t last,
                            const MakeQuery& make) const {
    batch.first = first;
    batch.last = last;
    batch.used = 0;
    batch.numbers.clear();
    for (std::size_t number = first; number < last; ++number) {
        if (batch.used == batch.queries.size()) batch.queries.emplace_back();
        const auto made = make(number, batch.queries[batch.used]);
        if (!made) return made.error();
        if (!*made) continue;
        batch.numbers.push_back(number);
        ++batch.used;
    }
    return {};
}

Status NearestRows::hand_over(const Batch& batch, std::span<const kernels::Answer> answers,
                              const TakeHits& take) {
    std::size_t answered = 0;
    for (std::size_t number = batch.first; number < batch.last; ++number) {
        std::span<const kernels::Hit> hits;
        if (answered < batch.used && batch.numbers[answered] == number)
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
        engine_.during_next_run(prepare_next);
        const auto answers = engine_.run(std::span(now->queries).first(now->used));
        engine_.during_next_run({});  // it may not have called what refers to this call
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
