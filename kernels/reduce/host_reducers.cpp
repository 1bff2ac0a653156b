#include "kernels/reduce/host_reducers.hpp"

#include <cassert>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "common/elapsed.hpp"
#include "kernels/reduce/min_max.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::kernels::reduce {
namespace {

template <class T>
class CpuReducer final : public Reducer<T> {
  public:
    explicit CpuReducer(const ReducerOptions& options)
        : keep_(options.keep), pool_(options.threads), all_(options.width) {
        if (keep_) kept_.reserve(options.count * options.width);
    }

    Status add(std::span<const T> values) override {
        assert(values.size() % all_.width() == 0);
        times_.compute_ms += add_to(all_, values);
        if (keep_) kept_.insert(kept_.end(), values.begin(), values.end());
        return {};
    }

    Result<MinMax<T>> finish() override { return all_; }

    Result<double> time_again() override {
        if (!keep_) return Error{ErrorCode::unavailable, "the values are not kept"};
        MinMax<T> again(all_.width());
        return add_to(again, kept_);
    }

    ReduceTimes times() const override { return times_; }

  private:
    /// Returns the milliseconds.
    double add_to(MinMax<T>& all, std::span<const T> values) {
        const auto begin = std::chrono::steady_clock::now();
        all.add(min_max(pool_, values, all.width()));
        return ms_since(begin);
    }

    bool keep_;
    ThreadPool pool_;
    MinMax<T> all_;
    std::vector<T> kept_;
    ReduceTimes times_;
};

}  // namespace

template <class T>
Result<std::unique_ptr<Reducer<T>>> make_cpu_reducer(const ReducerOptions& options) {
    return std::unique_ptr<Reducer<T>>(std::make_unique<CpuReducer<T>>(options));
}

template Result<std::unique_ptr<Reducer<float>>> make_cpu_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<double>>> make_cpu_reducer(const ReducerOptions&);
template Result<std::unique_ptr<Reducer<std::int32_t>>> make_cpu_reducer(const ReducerOptions&);

}  // namespace gloved::kernels::reduce
