#include "daemon/session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/log.hpp"
#include "daemon/model_set.hpp"
#include "daemon/server.hpp"
#include "daemon/statistics.hpp"
#include "daemon/stats_reply.hpp"

namespace gloved::daemon {
namespace {

/// How long input is still read after the last line, so that the peer receives it.
constexpr std::chrono::seconds kLinger{2};
/// How long a daemon that stops waits for the first request of a connection.
constexpr std::chrono::seconds kFirstRequestGrace{1};

/// Parsing a longer line takes a millisecond or more.
constexpr std::size_t kLongLine = 8192;
/// A larger answer, of STATS say, or a request of many words takes the loop as long.
constexpr std::size_t kLongAnswer = 4096;

/// The answer to all requests that are open when an engine or a model fails.
Error stopped_answer() { return {ErrorCode::unavailable, "out of service; the daemon stops"}; }

}  // namespace

Session::Session(Server& server, Socket socket, Peer peer, std::uint64_t id, Kind kind)
    : server_(server),
      socket_(std::move(socket)),
      peer_(peer),
      id_(id),
      kind_(kind),
      writer_wakeup_(socket_.get_executor()),
      reader_wakeup_(socket_.get_executor()) {}

Session::~Session() { server_.remove_session(id_, peer_, kind_ == Kind::refused); }

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
    while (!discards_input_ && !reading_ended_) {
        while (has_room() && !reading_ended_) {
            const auto line = lines_.next();
            if (!line) break;
            line_began_ = Clock::time_point::max();
            const bool is_long = line->size() > kLongLine;
            const std::size_t bytes_before = held_bytes_;
            handle_line(*line);
            // Let other sessions run after work that took the loop a while.
            if (is_long || held_bytes_ > bytes_before + kLongAnswer)
                co_await asio::post(socket_.get_executor(), asio::use_awaitable);
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
            continue;
        }
        set_read_deadline();
        error_code error;
        co_await socket_.async_wait(Socket::wait_read, ignoring(error));
        if (error || reading_ended_) break;
        // Into a shared buffer: ten thousand idle connections hold no buffers of their own.
        auto& buffer = server_.read_buffer();
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
    if (server_.fault()) return answer_error(std::nullopt, stopped_answer());
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
            return answer_now(verb, models_reply(form_, verb, server_.models().all()));
        case wire::Verb::use:
            return use(*request);
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

std::shared_ptr<Session::Slot> Session::make_slot(std::optional<wire::Verb> verb) const {
    // 256: the job's callback, two list nodes, and the allocator's overhead.
    static_assert(sizeof(Slot) + sizeof(Job) + 256 <= kRequestBytes);
    auto slot = std::make_shared<Slot>();
    slot->verb = verb;
    slot->form = form_;
    slot->times.arrived = Clock::now();
    return slot;
}

void Session::answer_now(std::optional<wire::Verb> verb, Reply reply) {
    auto slot = make_slot(verb);
    slot->reply = std::move(reply);
    slot->ready = true;
    slot->held_bytes = kRequestBytes + slot->reply.held_bytes();
    held_bytes_ += slot->held_bytes;
    slots_.push_back(std::move(slot));
    writer_wakeup_.notify();
}

void Session::answer_error(std::optional<wire::Verb> verb, Error error) {
    answer_now(verb, Reply(form_, std::move(error)));
}

Result<std::shared_ptr<LoadedModel>> Session::model_for(const wire::Request& request) const {
    if (request.options.model.empty()) return server_.models().all()[model_];
    const auto index = server_.models().find(request.options.model);
    if (!index) return index.error();
    return server_.models().all()[*index];
}

void Session::use(const wire::Request& request) {
    const auto index = server_.models().find(request.words[0]);
    if (!index) return answer_error(request.verb, index.error());
    model_ = *index;
    answer_now(request.verb, use_reply(form_, *server_.models().all()[model_]));
}

void Session::show_statistics(const wire::Request& request) {
    const auto loaded = model_for(request);
    if (!loaded) return answer_error(request.verb, loaded.error());
    if (!request.words.empty())
        return answer_now(request.verb, metrics_reply(form_, server_.state()));
    answer_now(request.verb, stats_reply(form_, server_.state(), **loaded));
}

void Session::reload(const wire::Request& request) {
    if (peer_.uid != 0 && peer_.uid != ::geteuid()) {
        return answer_error(request.verb,
                            {ErrorCode::forbidden, "RELOAD is for root and the daemon's own user"});
    }
    std::vector<std::size_t> places = server_.models().all_places();
    if (!request.words.empty()) {
        const auto index = server_.models().find(request.words[0]);
        if (!index) return answer_error(request.verb, index.error());
        places = {*index};
    }
    auto slot = make_slot(request.verb);
    slots_.push_back(slot);
    awaits_reload_ = true;
    server_.models().reload(
        places, [this, slot, session = weak_from_this(), places](const Status& done) {
            const auto self = session.lock();
            if (!self) return;
            ModelSet::Models reloaded;
            for (const std::size_t place : places)
                reloaded.push_back(server_.models().all()[place]);
            slot->reply = done ? models_reply(slot->form, wire::Verb::reload, reloaded)
                               : Reply(slot->form, done.error());
            mark_ready(slot);
            awaits_reload_ = false;
            reader_wakeup_.notify();
        });
}

void Session::submit(wire::Request request, std::string_view line) {
    auto loaded = model_for(request);
    if (!loaded) return answer_error(request.verb, loaded.error());
    if (Status accepted = server_.check(request, **loaded); !accepted)
        return answer_error(request.verb, accepted.error());
    auto slot = make_slot(request.verb);
    slot->model = *std::move(loaded);
    slot->worker = slot->model->find_worker(request.options.engine);
    const std::size_t parsed = parsed_bytes(request);
    const bool is_large = parsed > std::max(kMaxParsedBytes, line.size());
    slot->held_bytes = kRequestBytes + (is_large ? line.size() : parsed) +
                       expected_answer_bytes(request, slot->model->model());
    Job job = job_for(slot);
    if (is_large) {
        job.line = line;
    } else {
        job.request = std::move(request);
    }
    // The slot first: a submitted request always has its place.
    slots_.push_back(slot);
    held_bytes_ += slot->held_bytes;
    if (slot->worker->submit(std::move(job), slot->held_bytes)) {
        server_.count_submitted(*slot->worker);
    } else {
        slot->reply =
            Reply(slot->form, Error{ErrorCode::busy, "too many requests are waiting; try again"});
        mark_ready(slot);
    }
}

Job Session::job_for(const std::shared_ptr<Slot>& slot) {
    Job job;
    job.connection = id_;
    job.form = slot->form;
    job.times.arrived = slot->times.arrived;
    job.abandoned = abandoned_;
    // Keeps the slot alive, not the session: a closed connection frees everything else at once. The
    // loop reads the slot's reply only after the posted handler has marked it ready.
    job.done = [slot, session = weak_from_this(), executor = socket_.get_executor(),
                server = &server_](Reply reply, const Times& times) {
        slot->reply = std::move(reply);
        // An answer in pieces counts from its first piece to its last.
        if (!slot->begun) slot->times.taken = times.taken;
        slot->times.computed = times.computed;
        asio::post(executor, [slot, session, server] {
            server->count_answered(*slot->worker);
            if (const auto self = session.lock()) self->take_answer(slot);
        });
    };
    return job;
}

void Session::take_answer(const std::shared_ptr<Slot>& slot) {
    // Replaces the estimate by the true size.
    held_bytes_ -= slot->held_bytes;
    slot->held_bytes = kRequestBytes + slot->reply.held_bytes();
    held_bytes_ += slot->held_bytes;
    reader_wakeup_.notify();
    const Error* const error = slot->reply.error();
    if (error == nullptr || error->code != ErrorCode::unknown_word) return mark_ready(slot);
    const auto with_suggestions =
        [slot, session = weak_from_this()](std::vector<std::string> suggestions) {
            slot->reply.suggest(std::move(suggestions));
            if (const auto self = session.lock()) self->mark_ready(slot);
        };
    if (!server_.suggester().suggest(slot->model, error->subject, with_suggestions))
        mark_ready(slot);
}

void Session::mark_ready(const std::shared_ptr<Slot>& slot) {
    slot->ready = true;
    writer_wakeup_.notify();
}

void Session::request_next_piece(const std::shared_ptr<Slot>& slot) {
    Job job = job_for(slot);
    job.is_continuation = true;
    job.begun = std::exchange(slot->reply, Reply());
    slot->ready = false;
    if (slot->worker->submit(std::move(job), 0)) {
        server_.count_submitted(*slot->worker);
    } else {
        slot->reply = Reply::broken();  // the worker is stopped
        slot->ready = true;
    }
}

asio::awaitable<void> Session::write_answers() {
    const auto self = shared_from_this();
    // An answer whose end is in `chunk`.
    struct Ended {
        std::optional<wire::Verb> verb;
        std::optional<ErrorCode> code;
        Times times;
    };
    std::string chunk;
    std::vector<Ended> ended;
    error_code error;
    while (!error) {
        if (slots_.empty() && reading_ended_) break;
        if (slots_.empty() || !slots_.front()->ready) {
            co_await writer_wakeup_.wait();
            continue;
        }
        chunk.clear();
        while (!slots_.empty() && slots_.front()->ready && chunk.size() < kPieceBytes) {
            Slot& slot = *slots_.front();
            if (server_.fault() && !slot.begun) slot.reply = Reply(slot.form, stopped_answer());
            const std::size_t bytes_before = chunk.size();
            slot.reply.append_to(chunk, kPieceBytes);
            // Words are read from the model's file as they are rendered. If it was cut short, what
            // was read is not sent.
            if (slot.worker != nullptr && !slot.worker->files_are_unchanged()) {
                chunk.resize(bytes_before);
                slot.reply = slot.begun ? Reply::broken() : Reply(slot.form, stopped_answer());
                slot.reply.append_to(chunk, kPieceBytes);
            }
            slot.begun = true;
            if (slot.reply.is_broken()) {
                error = asio::error::connection_aborted;
                break;
            }
            if (slot.reply.is_costly()) {
                request_next_piece(slots_.front());
                break;
            }
            if (!slot.reply.finished()) break;
            held_bytes_ -= slot.held_bytes;
            ended.push_back({slot.verb, slot.reply.error_code(), slot.times});
            slots_.pop_front();
        }
        if (error) break;
        error = co_await send(chunk);
        const auto now = Clock::now();
        for (const Ended& answer : ended) {
            server_.count_answer(peer_, answer.verb, answer.code, now - answer.times.arrived);
            if (answer.times.computed != Clock::time_point())
                server_.statistics().record(answer.times, now);
        }
        ended.clear();
        reader_wakeup_.notify();
        // Let other sessions run: a peer that reads as fast as we write would occupy the loop.
        co_await asio::post(socket_.get_executor(), asio::use_awaitable);
        if (!slots_.empty()) continue;
        // An idle connection holds no buffers. (Assigning an empty value would keep the capacity.)
        std::string().swap(chunk);
        std::vector<Ended>().swap(ended);
        set_read_deadline();
    }
    if (!error && discards_input_) {
        lingering_ = true;
        socket_.shutdown(Socket::shutdown_send, error);
        co_await discard_input();
    }
    close();
}

asio::awaitable<error_code> Session::send(std::string_view bytes) {
    const auto timeout = server_.settings().limits.write_timeout;
    error_code error;
    write_deadline_ = Clock::now() + timeout;
    while (!bytes.empty()) {
        const std::size_t sent =
            socket_.write_some(asio::buffer(bytes.substr(0, kSliceBytes)), error);
        if (!error) {
            bytes.remove_prefix(sent);
            write_deadline_ = Clock::now() + timeout;
        } else if (error != asio::error::would_block) {
            break;
        } else if (Clock::now() >= write_deadline_) {
            server_.statistics().connections().count(CloseReason::unread);
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
        socket_.read_some(asio::buffer(server_.read_buffer()), error);
        if (error == asio::error::would_block) error = {};
    }
}

void Session::set_read_deadline() {
    const Limits& limits = server_.settings().limits;
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
    server_.statistics().connections().count(idle ? CloseReason::idle : CloseReason::slow_line);
    // The codes tell a client that this line answers none of its requests.
    end_with(idle ? Error{ErrorCode::idle, "idle for too long; closing"}
                  : Error{ErrorCode::timeout, "the line did not end in time; closing"});
}

void Session::begin_drain() {
    draining_ = true;
    if (server_.fault()) {
        // Do not wait for a RELOAD.
        for (const auto& slot : slots_) slot->ready = slot->ready || slot->worker == nullptr;
        writer_wakeup_.notify();
    }
    if (reading_ended_) return;
    if (has_asked_ || server_.fault()) return stop_reading();
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

bool Session::is_owed_answers_of(const std::vector<std::shared_ptr<LoadedModel>>& models) const {
    return std::ranges::any_of(slots_, [&](const std::shared_ptr<Slot>& slot) {
        return std::ranges::find(models, slot->model) != models.end();
    });
}

void Session::close() {
    abandoned_->store(true, std::memory_order_relaxed);
    reading_ended_ = true;
    error_code ignored;
    socket_.close(ignored);
    slots_.clear();
    writer_wakeup_.notify();
    reader_wakeup_.notify();
}

}  // namespace gloved::daemon
