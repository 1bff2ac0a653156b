#include "daemon/reply.hpp"

#include <cassert>
#include <chrono>
#include <utility>
#include <variant>

#include "common/format/layout.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/loaded_model.hpp"

namespace gloved::daemon {
namespace {

constexpr std::string_view kHelp =
    "NEAR [k=N] [min=SCORE] [top=N] [prefix=TEXT] [within=LIST,...] [without=LIST,...] "
    "[norm=raw|unit] [exclude=inputs|none] [unknown=error|skip] [case=exact|ignore] "
    "[engine=NAME] [model=NAME] [fields=row,rank,norm] [certify=0|1] EXPR\n"
    "NEAR only=N [...] WORD ... EXPR\n"
    "NEARVEC [k=N] [min=SCORE] [top=N] [prefix=TEXT] [within=LIST,...] [without=LIST,...] "
    "[engine=NAME] [model=NAME] [fields=...] "
    "[certify=0|1] NUMBER ... | base64=VECTOR\n"
    "ANALOGY [k=N] [method=add|mul] [min=SCORE] [top=N] [prefix=TEXT] [within=LIST,...] "
    "[without=LIST,...] [case=exact|ignore] [engine=NAME] [model=NAME] "
    "[fields=...] [certify=0|1] A B C\n"
    "ANALOGY only=N [...] WORD ... A B C\n"
    "RANK [top=N] [prefix=TEXT] [within=LIST,...] [without=LIST,...] [norm=raw|unit] "
    "[unknown=error|skip] [case=exact|ignore] [engine=NAME] [model=NAME] [fields=score,eligible] "
    "A B\n"
    "SIM [norm=raw|unit] [unknown=error|skip] [case=exact|ignore] [model=NAME] A B\n"
    "DIST [norm=raw|unit] [unknown=error|skip] [case=exact|ignore] [model=NAME] A B\n"
    "VEC [encoding=decimal|base64] [unknown=error|skip] [case=exact|ignore] [model=NAME] WORD ...\n"
    "ODD [norm=raw|unit] [unknown=error|skip] [case=exact|ignore] [model=NAME] A B C ...\n"
    "MATRIX [metric=cosine|sqeuclidean] [unknown=error|skip] [case=exact|ignore] [model=NAME] "
    "WORD ...\n"
    "PREFIX [k=N] [within=LIST,...] [without=LIST,...] [fields=row,rank,norm] [model=NAME] TEXT\n"
    "HAS [within=LIST,...] [fields=row,rank,norm] [case=exact|ignore] [model=NAME] WORD ...\n"
    "MODELS\n"
    "USE NAME\n"
    "LISTS [model=NAME]\n"
    "FORMAT text|json\n"
    "STATS [model=NAME] [prometheus]\n"
    "RELOAD [NAME]\n"
    "PING\n"
    "HELP\n"
    "QUIT\n"
    "EXPR adds and subtracts words: king - man + woman, 2 * paris - ( france + germany )\n"
    "only=N chooses among the first N words: NEAR only=3 cat dog car kitten\n"
    "A line that does not start with one of the words above is NEAR's EXPR.\n"
    "A, B, C are words; for RANK, SIM, DIST and ODD also groups: SIM ( king + queen ) man\n"
    "Quote a word that looks like an operator, a verb or an option: \"NEAR\" \"-\" \"a b\" "
    "\"\\x22\"\n";

/// Of a reply's status line, with a certificate and all that can be told of the request.
constexpr std::size_t kMaxFields = 18;

template <class AddColumns>
Lines one_line(wire::Form form, const AddColumns& add_columns) {
    Lines lines{1, {}, nullptr};
    wire::LineWriter line(lines.text, form, true);
    line.begin();
    add_columns(line);
    line.end();
    return lines;
}

/// The status fields of an answer that `engine` gave.
std::vector<wire::StatusField> answer_fields(const EngineReply& about, const LoadedModel& loaded,
                                             std::string engine) {
    std::vector<wire::StatusField> fields;
    fields.reserve(kMaxFields);
    fields.push_back({"engine", std::move(engine)});
    fields.push_back(time_field(about.took));
    for (auto& field : model_fields(loaded.name(), loaded.model()))
        fields.push_back(std::move(field));
    if (about.resolved.notes) about.resolved.notes->append_to(fields);
    return fields;
}

/// How many rows each bound ruled out.
void append_ruled_out(std::vector<wire::StatusField>& fields,
                      const kernels::Certificate& certificate) {
    const auto more_than = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    fields.push_back({"ruled_out_by_codes", more_than(certificate.scanned, certificate.survivors)});
    fields.push_back(
        {"ruled_out_by_vectors", more_than(certificate.survivors, certificate.rescored)});
}

Lines hit_lines(const EngineReply& about, const std::shared_ptr<LoadedModel>& loaded,
                std::vector<kernels::Hit> hits) {
    const std::size_t count = hits.size();
    return {
        count,
        {},
        std::make_unique<HitLines>(about.form, std::move(hits), about.fields, model_of(loaded))};
}

}  // namespace

Reply::Reply(wire::Form form, Error error) : error_code_(error.code), form_(form) {
    auto line = std::make_unique<ErrorLine>(form, std::move(error));
    error_ = line.get();
    source_ = std::move(line);
}

Reply::Reply(wire::Form form, wire::Verb verb, const std::vector<wire::StatusField>& status,
             Lines lines)
    : source_(std::move(lines.source)), form_(form) {
    wire::append_head(text_, form, verb, lines.count, status);
    text_ += lines.text;
    if (source_ == nullptr) wire::append_tail(text_, form);
}

void Reply::append_to(std::string& out, std::size_t enough_bytes) {
    if (!text_.empty()) {
        out += text_;
        std::string().swap(text_);
    }
    if (source_ != nullptr && !is_costly()) append_piece(out, enough_bytes);
}

void Reply::make_costly_piece() {
    assert(is_costly());
    append_piece(text_, kPieceBytes);
}

void Reply::append_piece(std::string& out, std::size_t enough_bytes) {
    source_->append_to(out, enough_bytes);
    if (!source_->finished()) return;
    if (error_ == nullptr) wire::append_tail(out, form_);
    error_ = nullptr;
    source_ = nullptr;
}

std::size_t ResolvedQuery::held_bytes() const {
    std::size_t bytes = query.excluded.capacity() * sizeof(kernels::Row);
    const auto add = [&](const kernels::QueryVector& vector) {
        bytes += vector.values.capacity() * sizeof(float);
    };
    if (const auto* cosine = std::get_if<kernels::Cosine>(&query.kind)) add(cosine->vector);
    if (const auto* count = std::get_if<kernels::CountBefore>(&query.kind)) add(count->vector);
    if (const auto* product = std::get_if<kernels::CosMul>(&query.kind)) {
        for (const auto& vector : product->positives) add(vector);
        for (const auto& vector : product->negatives) add(vector);
    }
    if (notes) bytes += notes->held_bytes();
    if (audited) bytes += audited->held_bytes();
    return bytes;
}

Reply engine_reply(const EngineReply& about, const std::shared_ptr<LoadedModel>& loaded,
                   kernels::EngineKind engine, kernels::Answer answer) {
    auto fields = answer_fields(about, *loaded, std::string(to_string(engine)));
    if (about.certify) append_certificate(fields, answer, about.resolved.audited.get());
    if (about.verb == wire::Verb::rank)
        return {about.form, about.verb, fields, rank_line(about, answer.count + 1)};
    return {about.form, about.verb, fields, hit_lines(about, loaded, std::move(answer.hits))};
}

Reply stored_reply(const EngineReply& about, const std::shared_ptr<LoadedModel>& loaded,
                   std::vector<kernels::Hit> hits) {
    auto fields = answer_fields(about, *loaded, "neighbors");
    if (about.certify) {
        fields.push_back({"pass", std::string("neighbors")});
        fields.push_back({"rescored", hits.size()});
        if (!hits.empty()) fields.push_back({"kth", hits.back().score});
    }
    if (about.resolved.audited) about.resolved.audited->append_to(fields);
    return {about.form, about.verb, fields, hit_lines(about, loaded, std::move(hits))};
}

wire::StatusField time_field(Clock::duration took) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    return {"us", static_cast<std::uint64_t>(us)};
}

