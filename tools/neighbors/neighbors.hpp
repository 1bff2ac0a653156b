// All of gloved-neighbors' work except its command line: the nearest rows of every row of a model,
// computed in parts and joined, and what is made from them.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "tools/neighbors/lists.hpp"
#include "tools/neighbors/parts.hpp"
#include "tools/neighbors/queries.hpp"

namespace gloved::neighbors {

/// What all tasks share.
struct Settings {
    std::string model_dir;
    std::size_t k = 10;
    std::string parts_dir;  ///< for the parts; empty: MODEL_DIR.neighbors-parts
    std::size_t part_rows = kPartRows;
    std::optional<kernels::EngineKind> engine;  ///< nullopt: the first that can run
    kernels::EngineOptions engine_options;
    bool times = false;  ///< say how long each step took
};

/// Called with a message for people, on the calling thread.
using Say = std::function<void(const std::string&)>;

/// Whether the result has to be stored in the model.
enum class Storing {
    required,
    if_possible  ///< if this user may; otherwise the lists are only returned
};

/// The neighbors file of the model, with at least settings.k neighbours of each row. Makes it if it
/// is not there, is damaged or has fewer: computes the parts that are not in the parts' directory,
/// joins them, publishes the file, and removes the parts. If it cannot be stored and need not be,
/// it lies in memory; then parts are made only in a directory that the settings name, and stay
/// there. Errors: those of Model::open and make_engine; io; conflict, if another process computes
/// there, for files that gloved did not make, or if another model has taken the directory's name
/// meanwhile; interrupted, once `stop` is true. After an error the parts that are complete stay,
/// and the next call goes on from there.
Result<format::Neighbors> make_neighbors(const format::Model& model, const Settings& settings,
                                         Storing storing, const std::atomic<bool>& stop,
                                         const Say& say);

/// Part `index` of `count`, from 1: every count-th part, so that the parts of all indices together
/// are all.
struct Share {
    std::size_t index = 1;
    std::size_t count = 1;
};

/// Computes the parts of a share that are not in the parts' directory. Errors as make_neighbors.
Status compute_share(const format::Model& model, const Settings& settings, const Share& share,
                     const std::atomic<bool>& stop, const Say& say);

/// The steps' durations in seconds, for --times.
struct Times {
    double engine = 0;
    double computing = 0;
    double writing = 0;
    double joining = 0;
};

/// Joins the parts in the parts' directory, publishes the file, and removes the parts. If it cannot
/// be stored and need not be, it lies in memory, and the parts stay. `times` of the steps before
/// are said with that of joining. Error: io; damaged or mismatch, for a part that is missing or
/// wrong, which the message names with the rows that it should have; conflict, as for
/// make_neighbors; interrupted. After an error all parts stay.
Result<format::Neighbors> join_parts(const format::Model& model, const Settings& settings,
                                     Storing storing, const std::atomic<bool>& stop, const Say& say,
                                     Times times = {});

// The steps of make_neighbors, for processes that divide the parts among them.

/// Opens the parts' directory that the settings name: Parts::open.
Result<Parts> open_parts(const format::Model& model, const Settings& settings, Access access);

/// The model's neighbors file, if it is sound and has at least settings.k neighbours of each row;
/// removes the parts that a killed process left of it. Error: io.
Result<std::optional<format::Neighbors>> find_stored(const format::Model& model,
                                                     const Settings& settings, const Say& say);

/// Returns the error that would keep the neighbors file from being stored. Errors: io; conflict,
/// for a file that gloved did not make.
Status check_can_store(const Settings& settings);

/// The numbers of a share's parts that are not there, ascending. Says which are damaged: those are
/// computed again. Errors: io; conflict, for a file that gloved did not make; interrupted.
Result<std::vector<std::size_t>> list_missing(const Parts& parts, const Share& share,
                                              const std::atomic<bool>& stop, const Say& say);

/// The rows of all these parts.
std::size_t count_rows(const Parts& parts, std::span<const std::size_t> numbers);

/// «N words in S s, R a second».
std::string describe_rate(std::size_t rows, double seconds);

/// Draws the index, in the list of missing parts, of the part to compute next; whatever is not
/// below the size of the list if none is left. Indices are drawn in ascending order.
using DrawIndex = std::function<std::size_t()>;
/// Called now and then, in the pauses between the engine's batches. `rows` counts those of all
/// parts that were drawn before, by any process, and those of this part up to this row.
using OnRows = std::function<void(std::size_t rows)>;

/// What a process has computed.
struct Computed {
    std::size_t rows = 0;
    std::string engine;  ///< a line about the engine; empty if none was needed
    Times times;
};

/// Computes and writes the parts among `missing` that `draw` gives this process. Errors as
/// make_neighbors.
Result<Computed> compute_drawn(const format::Model& model, const Settings& settings,
                               const Parts& parts, std::span<const std::size_t> missing,
                               const DrawIndex& draw, const OnRows& on_rows,
                               const std::atomic<bool>& stop);

/// Writes the `settings.k` words nearest to each query to `output`; a query with a zero vector has
/// none. Errors: those of make_engine; io; conflict; bad_request, for a vector that is not finite;
/// interrupted. After an error the output is unchanged.
Status answer_queries(const format::Model& model, const Settings& settings, const Queries& queries,
                      const ListOutput& output, const std::atomic<bool>& stop, const Say& say);

}  // namespace gloved::neighbors
