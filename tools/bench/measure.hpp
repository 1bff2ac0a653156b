// Times functions in turns, computes statistics of the times, formats them as tables, and reads
// memory or calls OpenBLAS for comparison. For gloved-bench.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "kernels/thread_pool.hpp"

namespace gloved::bench {

/// A function to measure, e.g. a search by one engine.
struct Contender {
    std::string what;                                  ///< its name
    std::size_t queries = 0;                           ///< answered per run; 0: it answers none
    std::function<void(std::size_t round)> prepare{};  ///< called before each run, not timed; may
                                                       ///< be empty
    std::function<Status()> run{};                     ///< timed
    std::function<double()> device_ms{};  ///< the last run's time on the GPU; may be empty
    std::function<void()> finish{};       ///< called after each run that succeeds, not timed, and
                                          ///< before device_ms; may be empty
};

/// A contender's times, one per round.
struct Series {
    std::string what;
    std::size_t queries = 0;
    std::vector<double> ms{};         ///< from call to return, by the host's clock
    std::vector<double> device_ms{};  ///< on the GPU, one per round; or empty

    double median() const;
    double min() const;
    /// The time that a fraction `share` of the rounds does not exceed.
    double percentile(double share) const;
    /// Median over the rounds of host time − device time; needs `device_ms`.
    double median_wait_ms() const;
};

/// The median of at least one value.
double median(std::span<const double> values);

/// The value that a fraction `share` of at least one value does not exceed; 0 < share <= 1.
double percentile(std::span<const double> values, double share);

/// The mean of at least one value.
double mean(std::span<const double> values);

/// Standard error of the mean: the sample's standard deviation (denominator n - 1) over the root of
/// n. Nothing for fewer than two values.
std::optional<double> standard_error(std::span<const double> values);

/// Runs every contender once per round, so that a disturbance affects all of them. Each round
/// starts with another contender. Makes `rounds` rounds after one whose times do not count. Returns
/// a Series per contender. Errors: interrupted, once `interrupted` returns true; those of a
/// contender.
Result<std::vector<Series>> measure(std::span<const Contender> contenders, std::size_t rounds,
                                    const std::function<bool()>& interrupted);

/// Runs `work` and returns its milliseconds.
double time_ms(const std::function<void()>& work);

/// Reads all of `bytes` with all threads of `pool` as fast as memory allows.
void read_all(kernels::ThreadPool& pool, std::span<const std::byte> bytes);

/// OpenBLAS, loaded at run time if it is installed.
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
    /// and (count, dim), with cblas_sgemm; the transposed product is a tenth slower. All three fit
    /// an int.
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

/// How to print a table: in columns for people, or as CSV for programs.
enum class TableFormat { text, csv };

/// Rows of cells under headings. In text the first column is left-aligned, the others
/// right-aligned, and each character beyond ASCII counts as one column. CSV is as in RFC 4180, but
/// with LF.
class Table {
  public:
    explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}
    /// Adds a row with as many cells as headings.
    void add(std::vector<std::string> cells);
    /// Formats the table, with a final line end.
    std::string to_string(TableFormat format) const;
    /// Writes to_string to `to`.
    void print(std::FILE* to, TableFormat format) const;

    /// The rows, headings first.
    const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  private:
    std::vector<std::vector<std::string>> rows_;
};

/// A number with four significant digits, or three decimals if it is small: «261.4», «0.863».
std::string figure(double value);

/// Prints a note beside a table on stdout; with TableFormat::csv as a line that begins with #.
void print_note(TableFormat format, std::string_view text);

}  // namespace gloved::bench
