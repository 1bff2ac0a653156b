// SessionLoop: one thread's event loop with the sessions that it runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/answer_poll.hpp"
#include "daemon/asio.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/reply.hpp"
#include "daemon/session.hpp"
#include "daemon/settings.hpp"
#include "daemon/statistics.hpp"
#include "daemon/suggester.hpp"

namespace gloved::daemon {

/// Runs sessions on one thread. Each has its loop for life. Loops share no lock while they
/// answer: what all of them read is copied to each (`set_models`), and each counts for itself
/// (`statistics`). Call all functions on the loop's thread, unless they say otherwise.
class SessionLoop final : public JobReceiver {
  public:
    /// The server, as its loops see it. Any thread may call all functions; `done` is called on the
    /// loop that asked.
    class Owner {
      public:
        /// Whether an engine has failed: the daemon then answers no more requests and exits.
        virtual bool has_fault() const = 0;
        /// An admitted or refused session of loop number `loop` has ended.
        virtual void session_ended(std::size_t loop, const Peer& peer, Session::Kind kind) = 0;
        /// Reloads the model at `place`, nullopt: all, and then calls `done`. All loops have the
        /// new ones by then.
        virtual void reload(SessionLoop& loop, std::optional<std::size_t> place,
                            std::function<void(const Status&)> done) = 0;
        /// Makes the reply to STATS about the model at `place`; nullopt: for Prometheus, about all.
        virtual void report(SessionLoop& loop, wire::Form form, std::optional<std::size_t> place,
                            std::function<void(Reply)> done) = 0;

      protected:
        ~Owner() = default;
    };

    /// Loop number `number` of Settings::io_threads. All references must outlive it.
    SessionLoop(std::size_t number, const Settings& settings, Owner& owner, Suggester& suggester);
    SessionLoop(const SessionLoop&) = delete;
    SessionLoop& operator=(const SessionLoop&) = delete;
    ~SessionLoop();

    /// Any thread.
    asio::io_context& io() { return io_; }
    /// Starts a thread that runs the loop, and its tick, until `stop_thread`.
    void start_thread();
    /// Ends that thread, if there is one. Not on the loop's thread.
    void stop_thread();
    /// Runs one handler, waiting for it; polls for answers of a quick engine that are due.
    void run_one();

    /// Starts the session of a connection.
    void admit(Socket socket, const Peer& peer, std::uint64_t id);
    /// Sends `reason` to a connection that is one too many, then closes it.
    void refuse(Socket socket, const Peer& peer, std::uint64_t id, const Error& reason);
    /// Closes sessions whose deadlines have passed. Call it a few times a second.
    void on_tick();
    /// Begins the end of all sessions.
    void begin_drain();
    /// Closes all connections; returns how many, and how many requests they had that lack a whole
    /// answer.
    struct Cut {
        std::size_t connections = 0;
        std::size_t requests = 0;
    };
    Cut cut_all();
    /// Closes the connections whose clients have not taken all answers of these models.
    void close_readers(const Models& models);
    /// As `cut_all`, and runs what is left. Without the thread, once that has ended.
    void close_all();

    /// Takes these models for all further requests.
    void set_models(const Models& models);
    const Models& models() const { return models_; }
    const Settings& settings() const { return settings_; }
    Owner& owner() { return owner_; }
    Suggester& suggester() { return suggester_; }
    /// The buffer into which all sessions of the loop read. Its content is valid until the session
    /// that read it awaits anything.
    std::array<char, 65536>& read_buffer() { return read_buffer_; }
    /// What this loop has counted. Any thread may read it.
    Statistics& statistics() { return statistics_; }
    const Statistics& statistics() const { return statistics_; }

    /// Checks that a request's k is within Limits::max_k and that `loaded` has the engine it names.
    /// Error: bad_request.
    Status check(const wire::Request& request, const LoadedModel& loaded) const;
    /// Queues a job at a worker; its answer goes to Session::take_answer. Arguments and result as
    /// for EngineWorker::submit.
    bool submit(EngineWorker& worker, std::shared_ptr<Job> job, bool may_refuse);
    void receive(std::vector<std::shared_ptr<Job>> jobs) override;
    /// Counts an answer that was written, or whose connection was lost, and writes a line to the
    /// access log if that is on. `error`: nullopt for an OK. `took`: from reading the request to
    /// here.
    void count_answer(const Peer& peer, const Asked& asked, std::optional<ErrorCode> error,
                      Clock::duration took);
    /// Called by a session's destructor.
    void remove_session(std::uint64_t id, const Peer& peer, Session::Kind kind);

  private:
    asio::awaitable<void> run_ticks();
    std::vector<std::shared_ptr<Session>> sessions() const;
    /// Sets the timer that wakes the loop to poll, if `due` is a time.
    void wake_at(std::optional<Clock::time_point> due);

    const std::size_t number_;
    const Settings& settings_;
    Owner& owner_;
    Suggester& suggester_;
    // Declared before io_: its handlers may hold sessions, which use these when they end.
    std::unordered_map<std::uint64_t, std::weak_ptr<Session>> sessions_;  // by id, with the refused
    Statistics statistics_;
    asio::io_context io_{1};
    asio::steady_timer tick_;
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
    std::thread thread_;
    Models models_;
    AnswerPoll poll_;
    asio::steady_timer wake_;  // of poll_
    bool draining_ = false;
    std::array<char, 65536> read_buffer_;
};

}  // namespace gloved::daemon
