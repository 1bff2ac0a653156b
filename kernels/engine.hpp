// Engine: the interface of the engines that answer queries on a model, and the types of queries and
// answers. registry.hpp makes an engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::kernels {

using format::Row;
using format::RowRange;

/// Kinds of engines, in order of preference.
enum class EngineKind { cuda, cpu };

/// The kind's name in options, requests and STATS: «cuda», «cpu».
std::string_view to_string(EngineKind kind);

/// Parses the name of an engine. «auto» gives nullopt, which means the first kind that can run.
/// Error: unavailable, whose message lists the names.
Result<std::optional<EngineKind>> parse_engine(std::string_view name);

/// How a pass rules rows out: by codes of one byte per component (int8) or of 4 bits (plane), or
/// not at all: it computes the canonical score of every row that the filter leaves (float64).
enum class Pass { int8, plane, float64 };

inline constexpr std::array kPasses = {Pass::int8, Pass::plane, Pass::float64};

/// The pass's name in status lines and STATS: «int8», «plane», «float64».
std::string_view to_string(Pass pass);

/// A row in an answer, with its canonical score. Hits are in the order of descending scores, equal
/// scores in the order of rows.
struct Hit {
    Row row = 0;
    double score = 0;
    friend bool operator==(const Hit&, const Hit&) = default;
};

