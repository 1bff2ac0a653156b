#include "kernels/cuda/ladder/score.hpp"

#include <cassert>
#include <cmath>

#include "kernels/bounds.hpp"

namespace gloved::kernels::ladder {

double ladder_score_bound(std::size_t dim) {
    return (1.01 * (static_cast<double>(dim) + 4.0) + 3.0) * kHalfUlp;
}

float scale_query(const QueryVector& query, std::span<float> scaled) {
    assert(scaled.size() == query.values.size() && query.norm > 0);
    const int exponent = -std::ilogb(query.norm);
    for (std::size_t i = 0; i < scaled.size(); ++i)
        scaled[i] = std::ldexp(query.values[i], exponent);
    return static_cast<float>(canonical_norm(scaled.data(), scaled.size()));
}

}  // namespace gloved::kernels::ladder
