// A fixed set of threads that run one function together.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gloved::kernels {

/// Only one thread at a time may call `run`.
class ThreadPool {
  public:
    /// Starts `threads` workers, including the caller of `run`; 0 means one per usable processor.
    /// Throws std::system_error if the system refuses a thread.
    explicit ThreadPool(unsigned threads);
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    ~ThreadPool();

    unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }

    /// Calls work(0) … work(size() − 1), each on its own thread, and returns when all have
    /// returned. Rethrows the first exception thrown by one of them.
    void run(const std::function<void(unsigned worker)>& work);

    /// Calls work(begin, end) for disjoint pieces of [0, count) of about `grain` elements, as
    /// threads become free.
    void for_ranges(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t begin, std::size_t end)>& work);

  private:
    void stop();
    void loop(unsigned worker);
    void call(unsigned worker) noexcept;

    std::mutex mutex_;
    std::condition_variable start_;
    std::condition_variable done_;
    const std::function<void(unsigned)>* work_ = nullptr;
    std::size_t generation_ = 0;
    std::size_t unfinished_ = 0;
    bool stopping_ = false;
    std::exception_ptr fault_;
    std::vector<std::thread> threads_;
};

/// Number of processors that this process may run on (its affinity mask), at least 1.
unsigned usable_processors();

}  // namespace gloved::kernels
