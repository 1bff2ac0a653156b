#include "kernels/engine.hpp"

#include <algorithm>

namespace gloved::kernels {

std::string_view to_string(EngineKind kind) { return kind == EngineKind::cuda ? "cuda" : "cpu"; }

Result<std::optional<EngineKind>> parse_engine(std::string_view name) {
    if (name == "auto") return std::optional<EngineKind>();
    for (const EngineKind kind : {EngineKind::cuda, EngineKind::cpu}) {
        if (name == to_string(kind)) return std::optional(kind);
    }
    return Error{ErrorCode::unavailable,
                 "no engine '" + std::string(name) + "': there are auto, cuda, cpu"};
}

std::string_view to_string(Pass pass) {
    switch (pass) {
        case Pass::int8:
            return "int8";
        case Pass::plane:
            return "plane";
        case Pass::float64:
            break;
    }
    return "float64";
}

std::size_t most_rows(const Filter& filter, std::size_t rows) {
    std::size_t most = filter.rows ? filter.rows->size() : rows;
    most = std::min<std::size_t>(most, filter.rank_below);
    if (filter.within == 0) return most;
    return std::min(most, filter.lists->count(filter.lists->shortest(filter.within)));
}

std::size_t vectors_of(const Query& query) {
    const auto* product = std::get_if<CosMul>(&query.kind);
    return product == nullptr ? 1 : product->positives.size() + product->negatives.size();
}

}  // namespace gloved::kernels
