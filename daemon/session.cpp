#include "daemon/session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/log.hpp"
#include "daemon/server.hpp"
#include "daemon/stats_reply.hpp"

namespace gloved::daemon {
namespace {

/// After the last answer to a lost peer: how long its input is still read, so that it gets to see
/// that answer.
constexpr std::chrono::seconds kLinger{2};
/// How long a daemon that stops waits for the first request of a connection: nothing is lost of who
/// connects and asks within that time.
constexpr std::chrono::seconds kFirstRequestGrace{1};

/// A line whose parsing takes about a millisecond.
constexpr std::size_t kLongLine = 8192;
/// An answer of STATS, say, or a request whose words are many.
constexpr std::size_t kLongAnswer = 4096;

auto ignoring(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

/// To whatever was asked and not answered when an engine or a model was lost.
Error stopped_answer() { return {ErrorCode::unavailable, "out of service; the daemon stops"}; }

}  // namespace

Session::Session(Server& server, Socket socket, Peer peer, std::uint64_t id, Kind kind)
    : server_(server),
      socket_(std::move(socket)),
      peer_(peer),
      id_(id),
      kind_(kind),
      answered_(socket_.get_executor()),
      taken_(socket_.get_executor()) {}

Session::~Session() {
    if (kind_ == Kind::refused) {
        server_.forget_refused(id_);
    } else {
        server_.forget(id_, peer_);
    }
}

template <class Coroutine>
void Session::spawn(Coroutine coroutine) {
    // A session that fails in an unforeseen way ends alone.
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
    peer_is_lost_ = true;
    read_deadline_ = Clock::time_point::max();
    taken_.notify();
}

bool Session::has_room() const {
    if (reload_is_due_) return false;
    return slots_.empty() || (slots_.size() < kMaxUnanswered && held_bytes_ < kMaxHeldBytes);
}

asio::awaitable<void> Session::read_requests() {
    const auto self = shared_from_this();
    while (!peer_is_lost_ && !reading_ended_) {
        while (has_room() && !reading_ended_) {
            const auto line = lines_.next();
            if (!line) break;
            line_began_ = Clock::time_point::max();
            const bool is_long = line->size() > kLongLine;
            const std::size_t bytes_before = held_bytes_;
            handle_line(*line);
            // Others have their turn after what took the loop a while.
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
            // The peer does not read its answers, or sends faster than they come: the kernel holds
            // the rest of its input.
            read_deadline_ = Clock::time_point::max();
            co_await taken_.wait();
            continue;
        }
        set_read_deadline();
        error_code error;
        co_await socket_.async_wait(Socket::wait_read, ignoring(error));
        if (error || reading_ended_) break;
        // Into a buffer of the loop's: ten thousand idle connections hold no buffers of their own.
        auto& buffer = server_.read_buffer();
        const std::size_t size = socket_.read_some(asio::buffer(buffer), error);
        if (error == asio::error::would_block) continue;
        if (error == asio::error::eof) {
            // A peer that half-closes after a line without its LF still gets its answer. Where the
            // end is of our own making, half a line is half a question.
            const auto rest = lines_.take_rest();
            if (rest && !input_is_cut_) handle_line(*rest);
            break;
        }
        if (error) break;
        lines_.append({buffer.data(), size});
        // While lines are handled no deadline holds. The next wait sets one.
        if (!draining_) read_deadline_ = Clock::time_point::max();
    }
    reading_ended_ = true;
    // After a timeout this is reached late, when lingering has a deadline of its own.
    if (!lingering_) read_deadline_ = Clock::time_point::max();
    answered_.notify();
}

void Session::handle_line(std::string_view line) {
    has_asked_ = true;
    if (draining_ && !input_is_cut_) cut_input();
    // What came in before the socket was shut, after an engine was lost.
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
            peer_is_lost_ = true;  // what it sends after QUIT is not read
            return;
        default:
            return submit(*std::move(request), line);
    }
}

std::shared_ptr<Session::Slot> Session::make_slot(std::optional<wire::Verb> verb) const {
    // Beside these two there are the job's callback, two nodes of lists, and what the allocator
    // adds to each.
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
    answered_.notify();
}

void Session::answer_error(std::optional<wire::Verb> verb, Error error) {
    answer_now(verb, Reply(form_, std::move(error)));
}

Result<std::shared_ptr<LoadedModel>> Session::served_for(const wire::Request& request) const {
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
    const auto served = served_for(request);
    if (!served) return answer_error(request.verb, served.error());
    if (!request.words.empty())
        return answer_now(request.verb, metrics_reply(form_, server_.state()));
    answer_now(request.verb, stats_reply(form_, server_.state(), **served));
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
    reload_is_due_ = true;
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
            reload_is_due_ = false;
            taken_.notify();
        });
}

