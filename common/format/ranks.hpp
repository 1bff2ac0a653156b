// The ranks of a model, turned round: which row has which rank.
#pragma once

#include <optional>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// What shows that ranks are no permutation: the rank of `row` is that of `same` too, or, without
/// it, is none of a model with so many rows.
struct RankFault {
    Row row = 0;
    std::optional<Row> same{};
};

/// The rows in the order of their ranks. Error: damaged, if these are no permutation of 0 to
/// rows − 1, which opening a model does not check; sets `fault`, if not nullptr, to the first row
/// that shows it.
Result<std::vector<Row>> rows_by_rank(const Model& model, RankFault* fault = nullptr);

}  // namespace gloved::format
