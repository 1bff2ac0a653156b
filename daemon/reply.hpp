// Replies: what each verb answers, and one answer on its way to a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "daemon/text_source.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

class LoadedModel;

/// The lines of an OK: text where they are few and short, otherwise a source that makes it.
struct Lines {
    std::size_t count = 0;
    std::string text;
    std::unique_ptr<TextSource> source;
};

/// An answer as text, then a source that renders the rest piece by piece: a long answer is never
/// whole in memory as text.
class Reply {
  public:
    Reply() = default;
    explicit Reply(std::string text) : text_(std::move(text)) {}
    /// An ERR.
    Reply(wire::Form form, Error error);
    /// An OK with these status fields and lines.
    Reply(wire::Form form, wire::Verb verb, const std::vector<wire::StatusField>& status = {},
          Lines lines = {});
    /// An answer that cannot be continued: close the connection.
    static Reply broken() {
        Reply reply;
        reply.is_broken_ = true;
        return reply;
    }

    /// Appends text while `out` has less than `enough_bytes` and the next text is cheap to render.
    void append_to(std::string& out, std::size_t enough_bytes);
    /// Whether `make_costly_piece` has to render the next piece, on the engine's thread.
    bool is_costly() const { return source_ != nullptr && source_->is_costly(); }
    /// Renders the next piece of a costly source.
    void make_costly_piece();
    /// Whether all text has been appended.
    bool finished() const { return text_.empty() && source_ == nullptr; }
    bool is_broken() const { return is_broken_; }
    /// Memory that it holds, approximately.
    std::size_t held_bytes() const {
        return text_.capacity() + (source_ != nullptr ? source_->held_bytes() : 0);
    }
    /// The error of an ERR that is not finished; else null.
    const Error* error() const { return error_ != nullptr ? &error_->error() : nullptr; }
    /// The code of an ERR, finished or not.
    std::optional<ErrorCode> error_code() const { return error_code_; }
    /// Adds suggestions to an unknown_word of which nothing has been appended.
    void suggest(std::vector<std::string> suggestions) { error_->suggest(std::move(suggestions)); }

  private:
    /// Appends the source's next piece, and the tail after the last one.
    void append_piece(std::string& out, std::size_t enough_bytes);

    std::string text_;
    std::unique_ptr<TextSource> source_;  // null when it is finished
    ErrorLine* error_ = nullptr;          // source_, where that is one
    std::optional<ErrorCode> error_code_;
    wire::Form form_ = wire::Form::text;
    bool is_broken_ = false;
};

/// The status fields of every answer that a model gives: rows, model, generation.
std::vector<wire::StatusField> model_fields(const std::string& name, const format::Model& model);
/// Those of certify=1.
void append_certificate(std::vector<wire::StatusField>& fields, const kernels::Answer& answer);

/// The line of RANK.
Lines rank_line(wire::Form form, std::uint64_t rank);
/// The line of SIM or DIST: one number, a «score» or a «distance».
Lines score_line(wire::Form form, std::string_view name, double value);

Reply help_reply(wire::Form form);
/// To USE.
Reply use_reply(wire::Form form, const LoadedModel& loaded);
/// To MODELS or RELOAD: a line a model.
Reply models_reply(wire::Form form, wire::Verb verb,
                   const std::vector<std::shared_ptr<LoadedModel>>& models);

}  // namespace gloved::daemon
