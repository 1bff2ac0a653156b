#include "kernels/cuda/reduce/device_reducer.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "kernels/cuda/reduce/launches.hpp"
#include "kernels/cuda/runtime.hpp"

namespace gloved::kernels::cuda {
namespace {

using reduce::MinMax;
using reduce::Reducer;
using reduce::ReducerOptions;
using reduce::ReduceTimes;

/// Bytes of a copy: large enough that calls take no time beside it, small enough that filling the
/// next one overlaps with it.
constexpr std::size_t kSlotBytes = std::size_t{16} << 20;
constexpr std::size_t kSlots = 3;
/// Memory left to the driver and to other processes on the device.
constexpr std::size_t kReserveBytes = std::size_t{512} << 20;
/// Bytes that the original's way lays out at a time.
constexpr std::size_t kLandingBytes = std::size_t{256} << 20;
/// Room for values where no count was announced.
constexpr std::size_t kUnknownBytes = std::size_t{256} << 20;

enum class Way { one_pass, original };

/// Two events around work of one stream, whose time is added up when it is over.
class Stopwatch {
  public:
    static Result<Stopwatch> create() {
        Stopwatch watch;
        for (Event* event : {&watch.begin_, &watch.end_}) {
            if (Status made = move_into(*event, Event::create()); !made) return made.error();
        }
        return watch;
    }
    Status start(const Stream& stream) { return begin_.record(stream); }
    Status stop(const Stream& stream) {
        running_ = true;
        return end_.record(stream);
    }
    /// Waits for the work between start and stop, and adds its time to `sum_ms`; nothing where that
    /// was done already.
    Status collect(double& sum_ms) {
        if (!running_) return {};
        if (Status done = end_.synchronize(); !done) return done;
        const auto ms = elapsed_ms(begin_, end_);
        if (!ms) return ms.error();
        sum_ms += static_cast<double>(*ms);
        running_ = false;
        return {};
    }

  private:
    Event begin_, end_;
    bool running_ = false;
};

/// Page-locked memory from which numbers are copied.
template <class T>
struct Slot {
    PinnedBuffer<T> buffer;
    Stopwatch copy;
};

template <class T>
class DeviceReducer final : public Reducer<T> {
  public:
    static Result<std::unique_ptr<Reducer<T>>> create(Way way, const ReducerOptions& options,
                                                      std::size_t most_bytes) {
        assert(options.width > 0);
        std::unique_ptr<DeviceReducer> reducer(
            new DeviceReducer(way, options.width, options.device));
        if (Status made = reducer->allocate(options.count, most_bytes); !made) return made.error();
        return std::unique_ptr<Reducer<T>>(std::move(reducer));
    }

    ~DeviceReducer() override {
        // A copy that still runs must not lose its memory.
        if (stream_.get() != nullptr) (void)cudaStreamSynchronize(stream_.get());
    }

    Status add(std::span<const T> values) override {
        assert(values.size() % width_ == 0 && !finished_);
        if (Status used = use_device(device_); !used) return used;
        while (!values.empty()) {
            // Not before there is more: what was announced stays as it is, for time_again.
            if (resident_ == capacity_) {
                if (Status done = reduce_resident(); !done) return done;
                resident_ = 0;
            }
            Slot<T>& slot = slots_[next_slot_];
            next_slot_ = (next_slot_ + 1) % kSlots;
            if (Status done = slot.copy.collect(times_.transfer_ms); !done) return done;
            const std::size_t count =
                std::min({values.size(), slot.buffer.size(), landing_.size() - landed_});
            std::memcpy(slot.buffer.data(), values.data(), count * sizeof(T));
            if (Status done = slot.copy.start(stream_); !done) return done;
            Status copied =
                copy_async(landing_.data() + landed_, slot.buffer.data(), count, stream_);
            if (!copied) return copied;
            if (Status done = slot.copy.stop(stream_); !done) return done;
            landed_ += count;
            values = values.subspan(count);
            if (landed_ < landing_.size()) continue;
            if (Status done = settle(); !done) return done;
        }
        return {};
    }

    Result<MinMax<T>> finish() override {
        assert(!finished_);
        finished_ = true;
        if (Status used = use_device(device_); !used) return used.error();
        if (landed_ > 0) {
            if (Status done = settle(); !done) return done.error();
        }
        if (resident_ > 0) {
            if (Status done = reduce_resident(); !done) return done.error();
        }
        for (Slot<T>& slot : slots_) {
            if (Status done = slot.copy.collect(times_.transfer_ms); !done) return done.error();
        }
        if (reductions_ == 0) return MinMax<T>(width_);
        std::vector<T> low(width_);
        std::vector<T> high(width_);
        if (Status done = copy_async(low.data(), result_.low, width_, stream_); !done)
            return done.error();
        if (Status done = copy_async(high.data(), result_.high, width_, stream_); !done)
            return done.error();
        if (Status done = stream_.synchronize(); !done) return done.error();
        return MinMax<T>(low, high);
    }

