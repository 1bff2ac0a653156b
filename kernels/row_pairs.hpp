// The cosine and the distance of two rows of a model, and the hit before which a query counts,
// canonical to the last bit.
#pragma once

#include <limits>

#include "common/format/model.hpp"
#include "kernels/canonical.hpp"
#include "kernels/engine.hpp"

namespace gloved::kernels {

/// The canonical score of row `b` for the vector of row `a`; 0 if either vector is zero.
inline double cosine(const format::Model& model, format::Row a, format::Row b) {
    const double norm = model.norms()[a];
    if (norm == 0) return 0;
    return canonical_score(model.vector(a).data(), norm, model.vector(b).data(), model.norms()[b],
                           model.dim());
}

/// The canonical squared Euclidean distance of two rows.
inline double squared_distance(const format::Model& model, format::Row a, format::Row b) {
    return canonical_squared_distance(model.vector(a).data(), model.vector(b).data(), model.dim());
}

/// The hit before which `count` counts.
inline Hit counted_hit(const format::Model& model, const CountBefore& count) {
    // Rows with an equal score come before a row that no model has.
    if (count.score) return {std::numeric_limits<Row>::max(), *count.score};
    return {count.row,
            canonical_score(count.vector.values.data(), count.vector.norm,
                            model.vector(count.row).data(), model.norms()[count.row], model.dim())};
}

}  // namespace gloved::kernels