/// Whether `a` comes before `b` in an answer. A strict total order on hits of distinct rows.
inline bool comes_before(const Hit& a, const Hit& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

/// A float32 vector of `dim` elements with its canonical norm, which is finite and not 0.
struct QueryVector {
    std::vector<float> values;
    double norm = 0;
    /// The row of the model that `values` are, with 0 for −0, if they are known to be one's.
    std::optional<Row> row = std::nullopt;
};

/// Asks for the k rows with the largest cosine with `vector`.
struct Cosine {
    QueryVector vector;
};

/// Asks for the k rows with the largest 3CosMul score: Π((1+cos)/2 of positives) / (Π((1+cos)/2 of
/// negatives) + 1e-6), in float64, multiplied in the order of the vectors. There is at least one
/// vector in all. (Levy and Goldberg 2014, «Linguistic Regularities in Sparse and Explicit Word
/// Representations».)
struct CosMul {
    std::vector<QueryVector> positives;
    std::vector<QueryVector> negatives;
};

/// Asks how many eligible rows come before `row` in the answer to Cosine{vector}. `row` itself is
/// not counted. With `score` it asks instead for the number of eligible rows with at least this
/// score, whatever `row` is.
struct CountBefore {
    QueryVector vector;
    Row row = 0;
    std::optional<double> score = std::nullopt;
};

/// The conditions for a row to be eligible, that is, allowed in the answer. All must hold.
struct Filter {
    std::uint32_t rank_below = std::numeric_limits<std::uint32_t>::max();  ///< rank < rank_below
    std::optional<RowRange> rows;                                          ///< first <= row < last
    double min_score = -std::numeric_limits<double>::infinity();           ///< score >= min_score
    ListMask within = 0;   ///< those of `lists` that all have the row
    ListMask without = 0;  ///< those of which none has the row
    /// What `within` and `without` name; not read if they name none. Must outlive the run.
    const RowLists* lists = nullptr;

    bool names_lists() const { return (within | without) != 0; }
    /// Whether a row that is in the lists `of_row` is eligible as far as lists go.
    bool takes_lists(ListMask of_row) const {
        return (of_row & within) == within && (of_row & without) == 0;
    }
};

/// What an engine is asked.
struct Query {
    std::variant<Cosine, CosMul, CountBefore> kind;
    /// Number of hits, at least 1; fewer if fewer rows are eligible. CountBefore ignores it.
    std::size_t k = 10;
    std::vector<Row> excluded;  ///< further rows that are not eligible, in any order
    Filter filter;
};

/// How an answer was found. Not part of the answer: may differ from run to run.
struct Certificate {
    std::uint64_t scanned = 0;   ///< rows whose score, or a bound for it, was computed
    std::uint64_t rescored = 0;  ///< rows whose canonical score was computed
    /// Rows that the plane or the tiles of int8 codes did not rule out; without either, `scanned`.
    std::uint64_t survivors = 0;
    /// Bytes of codes and of vectors that this query's pass read for it, each counted once,
    /// even if other queries shared the pass.
    std::uint64_t read_bytes = 0;
    /// Every eligible row that was not rescored has a canonical score below this; -infinity if all
    /// were rescored.
    double rejected_below = -std::numeric_limits<double>::infinity();
    Pass pass = Pass::float64;  ///< the pass that gave the answer
    /// Whether codes were read first, but ruled out so few rows that `pass` had to answer instead.
    bool plane_overflowed = false;
    /// Time of the pass on the GPU if EngineOptions::time_device is set. All queries of a batch
    /// have the same.
    double device_ms = 0;
};

/// The answer to a query.
struct Answer {
    std::vector<Hit> hits;    ///< for Cosine and CosMul, best first
    std::uint64_t count = 0;  ///< for CountBefore
    Certificate certificate;
};

/// What an engine holds on its GPUs, and how long each part of its start took.
struct GpuFacts {
    /// The part of a model that a GPU holds.
    struct Shard {
        int device = 0;                ///< number of the GPU
        std::size_t rows = 0;          ///< how many it holds
        std::size_t memory_bytes = 0;  ///< device memory
    };
    std::vector<Shard> shards;
    bool replicas = true;                ///< each shard holds all rows
    std::size_t memory_bytes = 0;        ///< device memory of all shards
    std::size_t host_bytes = 0;          ///< page-locked host memory that the GPUs read
    std::size_t plane_pass_queries = 0;  ///< maximum number of queries of a pass of many over the
                                         ///< plane; 0: there is none
    std::size_t int8_pass_queries = 0;   ///< the same of a pass over int8 codes
    bool holds_vectors = false;          ///< in device memory
    bool holds_plane = false;
    bool upload_pinned = false;  ///< the vectors were page-locked while they were copied
    double driver_ms = 0;        ///< starting the driver
    double context_ms = 0;       ///< creating contexts and loading kernels
    double pin_ms = 0;           ///< page-locking the vectors, within upload_ms
    double upload_ms = 0;        ///< copying the vectors
    double plane_ms = 0;         ///< building the plane if the model stores none
    double prepare_ms = 0;       ///< allocating, and computing what the GPUs hold besides vectors
};

/// Answers queries on one model. One thread at a time may call `run`; an engine has its own threads
/// inside. Different engines on one model may run at the same time.
class Engine {
  public:
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    virtual EngineKind kind() const = 0;
    std::string name() const { return std::string(to_string(kind())); }
    /// One line for people: instruction set or device, threads.
    virtual std::string description() const = 0;
    /// Answers a batch: answer i is for queries[i]. Makes as few passes over the model as it can.
    /// An answer (except its certificate) depends on the model and its query alone, not on the rest
    /// of the batch. Every row in a query must be a row of the model, every vector must have its
    /// dim. Error: device; then no query was answered, and the engine is unusable.
    Result<std::vector<Answer>> run(std::span<const Query> queries) { return run(queries, {}); }
    /// Does the same, and calls `meanwhile` at most once, on the calling thread, while it waits for
    /// a device. An engine that computes on that thread does not call it.
    virtual Result<std::vector<Answer>> run(std::span<const Query> queries,
                                            const std::function<void()>& meanwhile) = 0;
    /// Facts about an engine on GPUs, fixed when it was made; nullopt for other engines. Any
    /// thread.
    virtual std::optional<GpuFacts> gpu_facts() const { return std::nullopt; }
    /// Bytes of the fine plane that the engine has made (FinePlane); 0 if there is none. Any
    /// thread.
    virtual std::size_t fine_plane_bytes() const { return 0; }

  protected:
    Engine() = default;
};

/// The largest number of rows that a filter can leave of a model of `rows` rows.
std::size_t most_rows(const Filter& filter, std::size_t rows);

/// The number of vectors that a query compares with every row. A batch's cost grows with the sum.
std::size_t vectors_of(const Query& query);

}  // namespace gloved::kernels
