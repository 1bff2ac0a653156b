// Reply: one answer on its way to a connection. Also makes the short answers of verbs.
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
#include "daemon/settings.hpp"
#include "daemon/text_source.hpp"
#include "daemon/vocabulary.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

class LoadedModel;

/// The lines of an OK reply: complete in `text` if they are few and short, otherwise rendered by
/// `source` piece by piece.
struct Lines {
    std::size_t count = 0;  ///< number of lines
    std::string text;
    std::unique_ptr<TextSource> source;
};

/// A reply: text, and perhaps a TextSource that renders the rest piece by piece, so that a long
/// answer is never whole in memory as text. Not safe for concurrent use.
class Reply {
  public:
    Reply() = default;
    explicit Reply(std::string text) : text_(std::move(text)) {}
    /// An ERR reply.
    Reply(wire::Form form, Error error);
    /// An OK reply with these status fields and lines.
    Reply(wire::Form form, wire::Verb verb, const std::vector<wire::StatusField>& status = {},
          Lines lines = {});
    /// For an answer that was begun and cannot be continued: the connection must be closed.
    static Reply broken() {
        Reply reply;
        reply.is_broken_ = true;
        return reply;
    }

    /// Appends text until `out` has `enough_bytes` in all, the reply is finished, or the next piece
    /// is costly.
    void append_to(std::string& out, std::size_t enough_bytes);
    /// Whether the next piece takes long to render: then the engine's thread has to call
    /// `make_costly_piece`, not a loop.
    bool is_costly() const { return source_ != nullptr && source_->is_costly(); }
    /// Renders the next costly piece, for `append_to`.
    void make_costly_piece();
    /// Whether all text has been appended.
    bool finished() const { return text_.empty() && source_ == nullptr; }
    bool is_broken() const { return is_broken_; }
    /// Bytes of memory that the reply holds, approximately.
    std::size_t held_bytes() const {
        return text_.capacity() + (source_ != nullptr ? source_->held_bytes() : 0);
    }
    /// The error of an ERR reply that is not finished; otherwise nullptr.
    const Error* error() const { return error_ != nullptr ? &error_->error() : nullptr; }
    /// The code of an ERR reply, finished or not; nullopt for an OK.
    std::optional<ErrorCode> error_code() const { return error_code_; }
    /// Adds suggestions to an unknown_word reply. Call it before the first append_to.
    void suggest(std::vector<std::string> suggestions) { error_->suggest(std::move(suggestions)); }

  private:
    /// Appends the source's next piece, and the tail after the last one.
    void append_piece(std::string& out, std::size_t enough_bytes);

    std::string text_;
    std::unique_ptr<TextSource> source_;  // nullptr once it is finished
    ErrorLine* error_ = nullptr;          // *source_, if that is an ErrorLine; else nullptr
    std::optional<ErrorCode> error_code_;
    wire::Form form_ = wire::Form::text;
    bool is_broken_ = false;
};

/// The word whose rank is asked for: its cosine, and whether the filter takes it.
struct RankedWord {
    double score = 0;
    bool eligible = false;
};

/// A request's query, and what its reply tells of it.
struct ResolvedQuery {
    kernels::Query query;
    std::optional<RankedWord> ranked;          ///< for a RANK with fields=
    std::unique_ptr<const LookUpNotes> notes;  ///< nullptr if there is nothing to tell
    std::unique_ptr<const Audited> audited;    ///< for certify=1 in JSON, unless it is too long

    /// Bytes of memory that they hold, besides the object itself, also as a part of the reply.
    std::size_t held_bytes() const;
};

/// What a request asks of the reply to an engine's answer.
struct EngineReply {
    wire::Verb verb;
    wire::Form form;
    std::vector<wire::Field> fields;
    bool certify;
    const ResolvedQuery& resolved;
    Clock::duration took;  ///< from reading the request to the engine's answer
};

/// The reply to NEAR with hits of find_stored_answer. Its lines are rendered later from `loaded`.
Reply stored_reply(const EngineReply& about, const std::shared_ptr<LoadedModel>& loaded,
                   std::vector<kernels::Hit> hits);

/// The reply to NEAR, NEARVEC, ANALOGY or RANK. Its lines are rendered later from `loaded`.
Reply engine_reply(const EngineReply& about, const std::shared_ptr<LoadedModel>& loaded,
                   kernels::EngineKind engine, kernels::Answer answer);

/// The status field of how long a request took, in microseconds.
wire::StatusField time_field(Clock::duration took);
/// The status fields of every answer about a model: rows, model, generation. `name` is the model's.
std::vector<wire::StatusField> model_fields(const std::string& name, const format::Model& model);
/// Appends the status fields that certify=1 asks for. `audited`: what others need to check the
/// answer; nullptr: nothing of that.
void append_certificate(std::vector<wire::StatusField>& fields, const kernels::Answer& answer,
                        const Audited* audited);

/// The line of the reply to RANK, with the fields that it asks for.
Lines rank_line(const EngineReply& about, std::uint64_t rank);
/// The line of the reply to SIM or DIST: one number, called `name` («score», «distance») in JSON.
Lines score_line(wire::Form form, std::string_view name, double value);

/// The reply to HELP.
Reply help_reply(wire::Form form);
/// The reply to USE; `loaded` is the model that it selects.
Reply use_reply(wire::Form form, const LoadedModel& loaded);
/// The reply to LISTS: one line per list of `loaded`.
Reply lists_reply(wire::Form form, const LoadedModel& loaded);
/// The reply to MODELS or RELOAD (`verb`): one line per model.
Reply models_reply(wire::Form form, wire::Verb verb,
                   const std::vector<std::shared_ptr<LoadedModel>>& models);

}  // namespace gloved::daemon