void Session::submit(wire::Request request, std::string_view line) {
    auto served = served_for(request);
    if (!served) return answer_error(request.verb, served.error());
    if (Status accepted = server_.check(request, **served); !accepted) {
        return answer_error(request.verb, accepted.error());
    }
    auto slot = make_slot(request.verb);
    slot->served = *std::move(served);
    slot->worker = slot->served->find_worker(request.options.engine);
    const std::size_t parsed = parsed_bytes(request);
    const bool is_large = parsed > std::max(kMaxParsedBytes, line.size());
    slot->held_bytes = kRequestBytes + (is_large ? line.size() : parsed) +
                       expected_answer_bytes(request, slot->served->model());
    Job job = job_for(slot);
    if (is_large) {
        job.line = line;
    } else {
        job.request = std::move(request);
    }
    // First the place in line, so that a request that was taken on always has one.
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
    // The slot, not the session, is kept alive: a connection that is gone frees everything else at
    // once. The loop does not look at the slot's reply before it is marked ready, which only the
    // posted handler does.
    job.done = [slot, session = weak_from_this(), executor = socket_.get_executor(),
                server = &server_](Reply reply, const Times& times) {
        slot->reply = std::move(reply);
        // Of an answer in pieces: from the first one until the last one is made.
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
    // What was expected was a guess.
    held_bytes_ -= slot->held_bytes;
    slot->held_bytes = kRequestBytes + slot->reply.held_bytes();
    held_bytes_ += slot->held_bytes;
    taken_.notify();
    const Error* const error = slot->reply.error();
    if (error == nullptr || error->code != ErrorCode::unknown_word) return mark_ready(slot);
    const auto with_suggestions =
        [slot, session = weak_from_this()](std::vector<std::string> suggestions) {
            slot->reply.suggest(std::move(suggestions));
            if (const auto self = session.lock()) self->mark_ready(slot);
        };
    if (!server_.suggester().suggest(slot->served, error->subject, with_suggestions))
        mark_ready(slot);
}

void Session::mark_ready(const std::shared_ptr<Slot>& slot) {
    slot->ready = true;
    answered_.notify();
}

void Session::request_next_piece(const std::shared_ptr<Slot>& slot) {
    Job job = job_for(slot);
    job.goes_on = true;
    job.begun = std::exchange(slot->reply, Reply());
    slot->ready = false;
    if (slot->worker->submit(std::move(job), 0)) {
        server_.count_submitted(*slot->worker);
    } else {
        slot->reply = Reply::broken();  // the engine is being stopped
        slot->ready = true;
    }
}

asio::awaitable<void> Session::write_answers() {
    const auto self = shared_from_this();
    // An answer that ends in the chunk.
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
            co_await answered_.wait();
            continue;
        }
        chunk.clear();
        while (!slots_.empty() && slots_.front()->ready && chunk.size() < kPieceBytes) {
            Slot& slot = *slots_.front();
            if (server_.fault() && !slot.begun) slot.reply = Reply(slot.form, stopped_answer());
            const std::size_t bytes_before = chunk.size();
            slot.reply.append_to(chunk, kPieceBytes);
            // Words are read from the model's file as they become text. What was read of one that
            // is cut short by now does not go out.
            if (slot.worker != nullptr && !slot.worker->files_are_whole()) {
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
        taken_.notify();
        // Others have their turn: a peer that reads as fast as we write would keep the loop to
        // itself.
        co_await asio::post(socket_.get_executor(), asio::use_awaitable);
        if (!slots_.empty()) continue;
        // An idle connection holds no room: ten thousand of them would hold a lot. An assignment of
        // nothing would keep it.
        std::string().swap(chunk);
        std::vector<Ended>().swap(ended);
        set_read_deadline();
    }
    if (!error && peer_is_lost_) {
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
            wake_writer_when_there_is_room();
            co_await answered_.wait();
        }
    }
    write_deadline_ = Clock::time_point::max();
    co_return error;
}

