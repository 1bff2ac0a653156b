#include "kernels/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace gloved::kernels {

ThreadPool::ThreadPool(unsigned threads, std::chrono::microseconds patience) {
    if (threads == 0) threads = usable_processors();
    if (threads <= usable_processors()) patience_ = patience;
    try {
        for (unsigned worker = 1; worker < threads; ++worker) {
            threads_.emplace_back([this, worker] { loop(worker); });
        }
    } catch (...) {
        // A thread could not start. The destructor will not run, so stop the threads that did
        // start.
        stop();
        throw;
    }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(const std::function<void(unsigned)>& work) {
    {
        const std::lock_guard lock(mutex_);
        work_ = &work;
        unfinished_ = threads_.size();
        ++generation_;
    }
    start_.notify_all();
    call(0);
    look_for([this] { return unfinished_ == 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return unfinished_ == 0; });
    work_ = nullptr;
    if (auto fault = std::exchange(fault_, nullptr)) std::rethrow_exception(fault);
}

void ThreadPool::wake() {
    {
        const std::lock_guard lock(mutex_);
        ++wakes_;
    }
    start_.notify_all();
}

void ThreadPool::for_ranges(std::size_t count, std::size_t grain,
                            const std::function<void(unsigned, std::size_t, std::size_t)>& work) {
    if (count <= grain) {
        if (count > 0) work(0, 0, count);
        return;
    }
    std::atomic<std::size_t> next = 0;
    run([&](unsigned worker) {
        for (std::size_t begin;
             (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;) {
            work(worker, begin, std::min(begin + grain, count));
        }
    });
}

void ThreadPool::loop(unsigned worker) {
    std::size_t seen = 0;
    std::size_t woken = 0;
    while (true) {
        ++looking_;
        look_for([&] { return generation_ != seen; });
        --looking_;
        std::unique_lock lock(mutex_);
        start_.wait(lock, [&] { return stopping_ || generation_ != seen || wakes_ != woken; });
        if (stopping_) return;
        woken = wakes_;
        if (generation_ == seen) continue;
        seen = generation_;
        lock.unlock();
        call(worker);
        lock.lock();
        if (--unfinished_ == 0) done_.notify_one();
    }
}

template <class Condition>
void ThreadPool::look_for(const Condition& holds) const {
    if (patience_.count() == 0) return;
    const auto end = std::chrono::steady_clock::now() + patience_;
    while (!holds() && std::chrono::steady_clock::now() < end) pause_processor();
}

void ThreadPool::call(unsigned worker) noexcept {
    try {
        (*work_)(worker);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!fault_) fault_ = std::current_exception();
    }
}

}  // namespace gloved::kernels
