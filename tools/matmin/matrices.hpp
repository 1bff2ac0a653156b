// What gloved-matmin's readers of text and of NumPy arrays share: options, results, and the class
// Intake. Numbers of type T are double, float or std::int32_t.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "common/elapsed.hpp"
#include "common/result.hpp"
#include "kernels/reduce/min_max.hpp"
#include "kernels/reduce/reducer.hpp"

namespace gloved::matmin {

/// Shape of one matrix.
struct Shape {
    std::size_t rows = 0;
    std::size_t columns = 0;

    std::size_t numbers() const { return rows * columns; }
};

/// Name of T in options and messages.
template <class T>
inline constexpr const char* kTypeName = std::is_same_v<T, double>  ? "float64"
                                         : std::is_same_v<T, float> ? "float32"
                                                                    : "int32";

/// How to read matrices.
struct ReadOptions {
    /// Number of threads that parse, while the calling thread reads; 0: the calling thread does
    /// both.
    std::size_t threads = 0;
    /// Size of the blocks that are read and parsed at a time, at least 1.
    std::size_t block_bytes = 1 << 20;
    /// Maximum size of the text of one matrix.
    std::size_t matrix_bytes = 1 << 28;
};

/// The result of reading, and how long it took.
template <class T>
struct Reading {
    std::uint64_t count = 0;  ///< number of matrices
    Shape shape;              ///< of each matrix
    /// Minimum and maximum over all matrices, shape (rows, columns), if `begin` gave no reducer.
    kernels::reduce::MinMax<T> range{1};
    std::uint64_t bytes = 0;  ///< size of the text or .npy file, unpacked
    double wall_ms = 0;       ///< total time, with reducing
    /// The part of wall_ms spent on reducing: in Reducer::add, or, without a reducer, the average
    /// of the threads.
    double reduce_ms = 0;
};

/// Called once, when the number of matrices (as the source announces it) and their shape are known,
/// before any value is delivered. Returns the reducer to which the reader adds all values, in
/// order; or nullptr: then each thread reduces what it has parsed, and the result is
/// Reading::range. An error ends the reading.
template <class T>
using Begin = std::function<Result<kernels::reduce::Reducer<T>*>(std::uint64_t count, Shape shape)>;

/// Collects the numbers that one thread parses from a part of the source. Keeps them for a reducer,
/// or reduces them every few thousand numbers, while they are in the cache. Reused for every part.
template <class T>
class Intake {
  public:
    /// Starts the next part of the source. `shape` is that of a matrix; `keep`: keep the numbers.
    void begin(Shape shape, bool keep) {
        if (shape.numbers() != range_.width()) range_ = kernels::reduce::MinMax<T>(shape.numbers());
        range_.reset();
        keep_ = keep;
        used_ = 0;
        matrices_ = 0;
        reduce_ms_ = 0;
    }
    /// Returns room for the next `count` numbers, which the caller writes.
    T* next(std::size_t count) {
        // Doubled, and kept for later parts.
        if (values_.size() < used_ + count)
            values_.resize(std::max(used_ + count, 2 * values_.size()));
        T* const room = values_.data() + used_;
        used_ += count;
        return room;
    }
    /// Notes that `count` matrices are complete.
    void end_matrices(std::uint64_t count) {
        matrices_ += count;
        if (!keep_ && used_ >= kReduceNumbers) reduce();
    }
    /// Ends the part.
    void end() {
        if (!keep_) reduce();
    }

    /// Number of complete matrices in the part.
    std::uint64_t matrices() const { return matrices_; }
    /// Values of the whole part; only if they are kept.
    std::span<const T> values() const { return std::span(values_).first(used_); }
    /// Minimum and maximum of the whole part; only if values are not kept.
    const kernels::reduce::MinMax<T>& range() const { return range_; }
    double reduce_ms() const { return reduce_ms_; }

  private:
    /// 64 KiB of float64, which fit in the second-level cache of any processor.
    static constexpr std::size_t kReduceNumbers = 8192;

    void reduce() {
        const auto begin = std::chrono::steady_clock::now();
        range_.add(values_.data(), used_ / range_.width());
        used_ = 0;
        reduce_ms_ += ms_since(begin);
    }

    kernels::reduce::MinMax<T> range_{1};
    bool keep_ = false;
    std::vector<T> values_;
    std::size_t used_ = 0;
    std::uint64_t matrices_ = 0;
    double reduce_ms_ = 0;
};

/// Adds a part of the source to the result: passes its first `count` matrices to the reducer, or,
/// if that is nullptr, adds the part's range to reading.range. Call it for all parts in the order
/// of the source. Errors: those of Reducer::add.
template <class T>
Status merge_part(const Intake<T>& intake, std::uint64_t count,
                  kernels::reduce::Reducer<T>* reducer, Reading<T>& reading) {
    if (reducer == nullptr) {
        reading.range.add(intake.range());
        reading.reduce_ms += intake.reduce_ms();
        return {};
    }
    const auto begin = std::chrono::steady_clock::now();
    Status added = reducer->add(intake.values().first(count * reading.shape.numbers()));
    reading.reduce_ms += ms_since(begin);
    return added;
}

/// Completes the times of `reading`: sets wall_ms, and with `by_threads` divides reduce_ms, a sum
/// over all threads, by their number.
template <class T>
void finish_times(std::chrono::steady_clock::time_point started, const ReadOptions& options,
                  bool by_threads, Reading<T>& reading) {
    if (by_threads)
        reading.reduce_ms /= static_cast<double>(std::max<std::size_t>(1, options.threads));
    reading.wall_ms = ms_since(started);
}

}  // namespace gloved::matmin
