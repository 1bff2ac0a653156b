// A query whose answer is known, to test an engine before it serves and while it serves.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// The query with a word's own vector: the word is its nearest row.
class KnownAnswer {
  public:
    explicit KnownAnswer(std::shared_ptr<const format::Model> model);

    /// The query over all rows, or over a few thousand, which is quick. Nothing for a model whose
    /// rows are all zero.
    std::optional<kernels::Query> query(bool of_all_rows) const;
    /// Checks an answer to it. Error: internal.
    Status check(const kernels::Engine& engine, const kernels::Answer& answer) const;

    /// Asks the engine and checks its answer. Errors: internal, and those of Engine::run.
    Status ask(kernels::Engine& engine, bool of_all_rows) const;

  private:
    const std::shared_ptr<const format::Model> model_;
    std::optional<std::size_t> row_;
};

}  // namespace gloved::daemon
