#include "tools/verify/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gloved::verify {
namespace {

/// Sum of products in the contract's order: element i belongs to partial sum i mod 8.
double eight_lane_dot(std::span<const float> a, std::span<const float> b) {
    double sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    const auto add = [&](std::size_t i, std::size_t lane) {
        const double product = double{a[i]} * double{b[i]};
        sums[lane] = sums[lane] + product;
    };
    std::size_t i = 0;
    // Eight at a time, which a compiler turns into vector instructions.
    for (; i + 8 <= a.size(); i += 8) {
        for (std::size_t lane = 0; lane < 8; ++lane) add(i + lane, lane);
    }
    for (; i < a.size(); ++i) add(i, i % 8);
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

bool oracle_takes_lists(const kernels::Filter& filter, const Lists& lists, std::uint32_t row) {
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const bool within = (filter.within >> i & 1) != 0;
        const bool without = (filter.without >> i & 1) != 0;
        if (!within && !without) continue;
        const bool listed = std::ranges::binary_search(lists[i], row);
        if ((within && !listed) || (without && listed)) return false;
    }
    return true;
}

std::vector<double> oracle_norms(const format::Model& model) {
    std::vector<double> norms;
    norms.reserve(model.rows());
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const auto vector = model.vector(row);
        norms.push_back(std::sqrt(eight_lane_dot(vector, vector)));
    }
    return norms;
}

std::vector<double> oracle_scores(const format::Model& model, std::span<const double> norms,
                                  std::span<const float> query) {
    const double query_norm = std::sqrt(eight_lane_dot(query, query));
    std::vector<double> scores;
    scores.reserve(model.rows());
    for (std::size_t row = 0; row < model.rows(); ++row) {
        double score = 0.0;
        if (norms[row] != 0.0)
            score = eight_lane_dot(query, model.vector(row)) / (query_norm * norms[row]);
        scores.push_back(std::clamp(score, -1.0, 1.0));  // NaN stays NaN
    }
    return scores;
}

std::vector<double> oracle_scores(const format::Model& model, std::span<const float> query) {
    return oracle_scores(model, oracle_norms(model), query);
}

std::vector<double> oracle_cosmul(const format::Model& model, std::span<const double> norms,
                                  const std::vector<std::vector<float>>& positives,
                                  const std::vector<std::vector<float>>& negatives) {
    std::vector<double> above(model.rows(), 1.0);
    std::vector<double> below(model.rows(), 1.0);
    const auto multiply = [&](const std::vector<float>& query, std::vector<double>& product) {
        const auto scores = oracle_scores(model, norms, query);
        for (std::size_t row = 0; row < scores.size(); ++row)
            product[row] *= (1.0 + scores[row]) / 2.0;
    };
    for (const auto& query : positives) multiply(query, above);
    for (const auto& query : negatives) multiply(query, below);
    for (std::size_t row = 0; row < above.size(); ++row) above[row] /= below[row] + 1e-6;
    return above;
}

std::vector<double> oracle_cosmul(const format::Model& model,
                                  const std::vector<std::vector<float>>& positives,
                                  const std::vector<std::vector<float>>& negatives) {
    return oracle_cosmul(model, oracle_norms(model), positives, negatives);
}

std::vector<kernels::Hit> oracle_top(std::span<const double> scores, std::size_t k,
                                     const Eligible& eligible) {
    std::vector<kernels::Hit> hits;
    for (std::uint32_t row = 0; row < scores.size(); ++row) {
        if (!std::isnan(scores[row]) && eligible(row, scores[row]))
            hits.push_back({row, scores[row]});
    }
    const auto is_before = [](const kernels::Hit& a, const kernels::Hit& b) {
        if (a.score > b.score) return true;
        if (a.score < b.score) return false;
        return a.row < b.row;
    };
    k = std::min(hits.size(), k);
    std::ranges::partial_sort(hits, hits.begin() + static_cast<std::ptrdiff_t>(k), is_before);
    hits.resize(k);
    return hits;
}

}  // namespace gloved::verify
