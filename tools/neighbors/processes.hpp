// The processes of an MPI job: how many, on which hosts, the counter that they share, and waits
// that leave the processors to those that compute.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gloved::neighbors {

/// One process's view of the job. An error of MPI ends the job with MPI's message. For the main
/// thread. All processes call the functions that say «together», in the same order; these sleep
/// while they wait, and return the error interrupted once `stop` is true.
class Processes {
  public:
    /// Starts MPI, together. The destructor does not end it: see finish() and abort().
    explicit Processes(const std::atomic<bool>& stop);
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;
    ~Processes();

    /// This process's number, from 0, in the job and on its host.
    std::size_t rank() const { return rank_; }
    std::size_t rank_on_host() const { return rank_on_host_; }
    std::size_t count() const { return count_; }
    const std::string& host() const { return host_; }
    /// This process's share of the processors of its host: those that any process of the job may
    /// use there, divided by these processes. At least 1, and at most what this one may use.
    unsigned processors() const { return processors_; }

    /// Together: waits until all have called it.
    Status meet();
    /// Together: `numbers` becomes what it is in process 0.
    Status broadcast(std::vector<std::uint64_t>& numbers);
    /// Together: each number becomes its sum, or its maximum, over all processes.
    Status sum(std::span<std::uint64_t> numbers);
    Status maximum(std::span<double> numbers);

    /// Returns 0, 1, 2, …, each number to one process of the job. May wait until process 0 calls
    /// MPI.
    std::size_t draw();
    /// Lets MPI answer the draws of other processes. Where the network cannot read the memory of
    /// process 0 on its own, as over TCP, they wait until process 0 calls something of MPI.
    static void answer_draws();

    /// Together: ends MPI.
    Status finish();
    /// Ends the processes of the whole job.
    static void abort(int status);

  private:
    struct Handles;

    /// Counts the host's processes and shares out its processors.
    void look_at_host();
    /// Makes the counter of draw().
    void make_counter();

    const std::atomic<bool>& stop_;
    std::size_t rank_ = 0;
    std::size_t rank_on_host_ = 0;
    std::size_t count_ = 1;
    unsigned processors_ = 1;
    bool has_drawn_ = false;
    std::string host_;
    std::unique_ptr<Handles> handles_;  // no header but MPI's own has its types
};

}  // namespace gloved::neighbors