/// The system says so when three quarters of its buffer are empty; `enforce_deadlines` does not
/// wait for that.
void Session::wake_writer_when_there_is_room() {
    if (room_is_awaited_) return;
    room_is_awaited_ = true;
    socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code&) {
        self->room_is_awaited_ = false;
        self->answered_.notify();
    });
}

/// A peer that has closed both ways reads no answers: what it asked for need not be computed. (One
/// that has only finished sending still waits for them; to the reader both look like the end of
/// input.)
void Session::watch_for_hangup() {
    socket_.async_wait(Socket::wait_error, [self = shared_from_this()](const error_code& error) {
        if (error) return;
        // Asio may pass on what was said of an earlier connection, whose place in its tables this
        // one has: the system knows.
        pollfd now{self->socket_.native_handle(), 0, 0};
        if (::poll(&now, 1, 0) == 0) return self->watch_for_hangup();
        // While lingering, the end of what the peer sent looks the same.
        if (!self->lingering_) self->close();
    });
}

/// Closing with unread input would make the peer's system drop the last answer: reads and drops
/// until the peer closes.
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
        // From the line's first byte: a peer that sends one byte a second does not push it further.
        if (line_began_ == Clock::time_point::max()) line_began_ = now;
        read_deadline_ = line_began_ + limits.line_timeout;
    } else if (limits.idle_timeout.count() > 0 && slots_.empty()) {
        read_deadline_ = now + limits.idle_timeout;
    } else {
        read_deadline_ = Clock::time_point::max();
    }
}

void Session::enforce_deadlines(Clock::time_point now) {
    // The writer tries once more, and gives up if there is no room.
    if (now >= write_deadline_) answered_.notify();
    if (now < read_deadline_) return;
    if (reading_ended_) return close();  // lingering
    if (draining_) return cut_input();
    const bool idle = lines_.partial().empty();
    server_.statistics().connections().count(idle ? CloseReason::idle : CloseReason::slow_line);
    // The code tells a client that this line answers none of its requests, though they may cross.
    end_with(idle ? Error{ErrorCode::idle, "idle for too long; closing"}
                  : Error{ErrorCode::timeout, "the line did not end in time; closing"});
}

void Session::begin_drain() {
    draining_ = true;
    if (server_.fault()) {
        // A model that is being loaded is not waited for.
        for (const auto& slot : slots_) slot->ready = slot->ready || slot->worker == nullptr;
        answered_.notify();
    }
    if (reading_ended_) return;
    if (has_asked_ || server_.fault()) return cut_input();
    read_deadline_ = Clock::now() + kFirstRequestGrace;
}

void Session::cut_input() {
    read_deadline_ = Clock::time_point::max();
    pollfd now{socket_.native_handle(), POLLRDHUP, 0};
    // Of a peer that has ended its side all has arrived. Its last line may lack an LF.
    if (::poll(&now, 1, 0) > 0) return;
    // The reader sees what has arrived, then the end.
    input_is_cut_ = true;
    error_code ignored;
    socket_.shutdown(Socket::shutdown_receive, ignored);
}

bool Session::takes_answers_of(const std::vector<std::shared_ptr<LoadedModel>>& models) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const std::shared_ptr<Slot>& slot) {
        return std::find(models.begin(), models.end(), slot->served) != models.end();
    });
}

void Session::close() {
    abandoned_->store(true, std::memory_order_relaxed);
    reading_ended_ = true;
    error_code ignored;
    socket_.close(ignored);
    slots_.clear();
    answered_.notify();
    taken_.notify();
}

}  // namespace gloved::daemon
