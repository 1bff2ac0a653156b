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
/// Room for values where no count was announced.
constexpr std::size_t kUnknownBytes = std::size_t{256} << 20;

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
    static Result<std::unique_ptr<Reducer<T>>> create(const ReducerOptions& options,
                                                      std::size_t most_bytes) {
        assert(options.width > 0);
        std::unique_ptr<DeviceReducer> reducer(new DeviceReducer(options.width, options.device));
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
            if (resident_ == values_.size()) {
                if (Status done = reduce_resident(); !done) return done;
                resident_ = 0;
            }
            Slot<T>& slot = slots_[next_slot_];
            next_slot_ = (next_slot_ + 1) % kSlots;
            if (Status done = slot.copy.collect(times_.transfer_ms); !done) return done;
            const std::size_t count =
                std::min({values.size(), slot.buffer.size(), values_.size() - resident_});
            std::memcpy(slot.buffer.data(), values.data(), count * sizeof(T));
            if (Status done = slot.copy.start(stream_); !done) return done;
            Status copied =
                copy_async(values_.data() + resident_, slot.buffer.data(), count, stream_);
            if (!copied) return copied;
            if (Status done = slot.copy.stop(stream_); !done) return done;
            resident_ += count;
            values = values.subspan(count);
        }
        return {};
    }

    Result<MinMax<T>> finish() override {
        assert(!finished_);
        finished_ = true;
        if (Status used = use_device(device_); !used) return used.error();
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
    DeviceReducer(std::size_t width, int device) : width_(width), device_(device) {}

    Status allocate(std::uint64_t announced, std::size_t most_bytes) {
        if (Status used = use_existing_device(device_); !used) return used;
        const auto processors = processors_of(device_);
        if (!processors) return processors.error();
        const auto free_bytes = free_device_bytes();
        if (!free_bytes) return free_bytes.error();
        if (Status made = move_into(stream_, Stream::create()); !made) return made;
        if (Status made = move_into(watch_, Stopwatch::create()); !made) return made;
        const auto matrices = choose_room(announced, most_bytes, *free_bytes, *processors);
        if (!matrices) return matrices.error();
        plan_ = plan_reduce<T>(width_, *matrices * width_, *processors);
        return allocate_buffers(*matrices * width_);
    }

    /// As many of the announced matrices as fit beside results and intermediate results. Error:
    /// unavailable, if none fits.
    Result<std::size_t> choose_room(std::uint64_t announced, std::size_t most_bytes,
                                    std::size_t free_bytes, int processors) const {
        const std::size_t matrix_bytes = width_ * sizeof(T);
        std::size_t room = free_bytes > kReserveBytes ? free_bytes - kReserveBytes : 0;
        const std::size_t beside = partial_bytes_bound(processors);
        room = room > beside ? room - beside : 0;
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
        return std::min(room, wanted);
    }

    /// Allocates `values_` for that many numbers, and what `plan_` needs.
    Status allocate_buffers(std::size_t numbers) {
        const auto take = [](DeviceBuffer<T>& buffer, std::size_t count) {
            return move_into(buffer, DeviceBuffer<T>::allocate(count));
        };
        const std::size_t partial = plan_.partial_rows * width_;
        if (Status taken = take(values_, numbers); !taken) return taken;
        if (Status taken = take(partial_, 2 * partial); !taken) return taken;
        if (Status taken = take(results_, 2 * width_); !taken) return taken;
        result_.low = results_.data();
        result_.high = results_.data() + width_;
        result_.partial_low = partial_.data();
        result_.partial_high = partial_.data() + partial;
        const std::size_t slot_numbers =
            std::min(std::max<std::size_t>(kSlotBytes / sizeof(T), 1), values_.size());
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

    Status reduce_resident() {
        if (Status done = time_kernels(reductions_ == 0, times_.compute_ms); !done) return done;
        ++reductions_;
        return {};
    }

    /// Reduces the resident numbers into the result and waits; adds the time to `sum_ms`.
    Status time_kernels(bool first, double& sum_ms) {
        if (Status done = watch_.start(stream_); !done) return done;
        const cudaError_t launched =
            launch_one_pass(plan_, values_.data(), resident_, first, result_, stream_.get());
        if (Status done = check(launched, "launch of the reduction"); !done) return done;
        if (Status done = watch_.stop(stream_); !done) return done;
        return watch_.collect(sum_ms);
    }

    const std::size_t width_;
    const int device_;
    ReducePlan plan_;
    std::size_t resident_ = 0;    // numbers copied into `values_`
    std::size_t reductions_ = 0;  // of what was resident
    bool finished_ = false;
    ReduceTimes times_;

    // Before the memory that its work uses, so that it goes after it.
    Stream stream_;
    DeviceBuffer<T> values_;
    DeviceBuffer<T> partial_;
    DeviceBuffer<T> results_;
    ReduceResult<T> result_;
    std::array<Slot<T>, kSlots> slots_;
    std::size_t next_slot_ = 0;
    Stopwatch watch_;
};

}  // namespace

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_device_reducer(const ReducerOptions& options,
                                                        std::size_t most_bytes) {
    return DeviceReducer<T>::create(options, most_bytes);
}

template Result<std::unique_ptr<Reducer<float>>> make_device_reducer<float>(const ReducerOptions&,
                                                                            std::size_t);
template Result<std::unique_ptr<Reducer<double>>> make_device_reducer<double>(const ReducerOptions&,
                                                                              std::size_t);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_device_reducer<std::int32_t>(
    const ReducerOptions&, std::size_t);

}  // namespace gloved::kernels::cuda
