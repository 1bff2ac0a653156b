#include "kernels/distance/prepare.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "common/error_with.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/nearest_float.hpp"

namespace gloved::kernels::distance {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
/// Minimum number of values that a thread claims at a time.
constexpr std::size_t kGrainValues = 1 << 16;
/// Rows per partial sum of a column's mean. Fixed, so that the mean does not depend on threads.
constexpr std::size_t kMeanRows = 1024;

/// The smallest row number that threads report.
class FirstRow {
  public:
    void report(std::size_t row) {
        std::size_t before = row_.load();
        while (row < before && !row_.compare_exchange_weak(before, row)) {
        }
    }
    std::optional<std::size_t> row() const {
        return row_ == kNone ? std::nullopt : std::optional(row_.load());
    }

  private:
    std::atomic<std::size_t> row_{kNone};
};

template <class T>
class Preparation {
  public:
    Preparation(ThreadPool& pool, std::span<const T> values, std::size_t rows, std::size_t dim,
                const RowName& name)
        : pool_(pool), values_(values), rows_(rows), dim_(dim), name_(name) {}

    Status check_finite() const {
        FirstRow fault;
        for_rows([&](std::size_t row) {
            if (column_not_finite(row) != kNone) fault.report(row);
        });
        if (!fault.row()) return {};
        const std::size_t column = column_not_finite(*fault.row());
        const T value = values_[*fault.row() * dim_ + column];
        return bad_source(
            "{}: its number in column {} (counted from 0) is {}; distances need "
            "numbers that are finite: leave such rows out, or fill them in",
            name_(*fault.row()), column,
            std::isnan(value) ? "nan"
            : value > 0       ? "infinite"
                              : "infinite, and negative");
    }

    bool all_exact_in_float32() const {
        std::atomic<bool> all = true;
        for_rows([&](std::size_t row) {
            const auto values = row_values(row);
            if (!std::ranges::all_of(values,
                                     [](T v) { return static_cast<T>(nearest_float(v)) == v; })) {
                all = false;
            }
        });
        return all;
    }

    /// Mean of each column in float64. Partial sums of kMeanRows rows are added in order.
    std::vector<double> means() const {
        const std::size_t groups = (rows_ + kMeanRows - 1) / kMeanRows;
        std::vector<double> sums(groups * dim_, 0.0);
        pool_.for_ranges(groups, 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin * kMeanRows; row < std::min(end * kMeanRows, rows_);
                 ++row) {
                double* const sum = sums.data() + row / kMeanRows * dim_;
                for (std::size_t k = 0; k < dim_; ++k)
                    sum[k] += static_cast<double>(row_values(row)[k]);
            }
        });
        std::vector<double> means(dim_, 0.0);
        for (std::size_t group = 0; group < groups; ++group) {
            for (std::size_t k = 0; k < dim_; ++k) means[k] += sums[group * dim_ + k];
        }
        for (double& mean : means) mean /= static_cast<double>(rows_);
        return means;
    }

    /// The rows less `means` (empty: as they are), as float32; into `to`, unless that is null and
    /// only sizes are looked at.
    Status move(const std::vector<double>& means, float* to) const {
        FirstRow fault;
        for_rows([&](std::size_t row) {
            double squares = 0;
            for (std::size_t k = 0; k < dim_; ++k) {
                const double value =
                    static_cast<double>(row_values(row)[k]) - (means.empty() ? 0.0 : means[k]);
                squares += value * value;
                if (to != nullptr) to[row * dim_ + k] = nearest_float(value);
            }
            // Negated so that a mean which is not finite is an error too.
            if (!(std::sqrt(squares) <= kMaxNorm)) fault.report(row);
        });
        if (!fault.row()) return {};
        return bad_source(
            "{}: its numbers are so large that a squared distance may exceed float32 "
            "(a row may be {:.1e} long); divide the whole matrix by one number, by "
            "which distances shrink, or take --metric cosine",
            name_(*fault.row()), kMaxNorm);
    }

    Status normalize(float* to) const {
        FirstRow fault;
        for_rows([&](std::size_t row) {
            if (!normalize(row_values(row), to + row * dim_)) fault.report(row);
        });
        if (!fault.row()) return {};
        return bad_source(
            "{}: all its numbers are 0, and a row without a direction has no cosine; "
            "leave it out, or take another --metric",
            name_(*fault.row()));
    }

  private:
    std::span<const T> row_values(std::size_t row) const {
        return values_.subspan(row * dim_, dim_);
    }

    template <class Work>
    void for_rows(Work work) const {
        pool_.for_ranges(rows_, std::max<std::size_t>(1, kGrainValues / dim_),
                         [&](std::size_t begin, std::size_t end) {
                             for (std::size_t row = begin; row < end; ++row) work(row);
                         });
    }

    std::size_t column_not_finite(std::size_t row) const {
        const auto values = row_values(row);
        const auto found =
            std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
        return found == values.end() ? kNone : static_cast<std::size_t>(found - values.begin());
    }

    static bool normalize(std::span<const T> row, float* to) {
        double largest = 0;
        for (const T value : row) largest = std::max(largest, std::abs(static_cast<double>(value)));
        if (largest == 0) return false;
        // Scaled by a power of two if squares would leave float64's range.
        constexpr int kSafeExponent = 300;
        const int exponent = std::ilogb(largest);
        const bool scale = std::abs(exponent) > kSafeExponent;
        const auto scaled = [&](T value) {
            return scale ? std::scalbn(static_cast<double>(value), -exponent)
                         : static_cast<double>(value);
        };
        double squares = 0;
        for (const T value : row) squares += scaled(value) * scaled(value);
        const double norm = std::sqrt(squares);
        for (std::size_t k = 0; k < row.size(); ++k)
            to[k] = static_cast<float>(scaled(row[k]) / norm);
        return true;
    }

    ThreadPool& pool_;
    std::span<const T> values_;
    std::size_t rows_;
    std::size_t dim_;
    const RowName& name_;
};

template <class T>
Result<Points> prepare(ThreadPool& pool, std::span<const T> values, std::size_t rows,
                       std::size_t dim, Metric metric, const RowName& name) {
    const Preparation<T> preparation(pool, values, rows, dim, name);
    if (Status finite = preparation.check_finite(); !finite) return finite.error();
    Points points;
    if constexpr (std::is_same_v<T, float>) {
        if (metric != Metric::cosine) {
            if (Status sizes = preparation.move({}, nullptr); !sizes) return sizes.error();
            points.view = {values.data(), rows, dim};
            return points;
        }
    }
    points.storage.resize(rows * dim);
    points.view = {points.storage.data(), rows, dim};
    const auto made = [&] {
        if (metric == Metric::cosine) return preparation.normalize(points.storage.data());
        return preparation.move(
            preparation.all_exact_in_float32() ? std::vector<double>() : preparation.means(),
            points.storage.data());
    }();
    if (!made) return made.error();
    return points;
}

}  // namespace

Result<Points> prepare(ThreadPool& pool, Values values, std::size_t rows, std::size_t dim,
                       Metric metric, const RowName& name) {
    if (dim > kMaxDim) {
        return bad_source(
            "{}: it has {} numbers, and a row has {} at most; the error bound ends there", name(0),
            dim, kMaxDim);
    }
    return std::visit([&](auto span) { return prepare(pool, span, rows, dim, metric, name); },
                      values);
}

}  // namespace gloved::kernels::distance
