#include "tests/support/oracle.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>

namespace gloved::tests {

using kernels::Answer;
using kernels::Filter;
using kernels::Hit;
using kernels::Query;
using kernels::Row;

namespace {

bool is_in_range(const Filter& filter, Row row) {
    return !filter.rows || (row >= filter.rows->first && row < filter.rows->last);
}

bool is_in_rank(const Filter& filter, std::uint32_t rank) {
    return filter.rank_below == std::numeric_limits<std::uint32_t>::max() ||
           rank < filter.rank_below;
}

std::vector<std::vector<float>> values_of(std::span<const kernels::QueryVector> vectors) {
    std::vector<std::vector<float>> values;
    for (const kernels::QueryVector& vector : vectors) values.push_back(vector.values);
    return values;
}

}  // namespace

Oracle::Oracle(const format::Model& model, Lists lists)
    : model_(model), lists_(std::move(lists)), norms_(verify::oracle_norms(model)) {}

Oracle::Vectors Oracle::vectors_of(const Query& query) {
    if (const auto* product = std::get_if<kernels::CosMul>(&query.kind))
        return {true, values_of(product->positives), values_of(product->negatives)};
    const auto* count = std::get_if<kernels::CountBefore>(&query.kind);
    const auto& vector = count ? count->vector : std::get<kernels::Cosine>(query.kind).vector;
    return {false, {vector.values}, {}};
}

const std::vector<Hit>& Oracle::order(const Query& query) {
    const auto [at, is_new] = orders_.try_emplace(vectors_of(query));
    auto& [vectors, order] = *at;
    if (is_new) {
        const auto scores =
            vectors.product ? oracle_cosmul(model_, norms_, vectors.positives, vectors.negatives)
                            : oracle_scores(model_, norms_, vectors.positives[0]);
        order = oracle_top(scores, scores.size(), [](Row, double) { return true; });
    }
    return order;
}

double Oracle::score(const Query& query, Row row) {
    for (const Hit& hit : order(query)) {
        if (hit.row == row) return hit.score;
    }
    throw std::runtime_error("a row without a score");
}

Answer Oracle::answer(const Query& query) {
    const auto* const count = std::get_if<kernels::CountBefore>(&query.kind);
    const std::set<Row> excluded(query.excluded.begin(), query.excluded.end());
    Answer answer;
    const auto is_over = [&](const Hit& next) {
        if (!count) return answer.hits.size() == query.k;
        return count->score ? next.score < *count->score : next.row == count->row;
    };
    for (const Hit& hit : order(query)) {
        if (is_over(hit)) break;
        if (!is_in_range(query.filter, hit.row) ||
            !is_in_rank(query.filter, model_.ranks()[hit.row]) ||
            !(hit.score >= query.filter.min_score) ||
            !verify::oracle_takes_lists(query.filter, lists_, hit.row) ||
            excluded.contains(hit.row)) {
            continue;
        }
        if (count) {
            ++answer.count;
        } else {
            answer.hits.push_back(hit);
        }
    }
    return answer;
}

}  // namespace gloved::tests
