// A fixed set of threads that do one thing at a time together.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gloved::kernels {

/// `run` may be called by one thread at a time.
class ThreadPool {
  public:
    /// `threads` workers in all, the caller of `run` among them; 0: as many as the process may use
    /// processors. Throws std::system_error when the system does not let that many start.
    explicit ThreadPool(unsigned threads);
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    ~ThreadPool();

    unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }

    /// Calls work(0) … work(size() − 1), each on a thread of its own, and returns when all have.
    /// The first exception that one of them threw is thrown again here.
    void run(const std::function<void(unsigned worker)>& work);

    /// Calls work(begin, end) for disjoint pieces of [0, count) of about `grain`, as threads become
    /// free.
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

/// How many processors this process may run on (its affinity mask), at least 1.
unsigned usable_processors();

}  // namespace gloved::kernels
