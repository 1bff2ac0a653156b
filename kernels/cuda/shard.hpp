// Some of a model's rows on one device, with all that a pass over them needs. Nothing is allocated
// after creation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/shard_buffers.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/plane.hpp"

namespace gloved::kernels::cuda {

/// What one device can do and is called.
struct DeviceFacts {
    int device = 0;
    std::string name;
    DeviceShape shape;
    std::size_t free_bytes = 0;
};

/// Errors: unavailable when it is older than compute capability 7.5, device.
Result<DeviceFacts> read_device(int device);

/// Whether one shard can have that many rows (kMaxShardRows). Error: unavailable, with what to do.
Status check_shard_rows(std::size_t rows);

/// One vector of a pass and what the pass needs to know of its query. Rows are the model's here.
struct PassQuery {
    const QueryVector* vector = nullptr;
    const Query* query = nullptr;   ///< filter and k; nullptr where only the vector counts
    std::span<const Row> excluded;  ///< sorted, without repetition
    std::size_t k = 0;
    double error = 0;  ///< DeviceQuery::error
};

/// What a shard found for one query of a pass.
struct ShardAnswer {
    std::span<const Found> hits;  ///< in order, local rows; good until the next pass
    DeviceAnswer facts;
    bool overflow = false;
};

/// How a bounded pass estimates.
enum class Estimate { float32, float16, plane };

/// Functions that begin with «start_» enqueue on the shard's stream; `wait` ends what was started.
/// A shard is for one thread at a time. Errors: device; the shard is of no more use then.
class Shard {
  public:
    /// Bytes of device memory that a shard of `rows` rows takes at most.
    static std::size_t bytes_needed(std::size_t rows, std::size_t dim, const DeviceShape& shape,
                                    const Residency& residency) {
        return cuda::device_bytes(ShardSizes(rows, dim, rows, shape, residency));
    }

    /// Allocates; `fill`, `fill_plane` and upload.hpp bring the model in. `timed`: measure what
    /// `device_ms` returns. With a plane, rows.first is a multiple of kGroupRows.
    static Result<std::unique_ptr<Shard>> create(const format::Model& model, RowRange rows,
                                                 const DeviceFacts& device,
                                                 const Residency& residency, bool timed);

    RowRange rows() const { return rows_; }
    int device() const { return device_; }
    const Stream& stream() const { return stream_; }
    std::size_t device_bytes() const { return cuda::device_bytes(sizes_); }
    /// Queries of one float16 pass at most; 0: there is no such pass for this dim on this device.
    std::size_t pass_capacity() const { return sizes_.float16_pass; }

    /// Queries of one pass over the plane at most; 0: there is no such pass.
    std::size_t plane_capacity() const { return sizes_.plane_pass; }
    /// Whether Estimate::plane can serve a query that wants so many rows.
    bool plane_serves(std::size_t k_plus_excluded) const {
        return k_plus_excluded <= kMaxKPlusExcluded &&
               cuda::plane_serves(model_, static_cast<std::uint32_t>(k_plus_excluded), shape_);
    }

    /// Copies norms and ranks and prepares what follows from them. Where the device holds no
    /// vectors, `vectors` is where it reads the model's: an address of its own. Waits.
    Status fill(const format::Model& model, const float* vectors = nullptr);
    /// Copies this shard's groups of the model's plane. Waits.
    Status fill_plane(const planes::Plane& plane);
    bool holds_vectors() const { return sizes_.residency.vectors; }
    bool holds_int8_codes() const { return sizes_.int8_stride > 0; }
    /// Bytes of int8 codes in page-locked host memory.
    std::size_t host_int8_bytes() const { return buffers_.host_int8_codes.bytes(); }
    /// Where row `row` of the model belongs: (stride) floats of device memory.
    float* vector_at(std::size_t row) const {
        return buffers_.vectors.data() + (row - rows_.first) * model_.stride;
    }
    std::uint32_t stride() const { return model_.stride; }

    /// Hits of all queries; float32 and plane take one at a time.
    Status start_bounded(std::span<const PassQuery> queries, Estimate estimate);
    /// Hits of up to plane_capacity queries of all rows, each of which wants
    /// kMaxPlanePassKPlusExcluded at most.
    Status start_plane_pass(std::span<const PassQuery> queries);
    /// The canonical values of a part of a query (launches.hpp), for the rows of `range` that are
    /// here.
    Status start_score(std::span<const PassQuery> vectors, ScorePart part, bool first,
                       RowRange range);
    /// Ends what start_score began: eligible rows keep their scores, others have NaN. Excluded rows
    /// keep theirs.
    Status start_finish(const PassQuery& query, bool divide);
    /// Hits from the scores; answer 0.
    Status start_select();
    /// How many rows stand before `target`; answer 0's `found`.
    Status start_count(const Hit& target);
    /// Scores of the rows of `range` that are here, into scores().
    Status start_copy_scores(RowRange range);

    Status wait();
    ShardAnswer answer(std::size_t query) const;
    std::span<const double> scores(RowRange range) const;
    /// The part of `range` that is here, in local rows.
    RowRange local(RowRange range) const;
    /// From the first start after the last wait to its end, 0 where not timed. After `wait`.
    Result<double> device_ms() const;
    /// Vectors that one start_score takes, and excluded rows that one pass takes.
    std::size_t max_vectors() const { return sizes_.pass; }
    std::size_t max_excluded() const { return sizes_.excluded; }

  private:
    Shard(RowRange rows, const DeviceFacts& device, const ShardSizes& sizes, bool timed)
        : rows_(rows), device_(device.device), shape_(device.shape), sizes_(sizes), timed_(timed) {}
    /// Points `model_` and `work_` to the buffers.
    void describe_model(const format::Model& model);
    Status begin();
    /// What a pass needs of its queries' vectors.
    enum class Sending {
        both,        ///< raw and unit
        travelling,  ///< the same, and nothing where they go to the device with the launches of a
                     ///< float32 pass
        digits,  ///< raw and digits of one query, and nothing where they go with the launches of a
                 ///< plane's
        raw,
    };
    /// Describes the queries and copies them to the device.
    Status send(std::span<const PassQuery> queries, Sending sending);
    Status select(Estimates estimates, std::uint32_t warps);
    DeviceQuery describe(const PassQuery& query, std::vector<std::uint32_t>& excluded) const;

    RowRange rows_;
    int device_ = 0;
    DeviceShape shape_;
    ShardSizes sizes_;
    std::size_t hits_stride_ = kMaxHits;  // of the pass that was started last
    bool timed_ = false;
    bool begun_ = false;  // something was started since the last wait
    bool sent_ = false;   // the input staging buffer was used since the last wait

    Stream stream_;
    Event begin_;
    Event end_;
    ShardBuffers buffers_;

    DeviceModel model_;
    DeviceQueries queries_;  // as last sent
    Workspace work_;
};

}  // namespace gloved::kernels::cuda
