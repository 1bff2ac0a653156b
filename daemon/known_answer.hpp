// A query whose answer is known: what an engine is asked before it serves, and whenever it must
// prove that it still does.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// A word's own vector, to which nothing is nearer than the word.
class KnownAnswer {
  public:
    explicit KnownAnswer(std::shared_ptr<const format::Model> model);

    /// The query over all rows, or over a few thousand around the word, which takes no time to
    /// speak of. Nothing for a model whose rows are all zero: every answer is right there.
    std::optional<kernels::Query> query(bool of_all_rows) const;
    /// Whether that is the answer. Error: internal.
    Status check(const kernels::Engine& engine, const kernels::Answer& answer) const;

    /// Asks the engine. Errors: internal, and those of Engine::run.
    Status ask(kernels::Engine& engine, bool of_all_rows) const;

  private:
    const std::shared_ptr<const format::Model> model_;
    std::optional<std::size_t> row_;
};

}  // namespace gloved::daemon
