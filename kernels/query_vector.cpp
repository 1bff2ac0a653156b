#include "kernels/query_vector.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/canonical.hpp"
#include "kernels/nearest_float.hpp"
#include "kernels/prefetch.hpp"

namespace gloved::kernels {
namespace {

Error not_finite() {
    return {ErrorCode::bad_request,
            "the query vector is not finite: its coefficients are too large"};
}

Result<std::vector<float>> check_finite(std::vector<float> values) {
    if (std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
        return values;
    return not_finite();
}

std::vector<double> sum_of(const format::Model& model, std::span<const WeightedRow> terms,
                           bool normalize) {
    for (const WeightedRow& term : terms) prefetch(model.vector(term.row));
    std::vector<double> sum(model.dim(), 0.0);
    for (const WeightedRow& term : terms) {
        const auto row = model.vector(term.row);
        const double norm = normalize ? model.norms()[term.row] : 1.0;
        if (norm == 0.0) continue;
        for (std::size_t i = 0; i < sum.size(); ++i)
            sum[i] += term.coefficient * (static_cast<double>(row[i]) / norm);
    }
    return sum;
}

/// A double beyond float32's range becomes infinity, which check_finite refuses.
std::vector<float> rounded(const std::vector<double>& sum) {
    std::vector<float> values(sum.size());
    std::ranges::transform(sum, values.begin(), nearest_float);
    return values;
}

}  // namespace

Result<std::vector<float>> weighted_sum(const format::Model& model,
                                        std::span<const WeightedRow> terms, bool normalize) {
    return check_finite(rounded(sum_of(model, terms, normalize)));
}

Result<std::vector<float>> weighted_mean(const format::Model& model,
                                         std::span<const WeightedRow> terms, bool normalize) {
    double weight = 0.0;
    for (const WeightedRow& term : terms) weight += std::abs(term.coefficient);
    if (!std::isfinite(weight)) return not_finite();
    std::vector<double> mean = sum_of(model, terms, normalize);
    if (weight != 0.0) {
        for (double& value : mean) value /= weight;
    }
    return check_finite(rounded(mean));
}

Result<QueryVector> make_query_vector(const format::Model& model,
                                      std::span<const WeightedRow> terms, bool normalize) {
    if (terms.size() == 1 && terms[0].coefficient == 1.0 && !normalize) {
        const auto row = model.vector(terms[0].row);
        std::vector<float> values(row.size());
        // As the sum below: −0 becomes 0.
        std::ranges::transform(row, values.begin(), [](float value) { return value + 0.0F; });
        auto vector = make_query_vector(std::move(values));
        if (vector) vector->row = terms[0].row;
        return vector;
    }
    return make_query_vector(rounded(sum_of(model, terms, normalize)));
}

Result<QueryVector> make_query_vector(std::vector<float> values) {
    auto finite = check_finite(std::move(values));
    if (!finite) return finite.error();
    QueryVector vector;
    vector.values = *std::move(finite);
    vector.norm = canonical_norm(vector.values.data(), vector.values.size());
    if (vector.norm == 0.0) {
        return Error{ErrorCode::zero_vector,
                     "the query vector is zero: it has no direction to compare with"};
    }
    return vector;
}

}  // namespace gloved::kernels
