// ThreadPool: a fixed set of threads that run one function in parallel.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "common/control_groups.hpp"

namespace gloved::kernels {

/// Threads that wait for work, and run it together with the calling thread. One thread at a time
/// may call `run` or `for_ranges`.
class ThreadPool {
  public:
    /// Starts threads − 1 threads: with the caller of `run`, work runs on `threads` threads. 0: one
    /// per usable processor. `patience`: for how long a thread that has nothing to do looks for
    /// work before it sleeps; so `run` takes less time, at the price of busy processors. None looks
    /// if there are more threads than usable processors: one that looks would keep another from its
    /// work. Throws std::system_error if the system refuses a thread.
    explicit ThreadPool(unsigned threads, std::chrono::microseconds patience = {});
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    ~ThreadPool();

    /// Number of threads that run work, including the caller.
    unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }

    /// Calls work(0) on the calling thread and work(1) … work(size() − 1) on the others, and
    /// returns when all have returned. If some threw, rethrows the first exception.
    void run(const std::function<void(unsigned worker)>& work);

    /// Whether no other thread sleeps: `run` finds all of them without waking any.
    bool awake() const { return looking_ == threads_.size(); }
    /// Wakes the other threads, so that they look for work for `patience`.
    void wake();

    /// Divides [0, count) into pieces of `grain` elements (the last may be shorter) and calls
    /// work(worker, begin, end) for each, with the worker as in `run`. A thread takes the next
    /// piece when it is free; a single piece is the caller's, who wakes nobody. Returns when all
    /// are done; exceptions as in `run`.
    void for_ranges(
        std::size_t count, std::size_t grain,
        const std::function<void(unsigned worker, std::size_t begin, std::size_t end)>& work);
    /// The same for work that has no need of its worker: work(begin, end).
    void for_ranges(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t begin, std::size_t end)>& work) {
        for_ranges(count, grain,
                   [&](unsigned, std::size_t begin, std::size_t end) { work(begin, end); });
    }

  private:
    void stop();
    void loop(unsigned worker);
    void call(unsigned worker) noexcept;
    /// Waits for `patience_` at most, without sleep, until `holds`.
    template <class Condition>
    void look_for(const Condition& holds) const;

    std::chrono::microseconds patience_{};
    std::mutex mutex_;
    std::condition_variable start_;
    std::condition_variable done_;
    const std::function<void(unsigned)>* work_ = nullptr;
    std::atomic<std::size_t> generation_ = 0;
    std::atomic<std::size_t> unfinished_ = 0;
    std::atomic<std::size_t> looking_ = 0;  // threads that look for work
    std::size_t wakes_ = 0;
    bool stopping_ = false;
    std::exception_ptr fault_;
    std::vector<std::thread> threads_;
};

using gloved::usable_processors;

/// Leaves a processor that waits in a loop to the other thread of its core for a moment.
inline void pause_processor() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

}  // namespace gloved::kernels
