// One connection: reads requests, keeps their answers in order, writes them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/wire/line_splitter.hpp"
#include "daemon/asio.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "daemon/statistics.hpp"

namespace gloved::daemon {

class Server;

/// The process at the other end of a connection, as the kernel reports it.
struct Peer {
    uid_t uid = static_cast<uid_t>(-1);
    pid_t pid = 0;
};

/// Runs on the loop thread as two coroutines that share it: one reads requests and submits them,
/// one writes the answers that are ready at the head of the line. Ends too when the peer vanishes.
class Session : public std::enable_shared_from_this<Session> {
  public:
    /// refused: one connection too many. It gets an ERR line, and its input is ignored.
    enum class Kind { admitted, refused };

    Session(Server& server, Socket socket, Peer peer, std::uint64_t id, Kind kind = Kind::admitted);
    ~Session();

    /// Starts the coroutines.
    void start();
    /// Instead: sends `reason` as the last line, see `end_with`.
    void start_refused(const Error& reason);
    /// Ends the connection if a deadline has passed. Call it a few times a second.
    void enforce_deadlines(Clock::time_point now);
    /// Answers the requests that have arrived, then closes. A peer without a request so far has a
    /// second to send one.
    void begin_drain();
    /// Closes at once.
    void close();
    /// Whether one of these models still owes the peer an answer.
    bool is_owed_answers_of(const std::vector<std::shared_ptr<LoadedModel>>& models) const;

  private:
    /// A request's place in the order of answers.
    struct Slot {
        std::optional<wire::Verb> verb;  // none if the line could not be parsed
        wire::Form form = wire::Form::text;
        Reply reply;
        std::shared_ptr<LoadedModel> model;  // whose engine answers it
        EngineWorker* worker = nullptr;      // that engine
        Times times;                         // only `arrived`, unless an engine answers
        bool ready = false;
        bool begun = false;  // some of it is written
        std::size_t held_bytes = 0;
    };

    asio::awaitable<void> read_requests();
    asio::awaitable<void> write_answers();
    /// Writes all of `bytes`. Error: the system's, or timed_out when the peer reads too slowly.
    asio::awaitable<error_code> send(std::string_view bytes);
    void wait_for_room();
    void watch_for_hangup();
    asio::awaitable<void> discard_input();
    /// Starts a coroutine of this session.
    template <class Coroutine>
    void spawn(Coroutine coroutine);
    /// Sends a last line and ends the connection. Further input is read and dropped, so that the
    /// peer receives the line, until it closes or kLinger is over.
    void end_with(Error last_line);
    /// Shuts the input down: reads what has arrived; later writes of the peer fail.
    void stop_reading();
    void handle_line(std::string_view line);
    std::shared_ptr<Slot> make_slot(std::optional<wire::Verb> verb) const;
    void answer_now(std::optional<wire::Verb> verb, Reply reply);
    void answer_error(std::optional<wire::Verb> verb, Error error);
    void submit(wire::Request request, std::string_view line);
    /// The model that a request names, else the connection's. Error: unknown_model.
    Result<std::shared_ptr<LoadedModel>> model_for(const wire::Request& request) const;
    void use(const wire::Request& request);
    void show_statistics(const wire::Request& request);
    void reload(const wire::Request& request);
    /// Takes an answer from an engine.
    void take_answer(const std::shared_ptr<Slot>& slot);
    void mark_ready(const std::shared_ptr<Slot>& slot);
    /// Asks the engine's thread for the next piece of an answer.
    void request_next_piece(const std::shared_ptr<Slot>& slot);
    Job job_for(const std::shared_ptr<Slot>& slot);
    void set_read_deadline();
    /// Whether another request may be taken on.
    bool has_room() const;

    Server& server_;
    Socket socket_;
    const Peer peer_;
    const std::uint64_t id_;
    const Kind kind_;
    wire::Form form_ = wire::Form::text;
    std::size_t model_ = 0;  // its place in the ModelSet
    wire::LineSplitter lines_;
    std::list<std::shared_ptr<Slot>> slots_;  // oldest first; an empty deque takes 600 bytes
    std::size_t held_bytes_ = 0;              // by all slots
    Signal writer_wakeup_;  // the head may be ready, reading has ended, or there is room to write
    bool awaits_room_ = false;    // an asynchronous wait for room to write is pending
    Signal reader_wakeup_;        // there may be room for another request
    bool awaits_reload_ = false;  // later requests are for the new model: not read before
    bool reading_ended_ = false;
    bool discards_input_ = false;   // after the last line: further input is dropped
    bool lingering_ = false;        // all is sent, and our side is shut down
    bool has_asked_ = false;        // has read a request
    bool input_shut_down_ = false;  // by us: the end of input is not the peer's
    bool draining_ = false;
    std::shared_ptr<std::atomic<bool>> abandoned_ = std::make_shared<std::atomic<bool>>(false);
    Clock::time_point read_deadline_ = Clock::time_point::max();
    Clock::time_point write_deadline_ = Clock::time_point::max();
    Clock::time_point line_began_ = Clock::time_point::max();
};

}  // namespace gloved::daemon