std::vector<wire::StatusField> model_fields(const std::string& name, const format::Model& model) {
    return {
        {"rows", model.rows()}, {"model", name}, {"generation", format::hex(model.generation())}};
}

void append_certificate(std::vector<wire::StatusField>& fields, const kernels::Answer& answer,
                        const Audited* audited) {
    const kernels::Certificate& certificate = answer.certificate;
    fields.push_back({"pass", std::string(to_string(certificate.pass))});
    fields.push_back({"scanned", certificate.scanned});
    fields.push_back({"survivors", certificate.survivors});
    fields.push_back({"rescored", certificate.rescored});
    if (!answer.hits.empty()) fields.push_back({"kth", answer.hits.back().score});
    fields.push_back({"rejected_below", certificate.rejected_below});
    if (audited == nullptr) return;
    append_ruled_out(fields, certificate);
    audited->append_to(fields);
}

Lines rank_line(const EngineReply& about, std::uint64_t rank) {
    return one_line(about.form, [&](wire::LineWriter& line) {
        line.count("rank", rank);
        for (const wire::Field field : about.fields) {
            if (field == wire::Field::score) {
                line.score("score", about.resolved.ranked->score);
            } else {
                line.flag("eligible", about.resolved.ranked->eligible);
            }
        }
    });
}

Lines score_line(wire::Form form, std::string_view name, double value) {
    return one_line(form, [&](wire::LineWriter& line) { line.score(name, value); });
}

Reply help_reply(wire::Form form) {
    return Reply(wire::lines_reply(form, wire::Verb::help, kHelp));
}

Reply use_reply(wire::Form form, const LoadedModel& loaded) {
    return {form, wire::Verb::use, model_fields(loaded.name(), loaded.model())};
}

Reply lists_reply(wire::Form form, const LoadedModel& loaded) {
    Lines lines{loaded.vocabulary().lists().facts().size(), {}, nullptr};
    wire::LineWriter line(lines.text, form, true);
    for (const ListFacts& list : loaded.vocabulary().lists().facts()) {
        line.begin();
        line.text("list", list.name);
        line.count("words", list.words);
        line.count("missing", list.missing);
        line.text("checksum", format::hex(list.checksum));
        line.count("replaced", list.replaced);
        line.text("origin", to_string(list.origin));
        line.end();
    }
    return {form, wire::Verb::lists, model_fields(loaded.name(), loaded.model()), std::move(lines)};
}

Reply models_reply(wire::Form form, wire::Verb verb,
                   const std::vector<std::shared_ptr<LoadedModel>>& models) {
    Lines lines{models.size(), {}, nullptr};
    wire::LineWriter line(lines.text, form, true);
    for (const auto& loaded : models) {
        line.begin();
        line.text("model", loaded->name());
        line.count("rows", loaded->model().rows());
        line.count("dim", loaded->model().dim());
        line.text("generation", format::hex(loaded->model().generation()));
        line.text("engine", loaded->first_worker().engine().name());
        line.end();
    }
    return {form, verb, {}, std::move(lines)};
}

}  // namespace gloved::daemon
