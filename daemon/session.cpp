#include "daemon/session.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/connection_memory.hpp"
#include "daemon/log.hpp"
#include "daemon/session_loop.hpp"
#include "daemon/statistics.hpp"

namespace gloved::daemon {
namespace {

/// How long input is still read after the last line, so that the peer receives it.
constexpr std::chrono::seconds kLinger{2};
/// How long a daemon that stops waits for the first request of a connection.
constexpr std::chrono::seconds kFirstRequestGrace{1};

/// How long a session handles lines before other sessions of its loop get their turn. Dozens of
/// them may be busy, and one that asks little waits for all.
constexpr std::chrono::microseconds kTurn{50};

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

void Session::advance(Input to) { input_ = std::max(input_, to); }

void Session::end_with(Error last_line) {
    answer_error(std::nullopt, std::move(last_line));
    advance(Input::last_line);
    read_deadline_ = Clock::time_point::max();
}

bool Session::has_room() const {
    if (slots_.empty()) return true;
    // No request is read until the RELOAD before it is done.
    const Slot& last = *slots_.back();
    if (last.asked.verb == wire::Verb::reload && !last.ready) return false;
    return slots_.size() < kMaxUnanswered && held_bytes_ < kMaxHeldBytes;
}

asio::awaitable<void> Session::read_requests() {
    const auto self = shared_from_this();
    while (input_ < Input::ended) {
        if (!handle_lines()) {
            co_await asio::post(socket_.get_executor(), asio::use_awaitable);
            continue;
        }
        if (input_ >= Input::ended) break;
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
        if (error || input_ >= Input::ended || !receive()) break;
    }
    advance(Input::ended);
    // Lingering has a deadline of its own.
    if (input_ != Input::lingering) read_deadline_ = Clock::time_point::max();
    writer_wakeup_.notify();
}

bool Session::handle_lines() {
    const auto began = Clock::now();
    while (input_ < Input::ended && has_room()) {
        const auto line = lines_.next();
        if (!line) break;
        line_began_ = Clock::time_point::max();
        handle_line(*line);
        if (Clock::now() - began >= kTurn) return false;
    }
    return true;
}

bool Session::receive() {
    // Into a shared buffer: ten thousand idle connections hold no buffers of their own.
    auto& buffer = loop_.read_buffer();
    error_code error;
    const std::size_t size = socket_.read_some(asio::buffer(buffer), error);
    if (error == asio::error::would_block) return true;
    if (error == asio::error::eof) {
        // A last line without LF is a request, unless it may be half a line.
        const auto rest = lines_.take_rest();
        if (rest && input_ != Input::shut_down) handle_line(*rest);
    }
    if (error) return false;
    lines_.append({buffer.data(), size});
    // No deadline while lines are handled; the next wait sets one.
    if (input_ != Input::last_call) read_deadline_ = Clock::time_point::max();
    return true;
}

asio::awaitable<void> Session::write_answers() {
    const auto self = shared_from_this();
    error_code error;
    while (!error) {
        if (slots_.empty() && input_ >= Input::ended) break;
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
    if (!error && input_ == Input::last_line) {
        advance(Input::lingering);
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
                {slot->asked, slot->reply.error_code(), slot->times, slot->text_end});
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
        if (self->input_ != Input::lingering) self->close();
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
    if (input_ > Input::open) return;
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
    if (input_ >= Input::ended) return close();  // lingering
    if (input_ == Input::last_call) return stop_reading();
    const bool idle = lines_.partial().empty();
    loop_.statistics().connections().count(idle ? CloseReason::idle : CloseReason::slow_line);
    // The codes tell a client that this line answers none of its requests.
    end_with(idle ? Error{ErrorCode::idle, "idle for too long; closing"}
                  : Error{ErrorCode::timeout, "the line did not end in time; closing"});
}

void Session::begin_drain() {
    if (loop_.owner().has_fault()) {
        // Do not wait for a RELOAD.
        for (const auto& slot : slots_) slot->ready = slot->ready || slot->worker == nullptr;
        writer_wakeup_.notify();
    }
    if (input_ > Input::last_call) return;
    if (input_ == Input::open || loop_.owner().has_fault()) return stop_reading();
    advance(Input::last_call);
    read_deadline_ = Clock::now() + kFirstRequestGrace;
}

void Session::stop_reading() {
    read_deadline_ = Clock::time_point::max();
    pollfd now{socket_.native_handle(), POLLRDHUP, 0};
    if (::poll(&now, 1, 0) > 0) return advance(Input::complete);
    // The reader still gets what has arrived, then the end.
    advance(Input::shut_down);
    error_code ignored;
    socket_.shutdown(Socket::shutdown_receive, ignored);
}

std::size_t Session::unanswered() const {
    // Answers have left the slots when the text with their ends is being written.
    const auto unsent = std::ranges::count_if(
        chunk_.ended, [&](const Ended& answer) { return answer.text_end > chunk_.sent_bytes; });
    return slots_.size() + static_cast<std::size_t>(unsent);
}

bool Session::is_owed_answers_of(const Models& models) const {
    return std::ranges::any_of(slots_, [&](const SlotPointer& slot) {
        return std::ranges::find(models, slot->model) != models.end();
    });
}

void Session::close() {
    for (const SlotPointer& slot : slots_) slot->abandoned.store(true, std::memory_order_relaxed);
    advance(Input::ended);
    error_code ignored;
    socket_.close(ignored);
    slots_.clear();
    writer_wakeup_.notify();
    reader_wakeup_.notify();
}

}  // namespace gloved::daemon
