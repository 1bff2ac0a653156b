// A shard: consecutive rows of a model on one device, with the buffers and launches of every pass
// over them. Nothing is allocated after creation.
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

/// A device's name, properties and free memory.
struct DeviceFacts {
    int device = 0;
    std::string name;
    DeviceShape shape;
    std::size_t free_bytes = 0;
};

/// Reads a device and loads the kernels onto it. Errors: unavailable when it is older than compute
/// capability 7.5 or this build has no code for it; device.
Result<DeviceFacts> read_device(int device);

/// Checks that one shard can have that many rows (kMaxShardRows). Error: unavailable, with advice.
Status check_shard_rows(std::size_t rows);

/// One vector of a pass and its query. Row numbers are the model's.
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

/// What a bounded pass estimates rows by.
enum class Estimate { float32, float16, plane };

/// Functions that begin with «start_» enqueue on the shard's stream; `wait` waits for them. One
/// thread at a time may use a shard. Errors: device; the shard cannot be used afterwards.
class Shard {
  public:
    /// Bytes of device memory that a shard of `rows` rows takes at most.
    static std::size_t bytes_needed(std::size_t rows, std::size_t dim, const DeviceShape& shape,
                                    const Residency& residency) {
        return cuda::device_bytes(ShardSizes(rows, dim, rows, shape, residency));
    }

    /// Allocates the buffers; `fill`, `fill_plane` and upload_vectors fill them. `timed`: measure
    /// device_ms. With a plane, rows.first is a multiple of kGroupRows.
    static Result<std::unique_ptr<Shard>> create(const format::Model& model, RowRange rows,
                                                 const DeviceFacts& device,
                                                 const Residency& residency, bool timed);

    RowRange rows() const { return rows_; }
    int device() const { return device_; }
    const Stream& stream() const { return stream_; }
    std::size_t device_bytes() const { return cuda::device_bytes(sizes_); }
    /// Most queries of one float16 pass; 0: there is no such pass for this dim on this device.
    std::size_t pass_capacity() const { return sizes_.float16_pass; }

    /// Most queries of one pass over the plane; 0: there is no such pass.
    std::size_t plane_capacity() const { return sizes_.plane_pass; }
    /// Whether Estimate::plane can serve a query with that many hits and excluded rows.
    bool plane_serves(std::size_t k_plus_excluded) const {
        return k_plus_excluded <= kMaxKPlusExcluded &&
               cuda::plane_serves(model_, static_cast<std::uint32_t>(k_plus_excluded), shape_);
    }

    /// Copies norms and ranks, and computes inverse norms and int8 codes from them and the vectors.
    /// `vectors`: where vectors are on the host, the device's address of the model's. Waits.
    Status fill(const format::Model& model, const float* vectors = nullptr);
    /// Copies this shard's groups of the model's plane. Waits.
    Status fill_plane(const planes::Plane& plane);
    bool holds_vectors() const { return sizes_.residency.vectors; }
    bool holds_int8_codes() const { return sizes_.int8_stride > 0; }
    /// Bytes of int8 codes in page-locked host memory.
    std::size_t host_int8_bytes() const { return buffers_.host_int8_codes.bytes(); }
    /// Device address of row `row` of the model: (stride) floats.
    float* vector_at(std::size_t row) const {
        return buffers_.vectors.data() + (row - rows_.first) * model_.stride;
    }
    std::uint32_t stride() const { return model_.stride; }

    /// Finds hits of all queries; float32 and plane take one query.
    Status start_bounded(std::span<const PassQuery> queries, Estimate estimate);
    /// Finds hits of up to plane_capacity queries over all rows, with k and excluded rows of at
    /// most kMaxPlanePassKPlusExcluded together.
    Status start_plane_pass(std::span<const PassQuery> queries);
    /// Computes the canonical values of a part of a query (launch_score) for this shard's rows in
    /// `range`.
    Status start_score(std::span<const PassQuery> vectors, ScorePart part, bool first,
                       RowRange range);
    /// Ends what start_score began: eligible and excluded rows have scores, others NaN.
    Status start_finish(const PassQuery& query, bool divide);
    /// Finds hits from the scores: answer(0).
    Status start_select();
    /// Counts the rows that come before `target`: answer(0).facts.found.
    Status start_count(const Hit& target);
    /// Copies the scores of this shard's rows in `range` to scores().
    Status start_copy_scores(RowRange range);

    Status wait();
    ShardAnswer answer(std::size_t query) const;
    std::span<const double> scores(RowRange range) const;
    /// This shard's rows in `range`, as local rows.
    RowRange local(RowRange range) const;
    /// Milliseconds from the first start after the last wait to the end; 0 where not timed. To be
    /// called after `wait`.
    Result<double> device_ms() const;
    /// Most vectors of one start_score.
    std::size_t max_vectors() const { return sizes_.pass; }

  private:
    Shard(RowRange rows, const DeviceFacts& device, const ShardSizes& sizes, bool timed)
        : rows_(rows), device_(device.device), shape_(device.shape), sizes_(sizes), timed_(timed) {}
    /// Points `model_` and `work_` to the buffers.
    void describe_model(const format::Model& model);
    Status begin();
    /// Which vectors of its queries a pass needs on the device.
    enum class Inputs {
        raw,
        raw_and_unit,
        scan,        ///< raw and unit, unless launch_scan passes them as parameters
        plane_scan,  ///< raw and digits of one query, unless launch_plane_scan passes them as
                     ///< parameters
    };
    /// Describes the queries and copies them to the device.
    Status send(std::span<const PassQuery> queries, Inputs inputs);
    Status select(SelectSource source, std::uint32_t warps);
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
