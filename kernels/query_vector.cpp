#include "kernels/query_vector.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/canonical.hpp"
#include "kernels/prefetch.hpp"

namespace gloved::kernels {
namespace {

Error not_finite() {
    return {ErrorCode::bad_request,
            "the query vector is not finite: its coefficients are too large"};
}

Status check_finite(const std::vector<float>& values) {
    if (std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return {};
    return not_finite();
}

/// Σ coefficient × vector / divisor, rounded once to float32.
Result<std::vector<float>> divided_sum(const format::Model& model,
                                       std::span<const WeightedRow> terms, bool unit,
                                       double divisor) {
    for (const WeightedRow& term : terms) prefetch(model.vector(term.row));
    std::vector<double> sum(model.dim(), 0.0);
    for (const WeightedRow& term : terms) {
        const auto row = model.vector(term.row);
        const double norm = unit ? model.norms()[term.row] : 1.0;
        if (norm == 0.0) continue;
        for (std::size_t i = 0; i < sum.size(); ++i)
            sum[i] += term.coefficient * (static_cast<double>(row[i]) / norm);
    }
    std::vector<float> values(sum.size());
    // A double beyond float32's range becomes infinity here and is rejected below.
    std::ranges::transform(sum, values.begin(),
                           [&](double value) { return static_cast<float>(value / divisor); });
    if (Status finite = check_finite(values); !finite) return finite.error();
    return values;
}

}  // namespace

Result<std::vector<float>> weighted_sum(const format::Model& model,
                                        std::span<const WeightedRow> terms, bool unit) {
    return divided_sum(model, terms, unit, 1.0);
}

Result<std::vector<float>> weighted_mean(const format::Model& model,
                                         std::span<const WeightedRow> terms, bool unit) {
    double weight = 0.0;
    for (const WeightedRow& term : terms) weight += std::abs(term.coefficient);
    if (!std::isfinite(weight)) return not_finite();
    return divided_sum(model, terms, unit, weight == 0.0 ? 1.0 : weight);
}

Result<QueryVector> make_query_vector(const format::Model& model,
                                      std::span<const WeightedRow> terms, bool unit) {
    if (terms.size() == 1 && terms[0].coefficient == 1.0 && !unit) {
        const auto row = model.vector(terms[0].row);
        std::vector<float> values(row.size());
        // As the sum below: −0 becomes 0.
        std::ranges::transform(row, values.begin(), [](float value) { return value + 0.0F; });
        auto vector = make_query_vector(std::move(values));
        if (vector) vector->row = terms[0].row;
        return vector;
    }
    auto values = weighted_sum(model, terms, unit);
    if (!values) return values.error();
    return make_query_vector(*std::move(values));
}

Result<QueryVector> make_query_vector(std::vector<float> values) {
    if (Status finite = check_finite(values); !finite) return finite.error();
    QueryVector vector;
    vector.norm = canonical_norm(values.data(), values.size());
    vector.values = std::move(values);
    if (vector.norm == 0.0) {
        return Error{ErrorCode::zero_vector,
                     "the query vector is zero: it has no direction to compare with"};
    }
    return vector;
}

}  // namespace gloved::kernels
