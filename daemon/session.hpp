// One connection.
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

/// Who is at the other end of a connection, as the kernel says. Unknown users are all one.
struct Peer {
    uid_t uid = static_cast<uid_t>(-1);
    pid_t pid = 0;
};

/// Reads requests, keeps their answers in order, writes them. Lives on the loop thread alone, as
/// coroutines that share it: one reads and submits, one writes what is ready at the head of the
/// line. It ends when the peer vanishes, too.
class Session : public std::enable_shared_from_this<Session> {
  public:
    /// refused: one too many. It is told so, and asks nothing.
    enum class Kind { admitted, refused };

    Session(Server& server, Socket socket, Peer peer, std::uint64_t id, Kind kind = Kind::admitted);
    ~Session();

    /// Starts the coroutines.
    void start();
    /// Instead: sends `reason` as the last line, see `end_with`.
    void start_refused(const Error& reason);
    /// Cuts the connection if it has passed one of its deadlines. Called a few times a second.
    void enforce_deadlines(Clock::time_point now);
    /// Lets what was sent already be answered, then closes. A peer that has sent no request yet is
    /// given a second for its first one.
    void begin_drain();
    /// Closes at once.
    void close();
    /// Whether an answer of one of these models is owed.
    bool takes_answers_of(const std::vector<std::shared_ptr<LoadedModel>>& models) const;

  private:
    /// A request's place in the line of answers.
    struct Slot {
        std::optional<wire::Verb> verb;  // none where the line could not be parsed
        wire::Form form = wire::Form::text;
        Reply reply;
        std::shared_ptr<LoadedModel> served;  // whose engine answers it
        EngineWorker* worker = nullptr;       // that engine
        Times times;                          // `arrived` alone, but for an answer from an engine
        bool ready = false;
        bool begun = false;  // some of it is written
        std::size_t held_bytes = 0;
    };

    asio::awaitable<void> read_requests();
    asio::awaitable<void> write_answers();
    /// Writes all of `bytes`. Error: whatever the system says, or timed_out where the peer has
    /// taken too little for too long.
    asio::awaitable<error_code> send(std::string_view bytes);
    void wake_writer_when_there_is_room();
    void watch_for_hangup();
    asio::awaitable<void> discard_input();
    /// Runs a coroutine of the session's.
    template <class Coroutine>
    void spawn(Coroutine coroutine);
    /// Says a last line and ends the connection: whatever the peer still sends is read and dropped,
    /// so that it gets to see the line, until it closes or kLinger is over.
    void end_with(Error last_line);
    /// Takes no more input than has arrived by now; what the peer writes later fails.
    void cut_input();
    void handle_line(std::string_view line);
    std::shared_ptr<Slot> make_slot(std::optional<wire::Verb> verb) const;
    void answer_now(std::optional<wire::Verb> verb, Reply reply);
    void answer_error(std::optional<wire::Verb> verb, Error error);
    void submit(wire::Request request, std::string_view line);
    /// The model that a request is about: the one that it names, else the connection's. Error:
    /// unknown_model.
    Result<std::shared_ptr<LoadedModel>> served_for(const wire::Request& request) const;
    void use(const wire::Request& request);
    void show_statistics(const wire::Request& request);
    void reload(const wire::Request& request);
    /// An answer has come from an engine.
    void take_answer(const std::shared_ptr<Slot>& slot);
    void mark_ready(const std::shared_ptr<Slot>& slot);
    /// Has the rest of an answer made, of which a part was taken.
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
    std::size_t model_ = 0;  // its place among the server's
    wire::LineSplitter lines_;
    std::list<std::shared_ptr<Slot>> slots_;  // oldest first; a deque would hold 600 bytes for
                                              // nobody
    std::size_t held_bytes_ = 0;              // by all slots
    Signal answered_;  // to the writer: the head may be ready, reading has ended, or there is room
    bool room_is_awaited_ = false;  // the system will say when there is room to write
    Signal taken_;                  // to the reader: there may be room again
    bool reload_is_due_ = false;    // what is asked behind it is asked of the new model: not read
                                    // before
    bool reading_ended_ = false;
    bool peer_is_lost_ = false;  // desynchronised or too slow: what it still sends is discarded
    bool lingering_ = false;     // all is sent, and our side is shut down
    bool has_asked_ = false;     // a request was read
    bool input_is_cut_ = false;  // by us: its end says nothing about the peer
    bool draining_ = false;
    std::shared_ptr<std::atomic<bool>> abandoned_ = std::make_shared<std::atomic<bool>>(false);
    Clock::time_point read_deadline_ = Clock::time_point::max();
    Clock::time_point write_deadline_ = Clock::time_point::max();
    Clock::time_point line_began_ = Clock::time_point::max();
};

}  // namespace gloved::daemon
