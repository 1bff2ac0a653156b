// Session: one client's connection. Reads requests and writes the answers in their order
// (session.cpp), answers or submits them to engines (session_requests.cpp).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "common/wire/line_splitter.hpp"
#include "common/wire/request.hpp"
#include "daemon/asio.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "daemon/statistics.hpp"

namespace gloved::daemon {

class SessionLoop;

/// The process at the other end of a connection, as the kernel reports it (SO_PEERCRED).
struct Peer {
    uid_t uid = static_cast<uid_t>(-1);
    pid_t pid = 0;
};

/// Two coroutines on its loop's thread, which keep the Session alive: one reads requests and
/// submits them, the other writes answers, the oldest request's first. Ends when the peer closes or
/// vanishes, after a deadline, or when the daemon stops. Call all functions on the loop's thread.
class Session : public std::enable_shared_from_this<Session> {
  public:
    /// A refused connection is one too many: it gets one ERR line, and its input is ignored.
    enum class Kind { admitted, refused };

    Session(SessionLoop& loop, Socket socket, Peer peer, std::uint64_t id,
            Kind kind = Kind::admitted);
    ~Session();

    /// Starts the coroutines of an admitted connection.
    void start();
    /// Starts a refused connection instead: sends an ERR line about `reason` and closes.
    void start_refused(const Error& reason);
    /// Ends the connection if one of its deadlines (Limits) has passed. Call it a few times a
    /// second.
    void enforce_deadlines(Clock::time_point now);
    /// Begins the end of the connection when the daemon stops: answers the requests that have
    /// arrived, then closes. A peer that has sent no request yet has a second to send one.
    void begin_drain();
    /// Closes the connection at once; unanswered requests get no answer.
    void close();
    /// Number of requests whose answers are not written to their end.
    std::size_t unanswered() const;
    /// Whether one of these models still owes the peer an answer.
    bool is_owed_answers_of(const Models& models) const;
    /// Called with a job of a session of this loop when a worker has answered it. The session may
    /// have ended.
    static void take_answer(const std::shared_ptr<Job>& job);

  private:
    /// A request that is not completely answered, in the order of requests. As a job, a worker may
    /// have it.
    struct Slot : Job {
        std::weak_ptr<Session> session;
        Asked asked;
        std::vector<wire::Field> fields;     // that the request asks for
        bool certify = false;                // the same
        std::shared_ptr<LoadedModel> model;  // the model that it asks; kept until it is answered
        EngineWorker* worker = nullptr;      // the worker of the engine that answers it, if any
        bool ready = false;                  // `reply` can be written
        bool begun = false;                  // some of `reply` is written
        std::size_t text_end = 0;            // of `reply` in the text of the chunk
        std::size_t held_bytes = 0;          // of request and reply
    };
    using SlotPointer = std::shared_ptr<Slot>;

    /// An answer whose end is written: what is counted of it.
    struct Ended {
        Asked asked;
        std::optional<ErrorCode> code;
        Times times;
        std::size_t text_end = 0;
    };

    /// What is written at once: the text of some answers, the first and the last perhaps in part.
    struct Chunk {
        std::string text;
        std::vector<SlotPointer> slots;  // until the text is complete: they hold models
        std::vector<Ended> ended;
        std::size_t sent_bytes = 0;  // of `text`
    };

    /// What is read of the peer's input. It only moves down this list, by `advance`.
    enum class Input {
        first,      ///< requests, of which none has come yet
        open,       ///< requests
        last_call,  ///< the daemon stops: requests, if the first one comes in a moment
        complete,   ///< the daemon stops: what has arrived, with all that the peer sent
        shut_down,  ///< the daemon stops: what has arrived, whose last line may be cut
        ended,      ///< nothing; the connection ends after the last answer
        last_line,  ///< nothing; after the last answer the connection lingers
        lingering,  ///< all is sent; until the peer closes, input is read and dropped
    };

