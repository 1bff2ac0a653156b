#include "daemon/session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/log.hpp"
#include "daemon/model_set.hpp"
#include "daemon/resolve.hpp"
#include "daemon/session_loop.hpp"
#include "daemon/statistics.hpp"
#include "daemon/stored_answer.hpp"

namespace gloved::daemon {
namespace {

/// How long input is still read after the last line, so that the peer receives it.
constexpr std::chrono::seconds kLinger{2};
/// How long a daemon that stops waits for the first request of a connection.
constexpr std::chrono::seconds kFirstRequestGrace{1};

/// How long a session handles lines before other sessions of its loop get their turn. Dozens of
/// them may be busy, and one that asks little waits for all.
constexpr std::chrono::microseconds kTurn{50};

/// The answer to all requests that are open when an engine or a model fails.
Error stopped_answer() { return {ErrorCode::unavailable, "out of service; the daemon stops"}; }

}  // namespace

Session::Session(SessionLoop& loop, Socket socket, Peer peer, std::uint64_t id, Kind kind)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(peer),
      id_(id),
      kind_(kind),
      writer_wakeup_(socket_.get_executor()),
      reader_wakeup_(socket_.get_executor()) {}

Session::~Session() { loop_.remove_session(id_, peer_, kind_); }

template <class Coroutine>
void Session::spawn(Coroutine coroutine) {
    // An exception ends this session alone.
    const auto ended = [self = shared_from_this()](const std::exception_ptr& fault) {
        if (!fault) return;
        try {
            std::rethrow_exception(fault);
        } catch (const std::exception& error) {
            log_error("connection {}: {}", self->id_, error.what());
        }
        self->close();
    };
    asio::co_spawn(
        socket_.get_executor(),
        [self = shared_from_this(), coroutine] { return ((*self).*coroutine)(); }, ended);
}

void Session::start() {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    set_read_deadline();
    spawn(&Session::read_requests);
    spawn(&Session::write_answers);
    watch_for_hangup();
}

void Session::start_refused(const Error& reason) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    end_with(reason);
    spawn(&Session::write_answers);
    watch_for_hangup();
}

void Session::end_with(Error last_line) {
    answer_error(std::nullopt, std::move(last_line));
    reading_ended_ = true;
    discards_input_ = true;
    read_deadline_ = Clock::time_point::max();
    reader_wakeup_.notify();
}

bool Session::has_room() const {
    if (awaits_reload_) return false;
    return slots_.empty() || (slots_.size() < kMaxUnanswered && held_bytes_ < kMaxHeldBytes);
}

asio::awaitable<void> Session::read_requests() {
    const auto self = shared_from_this();
    auto turn_began = Clock::now();
    while (!discards_input_ && !reading_ended_) {
        while (has_room() && !reading_ended_) {
            const auto line = lines_.next();
            if (!line) break;
            line_began_ = Clock::time_point::max();
            handle_line(*line);
            // Let other sessions run.
            if (Clock::now() - turn_began < kTurn) continue;
            co_await asio::post(socket_.get_executor(), asio::use_awaitable);
            turn_began = Clock::now();
        }
        if (reading_ended_) break;
        if (lines_.too_long()) {
            end_with({ErrorCode::too_long,
                      fmt::format("a line has at most {} bytes; closing", wire::kMaxLineBytes)});
            break;
        }
        if (!has_room()) {
            // The peer does not read its answers, or sends too fast: its input stays in the kernel.
            read_deadline_ = Clock::time_point::max();
            co_await reader_wakeup_.wait();
            turn_began = Clock::now();
            continue;
        }
        set_read_deadline();
        error_code error;
        co_await socket_.async_wait(Socket::wait_read, ignoring(error));
        if (error || reading_ended_) break;
        // Into a shared buffer: ten thousand idle connections hold no buffers of their own.
        auto& buffer = loop_.read_buffer();
        const std::size_t size = socket_.read_some(asio::buffer(buffer), error);
        if (error == asio::error::would_block) continue;
        if (error == asio::error::eof) {
            // A last line without LF is a request, unless we have shut the input down: then it may
            // be half a line.
            const auto rest = lines_.take_rest();
            if (rest && !input_shut_down_) handle_line(*rest);
            break;
        }
        if (error) break;
        lines_.append({buffer.data(), size});
        turn_began = Clock::now();
        // No deadline while lines are handled; the next wait sets one.
        if (!draining_) read_deadline_ = Clock::time_point::max();
    }
    reading_ended_ = true;
    // Lingering has a deadline of its own.
    if (!lingering_) read_deadline_ = Clock::time_point::max();
    writer_wakeup_.notify();
}

