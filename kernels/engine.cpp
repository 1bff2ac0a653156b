#include "kernels/engine.hpp"

namespace gloved::kernels {

std::size_t vectors_of(const Query& query) {
    const auto* product = std::get_if<CosMul>(&query.kind);
    return product == nullptr ? 1 : product->positives.size() + product->negatives.size();
}

}  // namespace gloved::kernels
