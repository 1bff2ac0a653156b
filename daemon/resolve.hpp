// From a parsed request to what an engine is asked, or to an answer at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Whether an engine answers this verb; the others need but a few rows.
bool needs_engine(wire::Verb verb);

/// NEAR, NEARVEC, ANALOGY or RANK as a query. Errors: unknown_word (its subject is the word), zero_vector, bad_request.
Result<kernels::Query> resolve_query(const wire::Request& request, const format::Model& model);

/// Lines of a reply, as they are written.
struct Lines {
    std::size_t count = 0;
    std::string text;
};

/// The lines of the reply to SIM, DIST, VEC, ODD, PREFIX or HAS. Errors: unknown_word, zero_vector.
Result<Lines> answer_directly(const wire::Request& request, const format::Model& model, wire::Form form);

/// The answer to MATRIX, a piece at a time: the whole may have 150 MB. Of one thread at a time. Keeps the model alive.
class Matrix {
  public:
    /// Error: unknown_word.
    static Result<Matrix> create(const wire::Request& request, std::shared_ptr<const format::Model> model,
                                 wire::Form form);

    std::size_t size() const { return rows_.size(); }
    /// Appends the next lines: at least one (of 4,096 words and 4,096 numbers 20 ms), and about as much as is computed in two
    /// milliseconds. Where it throws std::bad_alloc, it may be called again.
    void append_lines(std::string& out);
    bool begun() const { return next_ != 0; }
    bool finished() const { return next_ == rows_.size(); }

  private:
    std::shared_ptr<const format::Model> model_;
    wire::Form form_ = wire::Form::text;
    wire::Metric metric_ = wire::Metric::cosine;
    std::vector<kernels::Row> rows_;
    std::size_t next_ = 0;
};

}  // namespace gloved::daemon
