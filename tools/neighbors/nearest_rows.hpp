// Asks an engine for the nearest rows of many query vectors, in batches that suit it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::neighbors {

/// Makes query `number` in place: the caller keeps the vectors' memory from batch to batch. Returns
/// false if it has no answer because its vector is zero. Several threads call it at the same time,
/// for different queries. Error: bad_request.
using MakeQuery = std::function<Result<bool>(std::size_t number, kernels::Query& query)>;
/// Takes the hits of query `number`, best first. Called in the order of the numbers.
using TakeHits = std::function<Status(std::size_t number, std::span<const kernels::Hit> hits)>;

/// Answers many queries with one engine. Prepares a batch while a GPU answers the one before, on
/// some threads, since it takes one thread longer than the GPU. Not safe for concurrent use.
class NearestRows {
  public:
    /// The engine, made with that many threads (0: one per processor), must outlive it.
    NearestRows(kernels::Engine& engine, unsigned threads);

    /// Asks the queries `first` to `last` − 1. Errors: those of the functions; device; interrupted,
    /// once `stop` is true, with a delay of one batch.
    Status ask(std::size_t first, std::size_t last, const MakeQuery& make, const TakeHits& take,
               const std::atomic<bool>& stop);

  private:
    struct Batch {
        std::size_t first = 0;
        std::size_t last = 0;
        std::vector<kernels::Query> queries;  // as many of them are in use as there are numbers
        std::vector<std::size_t> numbers;     // ascending
        std::vector<Result<bool>> made;       // (last - first)
    };

    Status prepare(Batch& batch, std::size_t first, std::size_t last, const MakeQuery& make);
    static Status hand_over(const Batch& batch, std::span<const kernels::Answer> answers,
                            const TakeHits& take);

    kernels::Engine& engine_;
    std::size_t batch_queries_;
    kernels::ThreadPool pool_;
    Batch batches_[2];
};

/// Makes the query for the `k` rows nearest to `row` other than itself, as NEAR asks for a word.
/// Returns false if its vector is zero. Error: bad_request, for a vector that is not finite.
Result<bool> make_row_query(const format::Model& model, std::size_t row, std::size_t k,
                            kernels::Query& query);

}  // namespace gloved::neighbors
