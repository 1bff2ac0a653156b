#include "kernels/cuda/distance/device_distance.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "common/error_with.hpp"
#include "kernels/cuda/distance/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::cuda {
namespace {

using distance::DistanceOptions;
using distance::Engine;
using distance::Metric;
using distance::PointsView;
using distance::Rectangle;

/// Bytes of a piece's distances: large enough to fill a device, small enough that the host takes
/// one while the next is computed and copied.
constexpr std::size_t kPieceRows = 2048;
constexpr std::size_t kPieceColumns = 8192;
/// The same if a test chooses the tile.
constexpr std::size_t kSmallPieceRows = 192;
constexpr std::size_t kSmallPieceColumns = 224;
/// Memory left to the driver and to other processes on the device.
constexpr std::size_t kReserveBytes = std::size_t{256} << 20;
/// Rows of points that are padded and copied at a time.
constexpr std::size_t kUploadBytes = std::size_t{32} << 20;
/// Rows of `out` begin where 16 bytes can be stored at once.
constexpr std::size_t kStrideFloats = 4;

std::size_t rounded_up(std::size_t count, std::size_t to) { return (count + to - 1) / to * to; }

/// A piece of a rectangle that is computed and copied to the host.
struct Piece {
    Rectangle rectangle;
    DeviceBuffer<float> device;
    PinnedBuffer<float> host;
    Event done;
    std::size_t stride = 0;         // of its rows
    std::size_t mirror_begin = 0;   // where its mirror image is in both buffers
    std::size_t mirror_stride = 0;  // 0: it has none
};

class DeviceDistance final : public Engine {
  public:
    static Result<std::unique_ptr<Engine>> create(PointsView points, Metric metric,
                                                  const DistanceOptions& options) {
        assert(points.rows > 0 && points.dim > 0);
        std::unique_ptr<DeviceDistance> engine(new DeviceDistance(points, metric, options));
        if (Status made = engine->prepare(points); !made) return made.error();
        return std::unique_ptr<Engine>(std::move(engine));
    }

    ~DeviceDistance() override {
        // A copy that still runs must not lose its memory.
        if (stream_.get() != nullptr) (void)cudaStreamSynchronize(stream_.get());
    }

    Status run(const Rectangle& rectangle, float* out, std::size_t stride, float* mirror,
               std::size_t mirror_stride) override {
        assert(rectangle.first_row + rectangle.rows <= rows_ &&
               rectangle.first_column + rectangle.columns <= rows_);
        if (Status used = use_device(device_); !used) return used;
        if (Status made = make_pieces(); !made) return made;
        const Target target{rectangle, out, stride, mirror, mirror_stride};
        // The next piece is computed and copied while the host takes the one before.
        Piece* under_way = nullptr;
        std::size_t number = 0;
        const auto start = [&](const Rectangle& part, bool mirrored) -> Status {
            Piece& piece = pieces_[number++ % pieces_.size()];
            if (Status done = start_piece(piece, part, mirrored); !done) return done;
            if (under_way != nullptr) {
                if (Status done = take_piece(*under_way, target); !done) return done;
            }
            under_way = &piece;
            return {};
        };
        Status done;
        const std::size_t last_row = rectangle.first_row + rectangle.rows;
        const std::size_t last_column = rectangle.first_column + rectangle.columns;
        for (std::size_t row = rectangle.first_row; row < last_row && done; row += piece_rows_) {
            const std::size_t rows = std::min(piece_rows_, last_row - row);
            std::size_t column = rectangle.first_column;
            if (rectangle.on_diagonal()) {
                done = start({row, rows, row, rows}, false);
                column = row + rows;
            }
            for (; column < last_column && done; column += piece_columns_) {
                const std::size_t columns = std::min(piece_columns_, last_column - column);
                done = start({row, rows, column, columns},
                             rectangle.on_diagonal() || mirror != nullptr);
            }
        }
        if (done && under_way != nullptr) done = take_piece(*under_way, target);
        return done;
    }

