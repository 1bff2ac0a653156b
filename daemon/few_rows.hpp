// Answers queries from a few rows, without an engine: those that a request chooses, or those that
// the model's neighbors file lists.
#pragma once

#include <optional>
#include <vector>

#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Whether a filter takes a row, whatever its score.
bool takes(const kernels::Filter& filter, kernels::Row row, const format::Model& model);

/// Answers `query`, which asks for hits, among `rows` alone, in any order and also repeated. The
/// hits are those that an engine would find if no other rows were eligible. Takes some 0.2 µs a row
/// of 300 components. Any thread.
kernels::Answer search_among(std::vector<kernels::Row> rows, const kernels::Query& query,
                             const format::Model& model);

/// The hits of a request, whose query is `query`, if `neighbors`, the model's file, has them: for
/// NEAR of one word, with norm=raw and exclude=inputs, no filter, no engine=, and no more than 128
/// hits, or than the file has. The same hits as the engines find. Scores are computed here, and
/// rows that are not in the order of their scores are not used: a damaged file cannot invent an
/// answer. But that the list is complete rests on the file, and only gloved-verify proves it.
/// Nothing if an engine has to answer. Takes some microseconds. Any thread.
std::optional<std::vector<kernels::Hit>> find_stored_answer(const wire::Request& request,
                                                            const kernels::Query& query,
                                                            const std::string& model_name,
                                                            const format::Model& model,
                                                            const format::Neighbors* neighbors);

}  // namespace gloved::daemon
