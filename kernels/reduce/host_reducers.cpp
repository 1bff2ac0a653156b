#include "kernels/reduce/host_reducers.hpp"

#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "common/elapsed.hpp"
#include "kernels/reduce/min_max.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::reduce {
namespace {

/// Adds the clock, and the kept values, to a reduction. `Reduction` has add(values) and result().
template <class T, class Reduction>
class HostReducer final : public Reducer<T> {
  public:
    explicit HostReducer(const ReducerOptions& options) : options_(options), reduction_(options) {
        if (options.keep) kept_.reserve(options.count * options.width);
    }

    Status add(std::span<const T> values) override {
        assert(values.size() % options_.width == 0);
        times_.compute_ms += time_ms([&] { reduction_.add(values); });
        if (options_.keep) kept_.insert(kept_.end(), values.begin(), values.end());
        return {};
    }

    Result<MinMax<T>> finish() override { return reduction_.result(); }

    Result<double> time_again() override {
        if (!options_.keep) return Error{ErrorCode::unavailable, "the values are not kept"};
        Reduction again(options_);
        return time_ms([&] { again.add(kept_); });
    }

    ReduceTimes times() const override { return times_; }

  private:
    template <class Work>
    static double time_ms(Work&& work) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        return ms_since(begin);
    }

    ReducerOptions options_;
    Reduction reduction_;
    std::vector<T> kept_;
    ReduceTimes times_;
};

template <class T>
class Threads {
  public:
    explicit Threads(const ReducerOptions& options) : pool_(options.threads), all_(options.width) {}
    void add(std::span<const T> values) { all_.add(min_max(pool_, values, all_.width())); }
    MinMax<T> result() const { return all_; }

  private:
    ThreadPool pool_;
    MinMax<T> all_;
};

template <class T>
class PlainLoop {
  public:
    explicit PlainLoop(const ReducerOptions& options)
        : minimum_(options.width, kEmptyMinimum), maximum_(options.width, kEmptyMaximum) {}

    void add(std::span<const T> values) {
        std::size_t element = 0;
        for (const T x : values) {
            if (less(x, minimum_[element])) minimum_[element] = x;
            if (less(maximum_[element], x)) maximum_[element] = x;
            if (++element == minimum_.size()) element = 0;
        }
    }
    MinMax<T> result() const { return MinMax<T>(minimum_, maximum_); }

  private:
    using Limits = std::numeric_limits<T>;
    static constexpr T kEmptyMinimum = Limits::has_infinity ? Limits::infinity() : Limits::max();
    static constexpr T kEmptyMaximum = Limits::has_infinity ? -Limits::infinity() : Limits::min();

    /// Orders −0 before +0. A NaN is neither less nor greater than anything.
    static bool less(T a, T b) {
        if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
        return a < b;
    }

    std::vector<T> minimum_;
    std::vector<T> maximum_;
};

}  // namespace

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_cpu_reducer(const ReducerOptions& options) {
    return std::unique_ptr<Reducer<T>>(std::make_unique<HostReducer<T, Threads<T>>>(options));
}

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_sequential_reducer(const ReducerOptions& options) {
    return std::unique_ptr<Reducer<T>>(std::make_unique<HostReducer<T, PlainLoop<T>>>(options));
}

template Result<std::unique_ptr<Reducer<float>>> make_cpu_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<double>>> make_cpu_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_cpu_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<float>>> make_sequential_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<double>>> make_sequential_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_sequential_reducer(
    const ReducerOptions&);

}  // namespace gloved::kernels::reduce
