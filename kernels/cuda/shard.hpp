// Shard: consecutive rows of a model on one GPU, with their memory, and the functions that run the
// passes over them. Nothing is allocated after creation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/shard_memory.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/row_lists.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {

/// A device's name, properties and free memory.
struct DeviceFacts {
    int device = 0;  ///< number of the device
    std::string name;
    DeviceShape shape;
    std::size_t free_bytes = 0;
};

/// Reads the facts about a device and loads the kernels onto it. Errors: unavailable, if it is
/// older than compute capability 7.5 or this build has no code for it; device.
Result<DeviceFacts> read_device(int device);

/// Checks that a shard can have that many rows, at most kMaxShardRows. Error: unavailable, with the
/// remedy.
Status check_shard_rows(std::size_t rows);

/// A vector of a pass and the query to which it belongs. Row numbers are the model's.
struct PassQuery {
    const QueryVector* vector = nullptr;
    const Query* query = nullptr;   ///< its filter is used; nullptr if only the vector is needed
    RowRange rows;                  ///< in place of those of the filter
    std::span<const Row> excluded;  ///< sorted, without repetition, unless for start_code_pass
    std::size_t k = 0;              ///< number of hits to find
};

/// A query of start_score. The vectors of a 3CosMul query are the positives, then the negatives.
struct ScoreQuery {
    PassQuery query;  ///< with the first vector
    std::vector<const QueryVector*> vectors;
    std::size_t positives = 0;
    bool is_product = false;
    Hit target;  ///< for ScoreResult::counts, with a row of the model
};

/// What a shard found for one query of a pass.
struct ShardAnswer {
    std::span<const Found> hits;  ///< best first, with local rows; valid until the next pass
    DeviceAnswer facts;
    bool overflow = false;  ///< a list was too short: there are no hits, use another pass
};

/// A shard and its passes. Functions that begin with «start_» enqueue work on the shard's stream
/// and return; `wait` waits for it, and `answer` then has the result. One thread at a time may use
/// a shard. All errors are `device`; the shard cannot be used afterwards.
class Shard {
  public:
    /// Maximum number of bytes of device memory that a shard of `rows` rows needs.
    static std::size_t bytes_needed(std::size_t rows, std::size_t dim, const DeviceShape& shape,
                                    const Residency& residency) {
        // Rows are either uncovered or have a place in code tiles; how many, is not known yet.
        return cuda::device_bytes(ShardSizes(rows, dim, 0, shape, residency)) +
               rows * sizeof(std::uint32_t);
    }

    /// Allocates the memory for `rows` of `model`; `fill`, `fill_lists`, `fill_plane` and
    /// upload_vectors (upload.hpp) fill them. `timed`: whether to measure device_ms. With a plane,
    /// rows.first must be a multiple of the plane's kUnitRows. `writers`, or nullptr, write the
    /// queries' vectors for the device. Shards may share them.
    static Result<std::unique_ptr<Shard>> create(const format::Model& model, RowRange rows,
                                                 const DeviceFacts& device,
                                                 const Residency& residency, bool timed,
                                                 ThreadPool* writers = nullptr);

    RowRange rows() const { return rows_; }
    int device() const { return device_; }
    const Stream& stream() const { return stream_; }
    std::size_t device_bytes() const { return arena_.device_bytes(); }
    /// Maximum number of queries of a pass over the plane; 0: there is none.
    std::size_t plane_capacity() const { return sizes_.plane_pass; }
    /// Maximum number of queries of a pass over code tiles; 0: there is none.
    std::size_t code_capacity() const { return sizes_.code_pass; }
    /// Whether start_plane_query can serve a query whose k and number of excluded rows have this
    /// sum.
    bool plane_serves(std::size_t k_plus_excluded) const {
        return k_plus_excluded <= kMaxKPlusExcluded &&
               cuda::plane_serves(model_, static_cast<std::uint32_t>(k_plus_excluded), shape_);
    }
    /// Whether start_plane_pass can serve such a query.
    bool plane_pass_serves(std::size_t k_plus_excluded) const {
        return k_plus_excluded <= kMaxBatchKPlusExcluded &&
               cuda::plane_pass_serves(model_, static_cast<std::uint32_t>(k_plus_excluded), shape_);
    }

    /// Copies norms and ranks to the device, computes int8 codes or code tiles there, and waits.
    /// Call it after upload_vectors. `vectors`: if the vectors stay on the host, the address at
    /// which the device sees the model's.
    Status fill(const format::Model& model, const float* vectors = nullptr);
    /// Copies this shard's groups of the model's plane to the device, and waits. The copy is faster
    /// if they are page-locked.
    Status fill_plane(const planes::Plane& plane);
    /// Copies to the device which lists each row is in, in place of the lists before, and waits.
    /// Call it after `fill`, and while no query runs.
    Status fill_lists(const RowLists& lists);
    /// The number of rows of the shard in the shortest of the lists `within` whose rows the device
    /// has; nullopt if there is none.
    std::optional<std::size_t> listed(ListMask within) const;
    bool holds_vectors() const { return sizes_.residency.vectors; }
    bool holds_int8_codes() const { return sizes_.int8_stride > 0; }
    /// Bytes of int8 codes in page-locked host memory.
    std::size_t host_int8_bytes() const { return sizes_.rows * sizes_.int8_stride; }
    /// Where in device memory the vector of the model's row `row` is: (stride) floats.
    float* vector_at(std::size_t row) const {
        return memory_.vectors + (row - rows_.first) * model_.stride;
    }
    std::uint32_t stride() const { return model_.stride; }

