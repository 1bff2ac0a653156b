// The cosine and the distance of two rows of a model, canonical to the last bit.
#pragma once

#include "common/format/model.hpp"
#include "kernels/canonical.hpp"

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

}  // namespace gloved::kernels
