// From a parsed request to what an engine is asked, or to an answer at once.
#pragma once

#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// The NEAR request as a query. Errors: unknown_word, zero_vector, bad_request.
Result<kernels::Query> resolve_near(const wire::Request& request, const format::Model& model);

/// The whole reply to SIM or HAS, status line included.
Result<std::string> answer_directly(const wire::Request& request, const format::Model& model);

}  // namespace gloved::daemon
