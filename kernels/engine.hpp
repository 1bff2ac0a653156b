// What scans a model: one interface, whatever the hardware.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"

namespace gloved::kernels {

using format::Row;
using format::RowRange;

/// Kinds of engines, in order of preference.
enum class EngineKind { cuda, cpu };

/// The kind's name in options, requests and STATS: «cuda», «cpu».
std::string_view to_string(EngineKind kind);

/// Parses the name of an engine; «auto» is nothing: the first kind that can run. Error:
/// unavailable, with the names there are.
Result<std::optional<EngineKind>> parse_engine(std::string_view name);

/// Ways to an answer: by a plane of 4 bits a component, by bounds in float16 or float32, or by
/// every row's canonical score (float64).
enum class Pass { plane, float16, float32, float64 };

inline constexpr std::array kPasses = {Pass::plane, Pass::float16, Pass::float32, Pass::float64};

/// The pass's name in status lines and STATS: «plane», «float16», «float32», «float64».
std::string_view to_string(Pass pass);

/// One answer. Order of answers: score descending, then row ascending.
struct Hit {
    Row row = 0;
    double score = 0;
    friend bool operator==(const Hit&, const Hit&) = default;
};

/// Whether `a` stands before `b` in an answer. A strict total order on hits of distinct rows.
inline bool comes_before(const Hit& a, const Hit& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

/// A float32 vector of `dim` elements with its canonical norm, which is finite and not 0.
struct QueryVector {
    std::vector<float> values;
    double norm = 0;
};

/// The k rows of largest cosine to `vector`.
struct Cosine {
    QueryVector vector;
};

/// At least one vector in all. The k rows of largest Π((1+cos)/2 of positives) / (Π((1+cos)/2 of
/// negatives) + 1e-6), float64, in argument order: 3CosMul of Levy and Goldberg 2014, «Linguistic
/// Regularities in Sparse and Explicit Word Representations».
struct CosMul {
    std::vector<QueryVector> positives;
    std::vector<QueryVector> negatives;
};

/// How many eligible rows come before `row` in the answer to Cosine{vector}, `row` itself not
/// counted.
struct CountBefore {
    QueryVector vector;
    Row row = 0;
};

/// Which rows are eligible: all of the conditions hold.
struct Filter {
    std::uint32_t rank_below = std::numeric_limits<std::uint32_t>::max();  ///< rank < rank_below
    std::optional<RowRange> rows;                                          ///< first <= row < last
    double min_score = -std::numeric_limits<double>::infinity();           ///< score >= min_score
};

struct Query {
    std::variant<Cosine, CosMul, CountBefore> kind;
    std::size_t k = 10;  ///< at least 1; more than are eligible returns all that are (CountBefore:
                         ///< ignored)
    std::vector<Row> excluded;  ///< rows that are not eligible, in any order
    Filter filter;
};

/// How an answer was found. Not part of the answer: may differ from run to run.
struct Certificate {
    std::uint64_t scanned = 0;   ///< rows whose score was bounded
    std::uint64_t rescored = 0;  ///< rows whose canonical score was computed
    /// Rows that a plane let through, so that their vectors were read; without a plane as many as
    /// were scanned.
    std::uint64_t survivors = 0;
    /// Bytes of the plane and of vectors that this answer needed, each counted once, whatever else
    /// shared its pass.
    std::uint64_t read_bytes = 0;
    /// Every row that was not rescored has a canonical score below this (-infinity: there are
    /// none).
    double rejected_below = -std::numeric_limits<double>::infinity();
    Pass pass = Pass::float32;  ///< that led to the answer
    /// A plane was read first and ruled out so little that `pass` answered instead.
    bool plane_overflowed = false;
    double device_ms = 0;  ///< of the pass on its device, where EngineOptions asked for it; shared
                           ///< by all of a batch
};

struct Answer {
    std::vector<Hit> hits;    ///< Cosine and CosMul, in order
    std::uint64_t count = 0;  ///< CountBefore
    Certificate certificate;
};

/// What an engine holds on its GPUs, and how long each part of its start took.
struct GpuFacts {
    std::size_t memory_bytes = 0;  ///< of device memory, on all GPUs
    std::size_t host_bytes = 0;    ///< of page-locked host memory that the GPUs read
    std::size_t shards = 0;
    std::size_t pass_queries = 0;        ///< queries that a float16 pass takes at once
    std::size_t plane_pass_queries = 0;  ///< and a pass over the plane; 0: there is none
    bool holds_vectors = false;
    bool holds_plane = false;
    bool upload_pinned = false;  ///< the mapped model was page-locked while it was copied
    double driver_ms = 0;
    double context_ms = 0;
    double pin_ms = 0;
    double upload_ms = 0;
    double plane_ms = 0;
    double prepare_ms = 0;
};

/// Answers queries on one model. `run` is for one thread at a time (the engine has its own threads
/// inside); different engines on one model may run at once.
class Engine {
  public:
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    virtual EngineKind kind() const = 0;
    std::string name() const { return std::string(to_string(kind())); }
    /// One line for people: instruction set or device, threads.
    virtual std::string description() const = 0;
    /// Answers all queries, in their order, in as few passes over the model as they fit. Each
    /// answer depends on the model and its query alone, not on what else is in the batch. Every row
    /// named must be of the model, every vector of its dim. Error: device, after which the engine
    /// is of no more use: nothing was answered, and nothing will be.
    virtual Result<std::vector<Answer>> run(std::span<const Query> queries) = 0;
    /// The same from call to call; nothing for an engine without a GPU. Any thread.
    virtual std::optional<GpuFacts> gpu_facts() const { return std::nullopt; }

  protected:
    Engine() = default;
};

/// How many vectors a query sends through a pass: what its cost grows with.
std::size_t vectors_of(const Query& query);

}  // namespace gloved::kernels