    void advance(Input to);
    asio::awaitable<void> read_requests();
    /// Handles the lines that were received and have room. False if others should have their turn
    /// before the rest.
    bool handle_lines();
    /// Receives what has arrived; false at the end of input.
    bool receive();
    asio::awaitable<void> write_answers();
    /// Renders answers that are ready, up to kPieceBytes.
    void fill_chunk();
    /// The oldest request is answered.
    void drop_first_slot();
    /// Appends the next piece of a slot's reply to the chunk's text.
    void append_piece(Slot& slot);
    /// If a model's file has changed, what was read from it is not sent: replaces the text by ERR
    /// lines. Error: connection_aborted, if a part of an answer was sent before.
    error_code check_files();
    /// Releases the chunk's slots, and asks for the next piece of an answer that goes on. Error:
    /// connection_aborted, if that is not possible.
    error_code release_slots();
    void count_written();
    /// Writes the chunk's text. The result is the system's error, or timed_out if the peer reads
    /// too slowly.
    asio::awaitable<error_code> send_chunk();
    void wait_for_room();
    void watch_for_hangup();
    asio::awaitable<void> discard_input();
    /// Starts a coroutine of this session.
    template <class Coroutine>
    void spawn(Coroutine coroutine);
    /// Sends an ERR line as the last one and ends the connection. Until the peer closes, 2 s at
    /// most, further input is read and dropped: closing earlier could destroy the line.
    void end_with(Error last_line);
    /// Shuts the input down (shutdown(2)): what has arrived can be read, later writes of the peer
    /// fail.
    void stop_reading();
    void handle_line(std::string_view line);
    /// The answer to all requests that are open when an engine or a model fails.
    static Error stopped_answer();
    SlotPointer make_slot(std::optional<wire::Verb> verb);
    void answer_now(std::optional<wire::Verb> verb, Reply reply);
    void answer_error(std::optional<wire::Verb> verb, Error error);
    void submit(wire::Request request, std::string_view line);
    /// What the request of `slot` asks of the reply to an answer that came at `computed`.
    static EngineReply about_answer(Slot& slot, Clock::time_point computed);
    /// Resolves the request's words and submits the query.
    void ask_engine(const SlotPointer& slot, const wire::Request& request);
    /// Answers on this thread what reads a few rows.
    void look_up(const SlotPointer& slot, const wire::Request& request);
    /// Submits a request whose answer, or query, takes long to make.
    void ask_worker(const SlotPointer& slot, wire::Request request, std::string_view line);
    void submit_job(const SlotPointer& slot);
    /// Gives the slot to its worker. `may_refuse` and result as for EngineWorker::submit.
    bool give_to_worker(const SlotPointer& slot, bool may_refuse);
    /// The place of the model that a request names, else the connection's. Error: unknown_model.
    Result<std::size_t> place_for(const wire::Request& request) const;
    void use(const wire::Request& request);
    void show_lists(const wire::Request& request);
    void show_statistics(const wire::Request& request);
    void reload(const wire::Request& request);
    void accept_answer(const SlotPointer& slot);
    /// As `finish`, for a request about a model that waited for no worker.
    void finish_here(const SlotPointer& slot, Reply reply);
    /// Makes `reply` the answer; an unknown word first gets suggestions.
    void finish(const SlotPointer& slot, Reply reply);
    void mark_ready(const SlotPointer& slot);
    /// Submits the slot again, for the next costly piece of its reply (Reply::is_costly).
    void request_next_piece(const SlotPointer& slot);
    /// Sets the memory that a slot counts for.
    void hold(Slot& slot, std::size_t bytes);
    void set_read_deadline();
    /// Whether another request is within the limits of connection_memory.hpp.
    bool has_room() const;

    SessionLoop& loop_;
    Socket socket_;
    const Peer peer_;
    const std::uint64_t id_;
    const Kind kind_;
    wire::Form form_ = wire::Form::text;
    std::size_t model_ = 0;  // place in the ModelSet of the model that USE selected
    wire::LineSplitter lines_;
    std::list<SlotPointer> slots_;  // oldest first; an empty deque takes 600 bytes
    Chunk chunk_;                   // empty while nothing is written
    std::size_t held_bytes_ = 0;    // sum over all slots
    std::size_t at_workers_ = 0;    // number of slots that a worker has
    // Wakes the writer: the oldest slot may be ready, reading has ended, or there is room to write.
    Signal writer_wakeup_;
    bool awaits_room_ = false;  // an asynchronous wait for room to write is pending
    Signal reader_wakeup_;      // wakes the reader: there may be room for another request
    Input input_ = Input::first;
    Clock::time_point read_deadline_ = Clock::time_point::max();
    Clock::time_point write_deadline_ = Clock::time_point::max();
    Clock::time_point line_began_ = Clock::time_point::max();
};

}  // namespace gloved::daemon
