// Timing things side by side, and the peers that stand beside the engines.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::bench {

/// One thing to be timed.
struct Contender {
    std::string what;
    std::size_t queries = 0;                           ///< that one run answers; 0: it is no query
    std::function<void(std::size_t round)> prepare{};  ///< not timed; may be empty
    std::function<Status()> run{};
    std::function<double()> device_ms{};  ///< what the run before it took by the device's own
                                          ///< clock; may be empty
};

/// A contender's times, one a round.
struct Series {
    std::string what;
    std::size_t queries = 0;
    std::vector<double> ms{};         ///< by the host's clock, from call to return
    std::vector<double> device_ms{};  ///< as many, or none

    double median() const;
    double least() const;
    /// The time that `share` of the rounds do not exceed.
    double percentile(double share) const;
    /// The median of what the host waited beyond the device's own time; needs `device_ms`.
    double median_wait_ms() const;
};

/// The middle value, or the mean of the two middle ones. At least one.
double median(std::span<const double> values);

/// The value that `share` of the values do not exceed; 0 < share <= 1. At least one.
double percentile(std::span<const double> values, double share);

/// Sum over count. At least one value.
double mean(std::span<const double> values);

/// Standard error of the mean: the sample's standard deviation (n - 1 in its denominator) over the
/// root of n. Nothing for less than two values: they say nothing about spread.
std::optional<double> standard_error(std::span<const double> values);

/// Runs every contender once a round, each round beginning with another one, so that what disturbs
/// the machine for a while disturbs all alike. One round before the first is not counted. Errors:
/// interrupted, or a contender's own.
Result<std::vector<Series>> measure(std::span<const Contender> contenders, std::size_t rounds,
                                    const std::function<bool()>& interrupted);

/// Milliseconds that `work` takes.
double time_ms(const std::function<void()>& work);

/// Reads all of `bytes` with all threads of `pool`, as fast as memory gives them, and does next to
/// nothing else.
void read_all(kernels::ThreadPool& pool, std::span<const std::byte> bytes);

/// OpenBLAS, where the machine has it: loaded at run time, so that nothing of the project depends
/// on it.
class OpenBlas {
  public:
    /// Loads libopenblas.so.0 and sets its number of threads. Error: unavailable, with the loader's
    /// reason.
    static Result<OpenBlas> load(unsigned threads);

    /// out[r] = row r · query, for a row-major float32 matrix of shape (rows, dim), with
    /// cblas_sgemv. rows fits an int.
    void sgemv(const float* matrix, std::size_t rows, std::size_t dim, const float* query,
               float* out) const;

    /// out[q · rows + r] = row r · query q, for row-major float32 matrices of shapes (rows, dim)
    /// and (count, dim), with cblas_sgemm: this way round is a tenth faster than the other. All
    /// three fit an int.
    void sgemm(const float* matrix, std::size_t rows, std::size_t dim, const float* queries,
               std::size_t count, float* out) const;

    /// «OpenBLAS 0.3.21 … Zen, 2 threads»
    const std::string& description() const { return description_; }

  private:
    using Sgemv = void (*)(int order, int transpose, int m, int n, float alpha, const float* a,
                           int lda, const float* x, int incx, float beta, float* y, int incy);
    using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                           float alpha, const float* a, int lda, const float* b, int ldb,
                           float beta, float* c, int ldc);
    OpenBlas() = default;

    Sgemv sgemv_ = nullptr;
    Sgemm sgemm_ = nullptr;
    std::string description_;
};

}  // namespace gloved::bench
