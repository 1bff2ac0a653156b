// KnownAnswer: a query whose answer is known, to test an engine before it serves and while it
// serves.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Queries a model with the vector of its first row that is not zero: the first hit must be that
/// row, or one with the same direction.
class KnownAnswer {
  public:
    /// Finds the first row that is not zero.
    explicit KnownAnswer(std::shared_ptr<const format::Model> model);

    /// The query over all rows; or, if not `of_all_rows`, over a few thousand from the first that
    /// is not zero on, which is quick. nullopt for a model whose vectors are all zero.
    std::optional<kernels::Query> query(bool of_all_rows) const;
    /// Checks the answer of `engine` to `query`. The error names the engine. Error: internal.
    Status check(const kernels::Engine& engine, const kernels::Answer& answer) const;

    /// Runs `query` on the engine and checks the answer; succeeds if there is no query. Errors:
    /// internal, and those of Engine::run.
    Status ask(kernels::Engine& engine, bool of_all_rows) const;

  private:
    const std::shared_ptr<const format::Model> model_;
    std::optional<std::size_t> row_;  // the first row that is not zero
};

}  // namespace gloved::daemon
