// What a Session does with the requests that it has read: answers them, or gives them to engines.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/few_rows.hpp"
#include "daemon/model_set.hpp"
#include "daemon/resolve.hpp"
#include "daemon/session.hpp"
#include "daemon/session_loop.hpp"

namespace gloved::daemon {

Error Session::stopped_answer() {
    return {ErrorCode::unavailable, "out of service; the daemon stops"};
}

void Session::handle_line(std::string_view line) {
    if (input_ == Input::last_call) stop_reading();
    advance(Input::open);
    // What had arrived before the input was shut down.
    if (loop_.owner().has_fault()) return answer_error(std::nullopt, stopped_answer());
    auto request = wire::parse_request(line);
    if (!request) return answer_error(std::nullopt, std::move(request).error());
    const wire::Verb verb = request->verb;
    switch (verb) {
        case wire::Verb::ping:
            return answer_now(verb, Reply(form_, verb));
        case wire::Verb::format:
            form_ = request->form;
            return answer_now(verb, Reply(form_, verb));
        case wire::Verb::help:
            return answer_now(verb, help_reply(form_));
        case wire::Verb::models:
            return answer_now(verb, models_reply(form_, verb, loop_.models()));
        case wire::Verb::use:
            return use(*request);
        case wire::Verb::lists:
            return show_lists(*request);
        case wire::Verb::stats:
            return show_statistics(*request);
        case wire::Verb::reload:
            return reload(*request);
        case wire::Verb::quit:
            answer_now(verb, Reply(form_, verb));
            return advance(Input::last_line);  // what it sends after QUIT is not read
        default:
            return submit(*std::move(request), line);
    }
}

Session::SlotPointer Session::make_slot(std::optional<wire::Verb> verb) {
    // 256: two list nodes, places in queues, and the allocator's overhead.
    static_assert(sizeof(Slot) + 256 <= kRequestBytes);
    auto slot = std::make_shared<Slot>();
    slot->session = weak_from_this();
    slot->connection = id_;
    slot->asked.verb = verb;
    slot->form = form_;
    slot->times.arrived = Clock::now();
    return slot;
}

void Session::hold(Slot& slot, std::size_t bytes) {
    held_bytes_ += bytes - slot.held_bytes;
    slot.held_bytes = bytes;
}

void Session::answer_now(std::optional<wire::Verb> verb, Reply reply) {
    auto slot = make_slot(verb);
    slots_.push_back(slot);
    finish(slot, std::move(reply));
}

void Session::answer_error(std::optional<wire::Verb> verb, Error error) {
    answer_now(verb, Reply(form_, std::move(error)));
}

Result<std::size_t> Session::place_for(const wire::Request& request) const {
    if (request.options.model.empty()) return model_;
    return find_model(loop_.models(), request.options.model);
}

void Session::use(const wire::Request& request) {
    const auto place = find_model(loop_.models(), request.words[0]);
    if (!place) return answer_error(request.verb, place.error());
    model_ = *place;
    answer_now(request.verb, use_reply(form_, *loop_.models()[model_]));
}

void Session::show_lists(const wire::Request& request) {
    const auto place = place_for(request);
    if (!place) return answer_error(request.verb, place.error());
    answer_now(request.verb, lists_reply(form_, *loop_.models()[*place]));
}

void Session::show_statistics(const wire::Request& request) {
    const auto place = place_for(request);
    if (!place) return answer_error(request.verb, place.error());
    auto slot = make_slot(request.verb);
    slots_.push_back(slot);
    hold(*slot, kRequestBytes + kStatisticsBytes);
    std::optional<std::size_t> of_model;
    if (request.words.empty()) of_model = *place;
    loop_.owner().report(loop_, form_, of_model, [slot](Reply reply) {
        const auto self = slot->session.lock();
        // After a fault it is answered already.
        if (self && !slot->ready) self->finish(slot, std::move(reply));
    });
}

void Session::reload(const wire::Request& request) {
    if (peer_.uid != 0 && peer_.uid != ::geteuid()) {
        return answer_error(request.verb,
                            {ErrorCode::forbidden, "RELOAD is for root and the daemon's own user"});
    }
    std::optional<std::size_t> place;  // all
    if (!request.words.empty()) {
        const auto named = find_model(loop_.models(), request.words[0]);
        if (!named) return answer_error(request.verb, named.error());
        place = *named;
    }
    auto slot = make_slot(request.verb);
    slots_.push_back(slot);
    loop_.owner().reload(loop_, place, [slot, place](const Status& done) {
        const auto self = slot->session.lock();
        if (!self || slot->ready) return;
        const Models& all = self->loop_.models();
        self->finish(slot, !done ? Reply(slot->form, done.error())
                                 : models_reply(slot->form, wire::Verb::reload,
                                                place ? Models{all[*place]} : all));
        self->reader_wakeup_.notify();
    });
}

void Session::submit(wire::Request request, std::string_view line) {
    const auto place = place_for(request);
    if (!place) return answer_error(request.verb, place.error());
    const auto& loaded = loop_.models()[*place];
    if (Status accepted = loop_.check(request, *loaded); !accepted)
        return answer_error(request.verb, accepted.error());
    auto slot = make_slot(request.verb);
    slot->model = loaded;
    slot->vocabulary = &loaded->vocabulary();
    slot->asked.model = *place;
    slot->worker = loaded->find_worker(request.options.engine);
    // The slot first: a submitted request always has its place.
    slots_.push_back(slot);
    const bool is_query = needs_engine(request);
    slot->fields = request.options.fields;
    slot->certify = request.options.certify;
    const bool quick = is_quick(request, loaded->vocabulary().rules_for(request));
    if (is_query && quick) return ask_engine(slot, request);
    if (!is_query && quick) return look_up(slot, request);
    ask_worker(slot, std::move(request), line);
}

EngineReply Session::about_answer(Slot& slot, Clock::time_point computed) {
    return {*slot.asked.verb, slot.form,     std::move(slot.fields),
            slot.certify,     slot.resolved, computed - slot.times.arrived};
}

void Session::ask_engine(const SlotPointer& slot, const wire::Request& request) {
    const format::Model& model = slot->model->model();
    auto resolved = resolve_query(request, slot->model->vocabulary(), slot->form);
    if (!resolved) return finish_here(slot, Reply(slot->form, std::move(resolved).error()));
    slot->resolved = *std::move(resolved);
    if (auto hits = find_stored_answer(request, slot->resolved.query, slot->model->name(), model,
                                       slot->model->running()->neighbors())) {
        slot->model->running()->count_stored_answer();
        slot->worker->count_look_up();
        const EngineReply about = about_answer(*slot, Clock::now());
        return finish_here(slot, stored_reply(about, slot->model, *std::move(hits)));
    }
    slot->kind = Job::Kind::query;
    hold(*slot,
         kRequestBytes + slot->resolved.held_bytes() + expected_answer_bytes(request, model));
    submit_job(slot);
}

void Session::look_up(const SlotPointer& slot, const wire::Request& request) {
    auto reply = reply_without_engine(request, model_of(slot->model), slot->model->vocabulary(),
                                      slot->model->name(), slot->form, slot->times.arrived);
    if (!reply) return finish_here(slot, Reply(slot->form, std::move(reply).error()));
    slot->worker->count_look_up();
    finish_here(slot, *std::move(reply));
}

void Session::ask_worker(const SlotPointer& slot, wire::Request request, std::string_view line) {
    const std::size_t parsed = parsed_bytes(request);
    const bool is_large = parsed > std::max(kMaxParsedBytes, line.size());
    const format::Model& model = slot->model->model();
    const std::size_t vector_bytes = needs_engine(request) ? model.dim() * sizeof(float) : 0;
    const bool is_strict = slot->model->vocabulary().rules_for(request).are_strict();
    const bool is_audited = request.options.certify && slot->form == wire::Form::json;
    hold(*slot, kRequestBytes + (is_large ? line.size() : parsed) + vector_bytes +
                    (is_strict ? 0 : kMaxNotesBytes) +
                    (is_audited ? expected_audited_bytes(line) : 0) +
                    expected_answer_bytes(request, model));
    slot->kind = Job::Kind::request;
    if (is_large) {
        slot->line = line;
    } else {
        slot->request = std::make_unique<wire::Request>(std::move(request));
    }
    submit_job(slot);
}

void Session::submit_job(const SlotPointer& slot) {
    slot->queued_bytes = slot->held_bytes;
    // A connection may always have one request in the queue: nobody can lock others out.
    if (give_to_worker(slot, at_workers_ > 0)) return;
    finish(slot,
           Reply(slot->form, Error{ErrorCode::busy, "too many requests are waiting; try again"}));
}

bool Session::give_to_worker(const SlotPointer& slot, bool may_refuse) {
    const bool is_taken = loop_.submit(*slot->worker, slot, may_refuse);
    if (is_taken) ++at_workers_;
    return is_taken;
}

void Session::take_answer(const std::shared_ptr<Job>& job) {
    const auto slot = std::static_pointer_cast<Slot>(job);
    if (const auto self = slot->session.lock()) self->accept_answer(slot);
}

void Session::accept_answer(const SlotPointer& slot) {
    --at_workers_;
    reader_wakeup_.notify();
    Reply reply = std::move(slot->reply);
    if (slot->error) {
        // In the middle of an answer an ERR line would look like one of its lines.
        reply = slot->begun ? Reply::broken() : Reply(slot->form, *std::move(slot->error));
    } else if (slot->kind == Job::Kind::query) {
        const EngineReply about = about_answer(*slot, slot->times.computed);
        reply = engine_reply(about, slot->model, slot->worker->engine().kind(),
                             std::move(slot->answer));
    }
    finish(slot, std::move(reply));
}

void Session::finish_here(const SlotPointer& slot, Reply reply) {
    slot->times.taken = slot->times.arrived;
    slot->times.computed = Clock::now();
    finish(slot, std::move(reply));
}

void Session::finish(const SlotPointer& slot, Reply reply) {
    slot->reply = std::move(reply);
    slot->resolved = {};
    hold(*slot, kRequestBytes + slot->reply.held_bytes());
    const Error* const error = slot->reply.error();
    if (error == nullptr || error->code != ErrorCode::unknown_word) return mark_ready(slot);
    const auto with_suggestions = [slot](std::vector<std::string> suggestions) {
        slot->reply.suggest(std::move(suggestions));
        if (const auto self = slot->session.lock()) self->mark_ready(slot);
    };
    if (!loop_.suggester().suggest(slot->model, error->subject, loop_.io(), with_suggestions))
        mark_ready(slot);
}

void Session::mark_ready(const SlotPointer& slot) {
    slot->ready = true;
    writer_wakeup_.notify();
}

void Session::request_next_piece(const SlotPointer& slot) {
    slot->kind = Job::Kind::next_piece;
    slot->ready = false;
    slot->queued_bytes = 0;
    if (give_to_worker(slot, false)) return;
    slot->reply = Reply::broken();  // the worker is stopped
    slot->ready = true;
}

}  // namespace gloved::daemon