void Session::handle_line(std::string_view line) {
    has_asked_ = true;
    if (draining_ && !input_shut_down_) stop_reading();
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
            reading_ended_ = true;
            discards_input_ = true;  // what it sends after QUIT is not read
            return;
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
    slot->verb = verb;
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
    std::vector<std::size_t> places(loop_.models().size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    if (!request.words.empty()) {
        const auto place = find_model(loop_.models(), request.words[0]);
        if (!place) return answer_error(request.verb, place.error());
        places = {*place};
    }
    auto slot = make_slot(request.verb);
    slots_.push_back(slot);
    awaits_reload_ = true;
    loop_.owner().reload(loop_, places, [slot, places](const Status& done) {
        const auto self = slot->session.lock();
        if (!self || slot->ready) return;
        SessionLoop::Models reloaded;
        for (const std::size_t place : places) reloaded.push_back(self->loop_.models()[place]);
        self->finish(slot, done ? models_reply(slot->form, wire::Verb::reload, reloaded)
                                : Reply(slot->form, done.error()));
        self->awaits_reload_ = false;
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
    slot->place = *place;
    slot->worker = loaded->find_worker(request.options.engine);
    // The slot first: a submitted request always has its place.
    slots_.push_back(slot);
    const bool is_query = needs_engine(request);
    slot->fields = request.options.fields;
    slot->certify = request.options.certify;
    const bool quick = is_quick(request, loaded->vocabulary().rules_for(request.options));
    if (is_query && quick) return ask_engine(slot, request);
    if (!is_query && quick) return look_up(slot, request);
    ask_worker(slot, std::move(request), line);
}

EngineReply Session::about_answer(Slot& slot, Clock::time_point computed) {
    return {*slot.verb,  slot.form,        std::move(slot.fields), slot.certify,
            slot.ranked, slot.notes.get(), slot.audited.get(),     computed - slot.times.arrived};
}

void Session::ask_engine(const SlotPointer& slot, const wire::Request& request) {
    const format::Model& model = slot->model->model();
    auto resolved = resolve_query(request, slot->model->vocabulary(), slot->form);
    if (!resolved) return finish_here(slot, Reply(slot->form, std::move(resolved).error()));
    slot->notes = std::move(resolved->notes);
    slot->audited = std::move(resolved->audited);
    slot->ranked = resolved->ranked;
    if (auto hits = find_stored_answer(request, resolved->query, *slot->model)) {
        slot->model->count_stored_answer();
        slot->worker->count_look_up();
        const EngineReply about = about_answer(*slot, Clock::now());
        return finish_here(slot, stored_reply(about, slot->model, *std::move(hits)));
    }
    slot->kind = Job::Kind::query;
    slot->query = std::move(resolved->query);
    hold(*slot, kRequestBytes + query_bytes(slot->query) +
                    told_bytes(slot->notes.get(), slot->audited.get()) +
                    expected_answer_bytes(request, model));
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
    const bool is_strict = slot->model->vocabulary().rules_for(request.options).are_strict();
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
    const bool may_refuse = at_workers_ > 0;
    ++at_workers_;
    if (loop_.submit(*slot->worker, slot, may_refuse)) return;
    --at_workers_;
    finish(slot,
           Reply(slot->form, Error{ErrorCode::busy, "too many requests are waiting; try again"}));
}

void Session::take_answer(const std::shared_ptr<Job>& job) {
    const auto slot = std::static_pointer_cast<Slot>(job);
    if (const auto self = slot->session.lock()) self->accept_answer(slot);
}

void Session::accept_answer(const SlotPointer& slot) {
    --at_workers_;
    // An answer in pieces counts from its first piece to its last.
    if (!slot->begun) slot->first_taken = slot->times.taken;
    slot->times.taken = slot->first_taken;
    reader_wakeup_.notify();
    Reply reply = std::move(slot->reply);
    if (slot->error) {
        // In the middle of an answer an ERR line would look like one of its lines.
        reply = slot->begun ? Reply::broken() : Reply(slot->form, *std::move(slot->error));
        slot->error = std::nullopt;
    } else if (slot->kind == Job::Kind::query) {
        const EngineReply about = about_answer(*slot, slot->times.computed);
        reply = engine_reply(about, slot->model, slot->worker->engine().kind(),
                             std::move(slot->answer));
    }
    slot->query = {};
    slot->notes = nullptr;
    slot->audited = nullptr;
    finish(slot, std::move(reply));
}

void Session::finish_here(const SlotPointer& slot, Reply reply) {
    slot->times.taken = slot->times.arrived;
    slot->times.computed = Clock::now();
    finish(slot, std::move(reply));
}

void Session::finish(const SlotPointer& slot, Reply reply) {
    slot->reply = std::move(reply);
    hold(*slot, kRequestBytes + slot->reply.held_bytes());
    const Error* const error = slot->reply.error();
    if (error == nullptr || error->code != ErrorCode::unknown_word || slot->model == nullptr)
        return mark_ready(slot);
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
    ++at_workers_;
    if (loop_.submit(*slot->worker, slot, false)) return;
    --at_workers_;
    slot->reply = Reply::broken();  // the worker is stopped
    slot->ready = true;
}

asio::awaitable<void> Session::write_answers() {
    const auto self = shared_from_this();
    error_code error;
    while (!error) {
        if (slots_.empty() && reading_ended_) break;
        if (slots_.empty() || !slots_.front()->ready) {
            co_await writer_wakeup_.wait();
            continue;
        }
        fill_chunk();
        error = check_files();
        if (!error) error = release_slots();
        if (error) break;
        error = co_await send_chunk();
        count_written();
        chunk_.text.clear();
        chunk_.ended.clear();
        chunk_.sent_bytes = 0;
        reader_wakeup_.notify();
        // Let other sessions run: a peer that reads as fast as we write would occupy the loop.
        co_await asio::post(socket_.get_executor(), asio::use_awaitable);
        if (!slots_.empty()) continue;
        // An idle connection holds no buffers. (Assigning an empty value would keep the capacity.)
        std::string().swap(chunk_.text);
        std::vector<SlotPointer>().swap(chunk_.slots);
        std::vector<Ended>().swap(chunk_.ended);
        set_read_deadline();
    }
    if (!error && discards_input_) {
        lingering_ = true;
        socket_.shutdown(Socket::shutdown_send, error);
        co_await discard_input();
    }
    close();
}

void Session::fill_chunk() {
    while (!slots_.empty() && slots_.front()->ready && chunk_.text.size() < kTurnBytes) {
        Slot& slot = *slots_.front();
        if (loop_.owner().has_fault() && !slot.begun)
            slot.reply = Reply(slot.form, stopped_answer());
        append_piece(slot);
        chunk_.slots.push_back(slots_.front());
        if (!slot.reply.finished() || slot.reply.is_broken()) return;
        drop_first_slot();
    }
}

void Session::append_piece(Slot& slot) {
    slot.reply.append_to(chunk_.text, kPieceBytes);
    slot.text_end = chunk_.text.size();
}

void Session::drop_first_slot() {
    held_bytes_ -= slots_.front()->held_bytes;
    slots_.pop_front();
}

/// Words are read from the model's file as they are rendered, so this comes after all rendering.
error_code Session::check_files() {
    bool unchanged = true;
    EngineWorker* checked = nullptr;
    for (const SlotPointer& slot : chunk_.slots) {
        if (slot->worker == nullptr || slot->worker == checked) continue;
        checked = slot->worker;
        unchanged = checked->files_are_unchanged() && unchanged;
    }
    if (!unchanged) {
        chunk_.text.clear();
        for (const SlotPointer& slot : chunk_.slots) {
            if (slot->begun) return asio::error::connection_aborted;
            slot->reply = Reply(slot->form, stopped_answer());
            append_piece(*slot);
        }
        // The last one had more to write, which the ERR line replaces.
        if (!slots_.empty() && slots_.front() == chunk_.slots.back()) drop_first_slot();
    }
    for (const SlotPointer& slot : chunk_.slots) slot->begun = true;
    return {};
}

error_code Session::release_slots() {
    const SlotPointer last = chunk_.slots.back();
    for (const SlotPointer& slot : chunk_.slots) {
        if (slot->reply.finished() && !slot->reply.is_broken())
            chunk_.ended.push_back(
                {{slot->verb, slot->place}, slot->reply.error_code(), slot->times, slot->text_end});
    }
    // A peer may take long to read the text. Answers in it must not keep a replaced model.
    chunk_.slots.clear();
    if (last->reply.is_broken()) return asio::error::connection_aborted;
    if (last->reply.is_costly()) request_next_piece(last);
    return {};
}

void Session::count_written() {
    const auto now = Clock::now();
    for (const Ended& answer : chunk_.ended) {
        loop_.count_answer(peer_, answer.asked, answer.code, now - answer.times.arrived);
        if (answer.times.computed != Clock::time_point())
            loop_.statistics().record(answer.times, now);
    }
}

asio::awaitable<error_code> Session::send_chunk() {
    const auto timeout = loop_.settings().limits.write_timeout;
    error_code error;
    write_deadline_ = Clock::now() + timeout;
    const std::string_view text = chunk_.text;
    while (chunk_.sent_bytes < text.size()) {
        const std::string_view rest = text.substr(chunk_.sent_bytes, kSliceBytes);
        const std::size_t sent = socket_.write_some(asio::buffer(rest), error);
        if (!error) {
            chunk_.sent_bytes += sent;
            write_deadline_ = Clock::now() + timeout;
        } else if (error != asio::error::would_block) {
            break;
        } else if (Clock::now() >= write_deadline_) {
            loop_.statistics().connections().count(CloseReason::unread);
            error = asio::error::timed_out;
            break;
        } else {
            error.clear();
            wait_for_room();
            co_await writer_wakeup_.wait();
        }
    }
    write_deadline_ = Clock::time_point::max();
    co_return error;
}

/// Wakes the writer when three quarters of the system's buffer are empty. `enforce_deadlines` wakes
/// it sooner.
void Session::wait_for_room() {
    if (awaits_room_) return;
    awaits_room_ = true;
    socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code&) {
        self->awaits_room_ = false;
        self->writer_wakeup_.notify();
    });
}

/// Closes the session when the peer has closed both directions: nobody reads the answers. (A peer
/// that has only finished sending still waits for them; to the reader both look the same.)
void Session::watch_for_hangup() {
    socket_.async_wait(Socket::wait_error, [self = shared_from_this()](const error_code& error) {
        if (error) return;
        // Asio may report an event of an earlier connection with the same descriptor: ask the
        // system.
        pollfd now{self->socket_.native_handle(), 0, 0};
        if (::poll(&now, 1, 0) == 0) return self->watch_for_hangup();
        // While lingering, the end of input looks the same.
        if (!self->lingering_) self->close();
    });
}

/// Reads and drops input until the peer closes: closing with unread input would make the peer's
/// system drop the last answer.
asio::awaitable<void> Session::discard_input() {
    read_deadline_ = Clock::now() + kLinger;
    error_code error;
    while (!error) {
        co_await socket_.async_wait(Socket::wait_read, ignoring(error));
        if (error) break;
        socket_.read_some(asio::buffer(loop_.read_buffer()), error);
        if (error == asio::error::would_block) error = {};
    }
}

void Session::set_read_deadline() {
    const Limits& limits = loop_.settings().limits;
    const auto now = Clock::now();
    if (reading_ended_ || draining_) return;
    if (!lines_.partial().empty()) {
        // From the line's first byte: sending one byte a second does not extend it.
        if (line_began_ == Clock::time_point::max()) line_began_ = now;
        read_deadline_ = line_began_ + limits.line_timeout;
    } else if (limits.idle_timeout.count() > 0 && slots_.empty()) {
        read_deadline_ = now + limits.idle_timeout;
    } else {
        read_deadline_ = Clock::time_point::max();
    }
}

void Session::enforce_deadlines(Clock::time_point now) {
    // The writer tries once more, then fails with timed_out.
    if (now >= write_deadline_) writer_wakeup_.notify();
    if (now < read_deadline_) return;
    if (reading_ended_) return close();  // lingering
    if (draining_) return stop_reading();
    const bool idle = lines_.partial().empty();
    loop_.statistics().connections().count(idle ? CloseReason::idle : CloseReason::slow_line);
    // The codes tell a client that this line answers none of its requests.
    end_with(idle ? Error{ErrorCode::idle, "idle for too long; closing"}
                  : Error{ErrorCode::timeout, "the line did not end in time; closing"});
}

void Session::begin_drain() {
    draining_ = true;
    if (loop_.owner().has_fault()) {
        // Do not wait for a RELOAD.
        for (const auto& slot : slots_) slot->ready = slot->ready || slot->worker == nullptr;
        writer_wakeup_.notify();
    }
    if (reading_ended_) return;
    if (has_asked_ || loop_.owner().has_fault()) return stop_reading();
    read_deadline_ = Clock::now() + kFirstRequestGrace;
}

void Session::stop_reading() {
    read_deadline_ = Clock::time_point::max();
    pollfd now{socket_.native_handle(), POLLRDHUP, 0};
    // If the peer has ended its side, all has arrived; the last line may lack its LF.
    if (::poll(&now, 1, 0) > 0) return;
    // The reader still gets what has arrived, then the end.
    input_shut_down_ = true;
    error_code ignored;
    socket_.shutdown(Socket::shutdown_receive, ignored);
}

std::size_t Session::unanswered() const {
    // Answers have left the slots when the text with their ends is being written.
    const auto unsent = std::ranges::count_if(
        chunk_.ended, [&](const Ended& answer) { return answer.text_end > chunk_.sent_bytes; });
    return slots_.size() + static_cast<std::size_t>(unsent);
}

bool Session::is_owed_answers_of(const std::vector<std::shared_ptr<LoadedModel>>& models) const {
    return std::ranges::any_of(slots_, [&](const SlotPointer& slot) {
        return std::ranges::find(models, slot->model) != models.end();
    });
}

void Session::close() {
    for (const SlotPointer& slot : slots_) slot->abandoned.store(true, std::memory_order_relaxed);
    reading_ended_ = true;
    error_code ignored;
    socket_.close(ignored);
    slots_.clear();
    writer_wakeup_.notify();
    reader_wakeup_.notify();
}

}  // namespace gloved::daemon
