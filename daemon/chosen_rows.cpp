#include "daemon/chosen_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <variant>

#include "common/format/model.hpp"
#include "kernels/canonical.hpp"

namespace gloved::daemon {
namespace {

using kernels::Hit;
using kernels::Row;

double cosine(const kernels::QueryVector& vector, Row row, const format::Model& model) {
    return kernels::canonical_score(vector.values.data(), vector.norm, model.vector(row).data(),
                                    model.norms()[row], model.dim());
}

double score(const kernels::Query& query, Row row, const format::Model& model) {
    if (const auto* asked = std::get_if<kernels::Cosine>(&query.kind))
        return cosine(asked->vector, row, model);
    assert(std::holds_alternative<kernels::CosMul>(query.kind));
    const auto& asked = std::get<kernels::CosMul>(query.kind);
    double above = 1.0;
    double below = 1.0;
    for (const kernels::QueryVector& vector : asked.positives)
        above *= kernels::cosmul_part(cosine(vector, row, model));
    for (const kernels::QueryVector& vector : asked.negatives)
        below *= kernels::cosmul_part(cosine(vector, row, model));
    return kernels::cosmul_score(above, below);
}

}  // namespace

bool takes(const kernels::Filter& filter, Row row, const format::Model& model) {
    if (model.ranks()[row] >= filter.rank_below) return false;
    if (filter.rows && (row < filter.rows->first || row >= filter.rows->last)) return false;
    return !filter.names_lists() || filter.takes_lists(filter.lists->memberships()[row]);
}

kernels::Answer search_among(std::vector<Row> rows, const kernels::Query& query,
                             const format::Model& model) {
    std::ranges::sort(rows);
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    std::vector<Row> excluded = query.excluded;
    std::ranges::sort(excluded);
    std::erase_if(rows, [&](Row row) {
        return std::ranges::binary_search(excluded, row) || !takes(query.filter, row, model);
    });
    kernels::Answer answer;
    for (const Row row : rows) {
        const Hit hit{row, score(query, row, model)};
        // False for NaN, of a damaged row.
        if (hit.score >= query.filter.min_score) answer.hits.push_back(hit);
    }
    const std::size_t k = std::min(query.k, answer.hits.size());
    std::ranges::partial_sort(answer.hits, answer.hits.begin() + static_cast<std::ptrdiff_t>(k),
                              kernels::comes_before);
    answer.hits.resize(k);
    answer.certificate.scanned = answer.certificate.survivors = answer.certificate.rescored =
        rows.size();
    return answer;
}

}  // namespace gloved::daemon
