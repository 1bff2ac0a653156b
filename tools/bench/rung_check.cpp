#include "tools/bench/rung_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"

namespace gloved::bench {

Status check_hits(const format::Model& model, const kernels::QueryVector& query,
                  std::span<const kernels::Hit> hits, std::span<const kernels::Hit> exact,
                  double bound) {
    const auto wrong = [](std::string message) {
        return Error{ErrorCode::internal, std::move(message)};
    };
    if (!(bound >= 0 && std::isfinite(bound)))
        return wrong(fmt::format("{} is not a bound", bound));
    if (hits.size() != exact.size())
        return wrong(fmt::format("{} hits, not {}", hits.size(), exact.size()));
    std::unordered_set<kernels::Row> seen;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        const kernels::Hit& hit = hits[i];
        if (hit.row >= model.rows())
            return wrong(fmt::format("hit {}: the model has no row {}", i, hit.row));
        if (!seen.insert(hit.row).second)
            return wrong(fmt::format("hit {}: row {} came before", i, hit.row));
        if (i > 0 && !(hit.score <= hits[i - 1].score)) {
            return wrong(
                fmt::format("hit {}: score {} stands behind {}", i, hit.score, hits[i - 1].score));
        }
        const double norm = model.norms()[hit.row];
        if (norm != 0 && !kernels::bound_covers(norm)) continue;
        const double canonical = kernels::canonical_score(
            query.values.data(), query.norm, model.vector(hit.row).data(), norm, model.dim());
        // NaN is outside every bound.
        if (!(std::abs(hit.score - canonical) <= bound)) {
            return wrong(fmt::format("hit {}: row {} scores {}, canonically {}: more than {} apart",
                                     i, hit.row, hit.score, canonical, bound));
        }
        if (!(canonical >= exact.back().score - 2 * bound)) {
            return wrong(
                fmt::format("hit {}: row {} with {} is none of the best {}, which begin at {}", i,
                            hit.row, canonical, exact.size(), exact.back().score));
        }
    }
    return {};
}

}  // namespace gloved::bench