    /// Finds the hits of one query by the plane, if plane_serves.
    Status start_plane_query(const PassQuery& query);
    /// Finds the hits of up to plane_capacity queries that plane_pass_serves. For each, k is at
    /// most kMaxBatchHits. The next pass may start in another slot (below kSlots) before this one
    /// is waited for.
    Status start_plane_pass(std::span<const PassQuery> queries, std::size_t slot = 0);
    /// Does the same for up to code_capacity queries; k plus the number of excluded rows is at most
    /// kMaxBatchKPlusExcluded.
    Status start_code_pass(std::span<const PassQuery> queries, std::size_t slot = 0);
    /// Whether start_few_rows can serve.
    bool serves_few_rows() const { return model_.rows_by_rank != nullptr; }
    /// Does the same for queries whose filters leave kMaxFewRows rows or fewer.
    Status start_few_rows(std::span<const PassQuery> queries, std::size_t slot);
    /// Scores every row canonically (launch_score), for up to kMaxScoredQueries queries with up to
    /// kMaxScoreVectors vectors in all. With ScoreResult::maxima, k is at most kMaxHits, and k plus
    /// the number of excluded rows at most kMaxKPlusExcluded; answer(q) then has the hits. With
    /// counts, answer(q).facts.found is the number of rows before the target. With scores, there is
    /// one query, of any number of vectors and without excluded rows, for scores().
    /// `few`: ScorePass::few.
    Status start_score(std::span<const ScoreQuery> queries, ScoreResult result, bool few = false);

    /// Waits for all that was started.
    Status wait();
    /// Waits for the pass that was started in that slot.
    Status wait(std::size_t slot);
    /// What the pass found for query number `query`. Call it after `wait`.
    ShardAnswer answer(std::size_t query, std::size_t slot = 0) const;
    /// The scores of this shard's rows in `range`, rows of the model, in the only query's range.
    std::span<const double> scores(RowRange range) const;
    /// The rows that `range`, rows of the model, shares with this shard, as local rows.
    RowRange local(RowRange range) const;
    /// Milliseconds on the GPU from the first start_ function to the end of the last; 0 unless
    /// timed. Call it after `wait`.
    Result<double> device_ms(std::size_t slot = 0) const;

  private:
    Shard(RowRange rows, const DeviceFacts& device, const ShardSizes& sizes, bool timed,
          ThreadPool* writers)
        : rows_(rows),
          device_(device.device),
          shape_(device.shape),
          sizes_(sizes),
          timed_(timed),
          writers_(writers) {}
    Status build_code_tiles();
    /// Ends the start of a pass in a slot.
    Status mark_end(std::size_t slot) { return slots_[slot].end.record(stream_); }
    /// The workspace of a pass in a slot.
    Workspace work_of(std::size_t slot) const;
    /// Marks the beginning of a pass, unless it has begun.
    Status begin(std::size_t slot = 0);
    /// What a pass needs of its queries on the device.
    enum class Inputs {
        raw,
        raw_or_row,   ///< raw, but no vector where it is a row that the device holds
        plane_query,  ///< raw and digits, unless plane_query_fits_parameters
        plane_pass,   ///< raw, unless plane_pass_fits_parameters
    };
    /// Describes the queries and copies them to the device. What is started on `stream_` then waits
    /// for the copy.
    Status send(std::span<const PassQuery> queries, Inputs inputs, std::size_t slot = 0);
    void summarize(std::span<const DeviceQuery> described);
    /// Chooses the filters whose rows a pass over code tiles marks.
    void mark_filters(std::span<DeviceQuery> described);
    Status send_in_pieces(std::span<const PassQuery> queries,
                          std::span<const DeviceQuery> described, const InputLayout& layout,
                          std::size_t slot, const Stream& by);
    /// The local row that the vector is, or kNotARow if the device does not hold it.
    std::uint32_t held_row(const QueryVector& vector) const;
    /// A list in DeviceModel::list_rows.
    struct DeviceList {
        std::uint32_t begin = 0;
        std::uint32_t count = 0;
    };
    std::optional<DeviceList> shortest_list(ListMask within) const;
    /// Whether a pass in another slot is under way.
    bool runs_beside(std::size_t slot) const;
    /// Starts a launch of start_score.
    Status score(std::span<const PassQuery> vectors, const ScorePass& pass);
    /// Describes a query, and appends its excluded rows of this shard to the `count` at `excluded`.
    DeviceQuery describe(const PassQuery& query, std::uint32_t* excluded, std::size_t& count) const;

    RowRange rows_;
    int device_ = 0;
    DeviceShape shape_;
    ShardSizes sizes_;
    bool timed_ = false;
    ThreadPool* writers_ = nullptr;

    Stream stream_;
    Stream copies_;  // of queries, while a pass runs
    /// A slot and its last pass.
    struct SlotState {
        Event begin;
        Event end;
        Event copied;
        std::size_t hits_stride = kMaxHits;  // room for hits per query
        bool begun = false;                  // something was started since the last wait
        bool sent = false;  // the input staging buffer was used since the last wait
    };
    std::array<SlotState, kSlots> slots_;
    Arena arena_{Arena::Mode::allocates};
    ShardMemory memory_;
    std::vector<std::optional<DeviceList>> lists_;  // nullopt: too long

    DeviceModel& model_ = memory_.model;
    const Workspace& work_ = memory_.work;
    DeviceQueries queries_;  // as last sent
};

}  // namespace gloved::kernels::cuda