    Result<double> time_resident() override {
        if (Status used = use_device(device_); !used) return used.error();
        const std::size_t stride = rounded_up(rows_, kStrideFloats);
        if (resident_.size() == 0) {
            const auto free_bytes = free_device_bytes();
            if (!free_bytes) return free_bytes.error();
            if (*free_bytes < kReserveBytes ||
                rows_ > (*free_bytes - kReserveBytes) / sizeof(float) / stride) {
                return error_with(
                    ErrorCode::unavailable,
                    "{} x {} distances do not fit the {} MB that are free on device {}", rows_,
                    rows_, *free_bytes / 1000000, device_);
            }
            if (Status made = move_into(resident_, resident_.allocate(rows_ * stride)); !made)
                return made.error();
        }
        DistanceTask task = task_for({0, rows_, 0, rows_});
        task.out = resident_.data();
        task.stride = stride;
        if (Status done = begin_.record(stream_); !done) return done.error();
        if (Status done = launch(task); !done) return done.error();
        if (Status done = end_.record(stream_); !done) return done.error();
        if (Status done = end_.synchronize(); !done) return done.error();
        const auto ms = elapsed_ms(begin_, end_);
        if (!ms) return ms.error();
        return static_cast<double>(*ms);
    }

    std::string description() const override { return description_; }

  private:
    /// The output of `run`.
    struct Target {
        Rectangle rectangle;
        float* out;
        std::size_t stride;
        float* mirror;
        std::size_t mirror_stride;
    };

    DeviceDistance(PointsView points, Metric metric, const DistanceOptions& options)
        : rows_(points.rows),
          dim_(points.dim),
          point_stride_(rounded_up(points.dim, kPointPadding)),
          metric_(metric),
          device_(options.device),
          tile_(options.tile),
          piece_rows_(std::min(rows_, tile_ != 0 ? kSmallPieceRows : kPieceRows)),
          piece_columns_(std::min(rows_, tile_ != 0 ? kSmallPieceColumns : kPieceColumns)),
          pool_(options.threads) {}

    Status prepare(PointsView points) {
        if (Status used = use_existing_device(device_); !used) return used;
        cudaDeviceProp properties{};
        Status described =
            check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
        if (!described) return described;
        processors_ = properties.multiProcessorCount;
        description_ = fmt::format("{} (device {})", properties.name, device_);
        const auto free_bytes = free_device_bytes();
        if (!free_bytes) return free_bytes.error();
        if (*free_bytes < kReserveBytes ||
            rows_ > (*free_bytes - kReserveBytes) / sizeof(float) / point_stride_) {
            return error_with(ErrorCode::unavailable,
                              "{} x {} points do not fit the {} MB that are free on device {}; "
                              "free some, or use --engine cpu",
                              rows_, dim_, *free_bytes / 1000000, device_);
        }
        if (Status made = move_into(stream_, Stream::create()); !made) return made;
        for (Event* event : {&begin_, &end_, &pieces_[0].done, &pieces_[1].done}) {
            if (Status made = move_into(*event, Event::create()); !made) return made;
        }
        if (Status made = move_into(points_, points_.allocate(rows_ * point_stride_)); !made)
            return made;
        return upload(points);
    }

