// One answer on its way to a connection.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Adds a row's columns beyond its word.
void add_fields(wire::LineWriter& line, const std::vector<wire::Field>& fields, kernels::Row row,
                const format::Model& model);

class Matrix;

/// Text, and then hits that become text piece by piece: an answer of 65,536 hits never stands whole in memory as text.
class Reply {
  public:
    Reply() = default;
    explicit Reply(std::string text) : text_(std::move(text)) {}
    /// An ERR; text only when it is taken or `with_suggestions` is called.
    Reply(wire::Form form, Error error) : form_(form), error_(std::move(error)), error_is_due_(true) {}
    /// The answer cannot go on: the connection is to be closed.
    static Reply broken() {
        Reply reply;
        reply.is_broken_ = true;
        return reply;
    }
    /// Text of which more follows: `rest` makes it.
    Reply(std::string text, std::shared_ptr<Matrix> rest) : text_(std::move(text)), rest_(std::move(rest)) {}
    /// An OK with these status fields and hits. The model is kept alive until the reply is gone.
    Reply(wire::Form form, wire::Verb verb, const std::vector<wire::StatusField>& status,
          std::vector<kernels::Hit> hits, std::vector<wire::Field> fields, std::shared_ptr<const format::Model> model);

    /// Appends at least one line of what is left, and more until `out` has `enough_bytes`.
    void append_to(std::string& out, std::size_t enough_bytes);
    /// Whether all that is here has been taken.
    bool finished() const { return text_.empty() && !error_is_due_ && next_ == hits_.size() && !tail_is_due_; }
    bool is_broken() const { return is_broken_; }
    /// About what it holds in memory.
    std::size_t size_bytes() const { return text_.size() + hits_.size() * sizeof(kernels::Hit); }
    /// What makes the rest of the answer; null where there is none.
    const std::shared_ptr<Matrix>& rest() const { return rest_; }
    /// Of an ERR.
    const std::optional<Error>& error() const { return error_; }
    /// To an unknown_word of which nothing is taken yet.
    void suggest(std::vector<std::string> suggestions) { suggestions_ = std::move(suggestions); }

  private:
    std::string text_;
    wire::Form form_ = wire::Form::text;
    std::optional<Error> error_;
    bool error_is_due_ = false;
    std::vector<std::string> suggestions_;
    std::vector<kernels::Hit> hits_;
    std::size_t next_ = 0;
    bool tail_is_due_ = false;  // behind the hits
    std::vector<wire::Field> fields_;
    std::shared_ptr<const format::Model> model_;
    std::shared_ptr<Matrix> rest_;
    bool is_broken_ = false;
};

}  // namespace gloved::daemon
