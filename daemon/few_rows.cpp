#include "daemon/few_rows.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <span>
#include <variant>

#include "daemon/log.hpp"
#include "kernels/canonical.hpp"
#include "kernels/prefetch.hpp"

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

/// With more hits, scoring them takes so long that other connections of the loop would notice.
constexpr std::size_t kMaxHits = 128;
/// Rows that are prefetched, at most: the usual answer.
constexpr std::size_t kPrefetchRows = 16;

/// Whether a list of the file can be the answer.
bool asks_for_neighbors(const wire::Request& request, std::size_t stored) {
    const wire::Options& options = request.options;
    return request.verb == wire::Verb::near && request.terms.size() == 1 &&
           request.terms[0].coefficient == 1.0 && options.norm == wire::Norm::raw &&
           options.exclude_inputs && !options.top && !options.min && options.prefix.empty() &&
           options.within.empty() && options.without.empty() && options.engine.empty() &&
           options.k <= std::min(stored, kMaxHits);
}

/// The hits with the rows of `list`; nothing if they cannot be those of an answer.
std::optional<std::vector<Hit>> score_list(const format::Model& model, Row row,
                                           const kernels::QueryVector& query,
                                           std::span<const Row> list) {
    // The rows are far apart in memory: the first ones must not be waited for one by one.
    for (const Row other : list.first(std::min(list.size(), kPrefetchRows))) {
        if (other >= model.rows()) return std::nullopt;
        __builtin_prefetch(&model.norms()[other]);
        kernels::prefetch(model.vector(other));
    }
    std::vector<Hit> hits;
    hits.reserve(list.size());
    for (const Row other : list) {
        if (other >= model.rows() || other == row) return std::nullopt;
        const Hit hit{other, cosine(query, other, model)};
        if (std::isnan(hit.score)) return std::nullopt;  // of a damaged vector or norm
        // Strict, so that no row comes twice.
        if (!hits.empty() && !kernels::comes_before(hits.back(), hit)) return std::nullopt;
        hits.push_back(hit);
    }
    return hits;
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

std::optional<std::vector<Hit>> find_stored_answer(const wire::Request& request,
                                                   const kernels::Query& query,
                                                   const std::string& model_name,
                                                   const format::Model& model,
                                                   const format::Neighbors* neighbors) {
    if (neighbors == nullptr || !asks_for_neighbors(request, neighbors->k())) return std::nullopt;
    const Row row = query.excluded.front();
    const std::size_t wanted = std::min(request.options.k, model.rows() - 1);
    const auto list = neighbors->of(row, wanted);
    if (list.size() == wanted) {
        auto hits = score_list(model, row, std::get<kernels::Cosine>(query.kind).vector, list);
        // What was cut off reads as zeros.
        if (hits && neighbors->has_kept_its_size()) return hits;
    }
    log_warning(
        "model {}: {}/{} or a vector is damaged; the engine answers instead; gloved-verify tells "
        "which, and gloved-neighbors makes the file again",
        model_name, model.path(), format::kNeighborsFile);
    return std::nullopt;
}

}  // namespace gloved::daemon