    Status upload(PointsView points) {
        const std::size_t step =
            std::clamp<std::size_t>(kUploadBytes / sizeof(float) / point_stride_, 1, rows_);
        auto staging = PinnedBuffer<float>::allocate(step * point_stride_);
        if (!staging) return staging.error();
        std::fill_n(staging->data(), staging->size(), 0.0F);
        for (std::size_t first = 0; first < rows_; first += step) {
            const std::size_t count = std::min(step, rows_ - first);
            pool_.for_ranges(count, 256, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    std::memcpy(staging->data() + i * point_stride_,
                                points.data + (first + i) * dim_, dim_ * sizeof(float));
                }
            });
            Status done = copy_async(points_.data() + first * point_stride_, staging->data(),
                                     count * point_stride_, stream_);
            // Also after an error, since the staging is freed.
            Status over = stream_.synchronize();
            if (!done) return done;
            if (!over) return over;
        }
        return {};
    }

    /// Called by the first run; time_resident does not need it.
    Status make_pieces() {
        if (pieces_[0].device.size() != 0) return {};
        // A piece, and where it has one its mirror image; a square on the diagonal has none.
        const std::size_t out =
            piece_rows_ * rounded_up(std::max(piece_columns_, piece_rows_), kStrideFloats);
        const std::size_t mirror = piece_columns_ * rounded_up(piece_rows_, kStrideFloats);
        for (Piece& piece : pieces_) {
            if (Status made = move_into(piece.host, piece.host.allocate(out + mirror)); !made)
                return made;
            if (Status made = move_into(piece.device, piece.device.allocate(out + mirror)); !made)
                return made;
            // Rows are copied with their padding, which no kernel writes.
            const auto filled =
                cudaMemsetAsync(piece.device.data(), 0, piece.device.bytes(), stream_.get());
            if (Status done = check(filled, "cudaMemsetAsync"); !done) return done;
        }
        return {};
    }

    DistanceTask task_for(const Rectangle& rectangle) const {
        DistanceTask task;
        task.points = points_.data();
        task.rows = rows_;
        task.dim = dim_;
        task.point_stride = point_stride_;
        task.metric = metric_;
        task.rectangle = rectangle;
        task.processors = processors_;
        return task;
    }

    Status launch(const DistanceTask& task) {
        return check(launch_register_tiled(task, tile_, stream_.get()), "cuda");
    }

    /// Enqueues the computation and copy of a piece, whose last content the host has taken.
    Status start_piece(Piece& piece, const Rectangle& rectangle, bool mirrored) {
        piece.rectangle = rectangle;
        piece.stride = rounded_up(rectangle.columns, kStrideFloats);
        DistanceTask task = task_for(rectangle);
        task.out = piece.device.data();
        task.stride = piece.stride;
        std::size_t count = rectangle.rows * piece.stride;
        piece.mirror_begin = 0;
        piece.mirror_stride = 0;
        if (mirrored && rectangle.on_diagonal()) {
            piece.mirror_stride = piece.stride;  // it is its own mirror image
        } else if (mirrored) {
            piece.mirror_begin = count;
            piece.mirror_stride = rounded_up(rectangle.rows, kStrideFloats);
            count += rectangle.columns * piece.mirror_stride;
            task.mirror = piece.device.data() + piece.mirror_begin;
            task.mirror_stride = piece.mirror_stride;
        }
        assert(count <= piece.device.size());
        if (Status done = launch(task); !done) return done;
        if (Status done = copy_async(piece.host.data(), piece.device.data(), count, stream_); !done)
            return done;
        return piece.done.record(stream_);
    }

    /// Waits for a piece and writes it to the output.
    Status take_piece(const Piece& piece, const Target& target) {
        if (Status done = piece.done.synchronize(); !done) return done;
        const Rectangle& part = piece.rectangle;
        const std::size_t row = part.first_row - target.rectangle.first_row;
        const std::size_t column = part.first_column - target.rectangle.first_column;
        const float* const plain = piece.host.data();
        const float* const mirrored = plain + piece.mirror_begin;
        copy_rows(plain, piece.stride, part.rows, part.columns,
                  target.out + row * target.stride + column, target.stride);
        if (piece.mirror_stride != 0 && target.rectangle.on_diagonal()) {
            copy_rows(mirrored, piece.mirror_stride, part.columns, part.rows,
                      target.out + column * target.stride + row, target.stride);
        }
        if (target.mirror == nullptr) return {};
        if (target.rectangle.on_diagonal()) {
            // Symmetric as a whole: what was written above belongs here at the same places.
            copy_rows(plain, piece.stride, part.rows, part.columns,
                      target.mirror + row * target.mirror_stride + column, target.mirror_stride);
        }
        if (piece.mirror_stride != 0) {
            copy_rows(mirrored, piece.mirror_stride, part.columns, part.rows,
                      target.mirror + column * target.mirror_stride + row, target.mirror_stride);
        }
        return {};
    }

    void copy_rows(const float* from, std::size_t from_stride, std::size_t rows,
                   std::size_t columns, float* to, std::size_t to_stride) {
        const std::size_t grain = std::max<std::size_t>(1, (std::size_t{256} << 10) / columns);
        pool_.for_ranges(rows, grain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                std::memcpy(to + i * to_stride, from + i * from_stride, columns * sizeof(float));
        });
    }

    const std::size_t rows_;
    const std::size_t dim_;
    const std::size_t point_stride_;
    const Metric metric_;
    const int device_;
    const unsigned tile_;
    const std::size_t piece_rows_;
    const std::size_t piece_columns_;
    int processors_ = 0;
    std::string description_;
    ThreadPool pool_;

    Stream stream_;
    Event begin_, end_;
    DeviceBuffer<float> points_;    // (rows, point_stride)
    DeviceBuffer<float> resident_;  // (rows, rows), rows padded; time_resident only
    std::array<Piece, 2> pieces_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_device_distance(PointsView points, Metric metric,
                                                     const DistanceOptions& options) {
    return DeviceDistance::create(points, metric, options);
}

}  // namespace gloved::kernels::cuda