    Result<double> time_again() override {
        if (!finished_ || reductions_ != 1) {
            return Error{ErrorCode::unavailable,
                         "the device did not keep all values: nothing is left to measure"};
        }
        if (Status used = use_device(device_); !used) return used.error();
        double ms = 0;
        if (Status done = time_kernels(true, ms); !done) return done.error();
        return ms;
    }

    ReduceTimes times() const override { return times_; }

  private:
    DeviceReducer(Way way, std::size_t width, int device)
        : way_(way), width_(width), device_(device) {}

    /// Matrices that the device holds at a time.
    struct Room {
        std::size_t matrices = 0;
        std::size_t landing_matrices = 0;  // of them, in `landing_`
    };

    Status allocate(std::uint64_t announced, std::size_t most_bytes) {
        if (Status used = use_existing_device(device_); !used) return used;
        const auto processors = processors_of(device_);
        if (!processors) return processors.error();
        const auto free_bytes = free_device_bytes();
        if (!free_bytes) return free_bytes.error();
        if (Status made = move_into(stream_, Stream::create()); !made) return made;
        for (Stopwatch* watch : {&watch_, &layout_}) {
            if (Status made = move_into(*watch, Stopwatch::create()); !made) return made;
        }
        const auto room = plan_room(announced, most_bytes, *free_bytes, *processors);
        if (!room) return room.error();
        capacity_ = room->matrices;
        plan_ = plan_reduce<T>(width_, capacity_ * width_, *processors);
        return allocate_buffers(room->landing_matrices * width_);
    }

    /// As many of the announced matrices as fit beside results and intermediate results. Error:
    /// unavailable, if none fits.
    Result<Room> plan_room(std::uint64_t announced, std::size_t most_bytes, std::size_t free_bytes,
                           int processors) const {
        const std::size_t matrix_bytes = width_ * sizeof(T);
        std::size_t room = free_bytes > kReserveBytes ? free_bytes - kReserveBytes : 0;
        const std::size_t landing_bytes =
            way_ == Way::original ? std::max(std::min(kLandingBytes, most_bytes / 4), matrix_bytes)
                                  : 0;
        const std::size_t beside = landing_bytes + partial_bytes_bound(processors);
        room = room > beside ? room - beside : 0;
        if (way_ == Way::original)
            room -= room / 256;  // for what is gathered: four numbers for each 2,048
        room = std::min(room, most_bytes) / matrix_bytes;
        if (room == 0) {
            return error_with(ErrorCode::unavailable,
                              "device {} has {} MB free: too little for a matrix of {} numbers; "
                              "free some, or use --engine cpu",
                              device_, free_bytes / 1000000, width_);
        }
        const std::size_t wanted = announced != 0
                                       ? static_cast<std::size_t>(announced)
                                       : std::max<std::size_t>(kUnknownBytes / matrix_bytes, 1);
        const std::size_t matrices = std::min(room, wanted);
        if (way_ == Way::one_pass) return Room{matrices, matrices};
        // Values are laid out as often as the landing is full, and reduced after a whole number of
        // times.
        const std::size_t landing =
            std::clamp<std::size_t>(landing_bytes / matrix_bytes, 1, matrices);
        const std::size_t times =
            matrices < wanted ? matrices / landing : (matrices + landing - 1) / landing;
        return Room{landing * times, landing};
    }

    /// Allocates what `capacity_` and `plan_` need, and `landing_` for that many numbers.
    Status allocate_buffers(std::size_t landing_numbers) {
        const auto take = [](DeviceBuffer<T>& buffer, std::size_t count) {
            return move_into(buffer, DeviceBuffer<T>::allocate(count));
        };
        if (Status taken = take(landing_, landing_numbers); !taken) return taken;
        std::size_t scratch = 2 * plan_.partial_rows * width_;
        if (way_ == Way::original) {
            if (Status taken = take(laid_out_, capacity_ * width_); !taken) return taken;
            scratch = original_scratch(capacity_, width_);
        }
        if (Status taken = take(scratch_, scratch); !taken) return taken;
        if (Status taken = take(results_, 2 * width_); !taken) return taken;
        result_.low = results_.data();
        result_.high = results_.data() + width_;
        if (way_ == Way::one_pass) {
            result_.partial_low = scratch_.data();
            result_.partial_high = scratch_.data() + plan_.partial_rows * width_;
        }
        const std::size_t slot_numbers =
            std::min(std::max<std::size_t>(kSlotBytes / sizeof(T), 1), landing_.size());
        for (Slot<T>& slot : slots_) {
            Status made = move_into(slot.buffer, PinnedBuffer<T>::allocate(slot_numbers));
            if (made) made = move_into(slot.copy, Stopwatch::create());
            if (!made) return made;
        }
        return {};
    }

