// Turns a parsed request into a query for an engine, or into an answer if it needs no engine.
#pragma once

#include <memory>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "daemon/vocabulary.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Whether a request needs an engine: one that searches, but for one among words that it chooses.
/// Of the others, those of reply_without_engine read rows of the model, the rest none.
bool needs_engine(const wire::Request& request);

/// Makes the query for a request that needs an engine, NEAR, NEARVEC, ANALOGY or RANK: looks its
/// words and lists up in `vocabulary`. `form`: of the reply. Errors: unknown_word (with the word in
/// Error::subject), unknown_list, zero_vector, bad_request.
Result<ResolvedQuery> resolve_query(const wire::Request& request, const Vocabulary& vocabulary,
                                    wire::Form form);

/// Whether a request names so few words that a loop can answer it, or make its query, between
/// others. `rules` are those in force.
bool is_quick(const wire::Request& request, LookUpRules rules);

/// Makes the reply to SIM, DIST, VEC, ODD, MATRIX, PREFIX or HAS, or to a NEAR or ANALOGY that
/// chooses words, as text or JSON. All but SIM and DIST render theirs later from `model`, which
/// they keep alive, and which is that of `vocabulary`. `name`: the model's; `arrived`: when the
/// request was read. Errors: unknown_word, unknown_list, zero_vector.
Result<Reply> reply_without_engine(const wire::Request& request,
                                   const std::shared_ptr<const format::Model>& model,
                                   const Vocabulary& vocabulary, const std::string& name,
                                   wire::Form form, Clock::time_point arrived);

}  // namespace gloved::daemon
