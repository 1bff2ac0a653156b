#include "tools/verify/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gloved::verify {
namespace {

/// Sum of products in the contract's order: element i belongs to partial sum i mod 8.
double eight_lane_dot(std::span<const float> a, std::span<const float> b) {
    double sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double product = double{a[i]} * double{b[i]};
        sums[i % 8] = sums[i % 8] + product;
    }
    const double even = (sums[0] + sums[4]) + (sums[2] + sums[6]);
    const double odd = (sums[1] + sums[5]) + (sums[3] + sums[7]);
    return even + odd;
}

}  // namespace

std::vector<float> oracle_query(const format::Model& model, const Weights& weights, bool unit) {
    std::vector<float> query;
    for (std::size_t i = 0; i < model.dim(); ++i) {
        double sum = 0.0;
        for (const auto& [coefficient, row] : weights) {
            const auto vector = model.vector(row);
            if (!unit) {
                sum += coefficient * double{vector[i]};
                continue;
            }
            const double norm = std::sqrt(eight_lane_dot(vector, vector));
            if (norm != 0.0) sum += coefficient * (double{vector[i]} / norm);
        }
        query.push_back(static_cast<float>(sum));
    }
    return query;
}

std::vector<double> oracle_scores(const format::Model& model, std::span<const float> query) {
    const double query_norm = std::sqrt(eight_lane_dot(query, query));
    std::vector<double> scores;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const auto vector = model.vector(row);
        const double row_norm = std::sqrt(eight_lane_dot(vector, vector));
        double score = 0.0;
        if (row_norm != 0.0) score = eight_lane_dot(query, vector) / (query_norm * row_norm);
        scores.push_back(std::clamp(score, -1.0, 1.0));  // NaN stays NaN
    }
    return scores;
}

std::vector<double> oracle_cosmul(const format::Model& model,
                                  const std::vector<std::vector<float>>& positives,
                                  const std::vector<std::vector<float>>& negatives) {
    std::vector<double> above(model.rows(), 1.0);
    std::vector<double> below(model.rows(), 1.0);
    const auto multiply = [&](const std::vector<float>& query, std::vector<double>& product) {
        const auto scores = oracle_scores(model, query);
        for (std::size_t row = 0; row < scores.size(); ++row)
            product[row] *= (1.0 + scores[row]) / 2.0;
    };
    for (const auto& query : positives) multiply(query, above);
    for (const auto& query : negatives) multiply(query, below);
    for (std::size_t row = 0; row < above.size(); ++row) above[row] /= below[row] + 1e-6;
    return above;
}

std::vector<kernels::Hit> oracle_top(std::span<const double> scores, std::size_t k,
                                     const Eligible& eligible) {
    std::vector<kernels::Hit> hits;
    for (std::uint32_t row = 0; row < scores.size(); ++row) {
        if (!std::isnan(scores[row]) && eligible(row, scores[row]))
            hits.push_back({row, scores[row]});
    }
    std::ranges::sort(hits, [](const kernels::Hit& a, const kernels::Hit& b) {
        if (a.score > b.score) return true;
        if (a.score < b.score) return false;
        return a.row < b.row;
    });
    hits.resize(std::min(hits.size(), k));
    return hits;
}

}  // namespace gloved::verify