    /// Device memory beside values, whatever their count.
    std::size_t partial_bytes_bound(int processors) const {
        const std::size_t most = std::numeric_limits<std::size_t>::max() / 2;
        return (2 * plan_reduce<T>(width_, most, processors).partial_rows + 2) * width_ * sizeof(T);
    }

    /// Makes the landed numbers resident.
    Status settle() {
        const std::size_t matrices = landed_ / width_;
        if (way_ == Way::original) {
            if (Status done = layout_.collect(times_.transfer_ms); !done) return done;
            if (Status done = layout_.start(stream_); !done) return done;
            const cudaError_t launched =
                launch_lay_out(landing_.data(), matrices, width_, resident_, capacity_,
                               laid_out_.data(), stream_.get());
            if (Status done = check(launched, "launch of lay_out"); !done) return done;
            if (Status done = layout_.stop(stream_); !done) return done;
        }
        resident_ += matrices;
        landed_ = 0;
        return {};
    }

    Status reduce_resident() {
        if (Status done = time_kernels(reductions_ == 0, times_.compute_ms); !done) return done;
        ++reductions_;
        return layout_.collect(times_.transfer_ms);
    }

    /// Reduces the resident matrices into the result and waits; adds the time to `sum_ms`.
    Status time_kernels(bool first, double& sum_ms) {
        if (Status done = watch_.start(stream_); !done) return done;
        const cudaError_t launched =
            way_ == Way::original ? launch_original(laid_out_.data(), resident_, width_, capacity_,
                                                    first, scratch_.data(), result_, stream_.get())
                                  : launch_one_pass(plan_, landing_.data(), resident_ * width_,
                                                    first, result_, stream_.get());
        if (Status done = check(launched, "launch of the reduction"); !done) return done;
        if (Status done = watch_.stop(stream_); !done) return done;
        return watch_.collect(sum_ms);
    }

    const Way way_;
    const std::size_t width_;
    const int device_;
    ReducePlan plan_;
    std::size_t capacity_ = 0;    // matrices that can be resident
    std::size_t landed_ = 0;      // numbers copied into `landing_` that are not resident yet
    std::size_t resident_ = 0;    // matrices
    std::size_t reductions_ = 0;  // of what was resident
    bool finished_ = false;
    ReduceTimes times_;

    // Before the memory that its work uses, so that it goes after it.
    Stream stream_;
    DeviceBuffer<T> landing_;   // where copies go: one_pass reduces it there
    DeviceBuffer<T> laid_out_;  // original only: (width, capacity)
    DeviceBuffer<T> scratch_;
    DeviceBuffer<T> results_;
    ReduceResult<T> result_;
    std::array<Slot<T>, kSlots> slots_;
    std::size_t next_slot_ = 0;
    Stopwatch watch_;
    Stopwatch layout_;
};

}  // namespace

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_device_reducer(const ReducerOptions& options,
                                                        std::size_t most_bytes) {
    return DeviceReducer<T>::create(Way::one_pass, options, most_bytes);
}

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_original_reducer(const ReducerOptions& options,
                                                          std::size_t most_bytes) {
    return DeviceReducer<T>::create(Way::original, options, most_bytes);
}

template Result<std::unique_ptr<Reducer<float>>> make_device_reducer<float>(const ReducerOptions&,
                                                                            std::size_t);
template Result<std::unique_ptr<Reducer<double>>> make_device_reducer<double>(const ReducerOptions&,
                                                                              std::size_t);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_device_reducer<std::int32_t>(
    const ReducerOptions&, std::size_t);
template Result<std::unique_ptr<Reducer<float>>> make_original_reducer<float>(const ReducerOptions&,
                                                                              std::size_t);
template Result<std::unique_ptr<Reducer<double>>> make_original_reducer<double>(
    const ReducerOptions&, std::size_t);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_original_reducer<std::int32_t>(
    const ReducerOptions&, std::size_t);

}  // namespace gloved::kernels::cuda
