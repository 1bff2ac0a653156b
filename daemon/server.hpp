// Server: the daemon's event loop. Accepts connections, owns their sessions, and handles signals,
// deadlines and the watchdog.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/asio.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/model_set.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/session.hpp"
#include "daemon/settings.hpp"
#include "daemon/socket_path.hpp"
#include "daemon/statistics.hpp"
#include "daemon/stats_reply.hpp"
#include "daemon/suggester.hpp"

namespace gloved::daemon {

/// The thread that calls `run` is the loop thread; all functions run on it.
class Server {
  public:
    /// `load` loads one model. `settings` must outlive the server.
    Server(const Settings& settings, Loader load, ListeningSocket listening);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    /// Loads all models, calls `on_ready`, and serves. Until then, connections wait in the socket's
    /// backlog. After SIGTERM or SIGINT answers the requests that have arrived and returns true.
    /// Returns false if a model cannot be loaded, or if a model or engine fails: then every
    /// unanswered request gets an ERR line, and the log says why.
    [[nodiscard]] bool run(const std::function<void()>& on_ready);
    /// Whether another thread still loads a model after `run`; the destructor would wait for it.
    bool is_loading() const { return models_.is_loading(); }

    const Settings& settings() const { return settings_; }
    /// The models; all are loaded before the first session begins.
    ModelSet& models() { return models_; }
    const ModelSet& models() const { return models_; }
    Suggester& suggester() { return suggester_; }
    /// Why the daemon answers no more requests; nullopt as long as it does.
    const std::optional<Error>& fault() const { return fault_; }
    /// The buffer into which all sessions read. Its content is valid until the session that read it
    /// awaits anything.
    std::array<char, 65536>& read_buffer() { return read_buffer_; }

    /// Checks that a request's k is within Limits::max_k and that `loaded` has the engine it names.
    /// Error: bad_request.
    Status check(const wire::Request& request, const LoadedModel& loaded) const;
    /// What STATS reports.
    ServerState state() const;

    /// Counts an answer that was written, or whose connection was lost, and writes a line to the
    /// access log if that is on. `verb`: nullopt if the request could not be parsed. `error`:
    /// nullopt for an OK. `took`: from reading the request to here.
    void count_answer(const Peer& peer, std::optional<wire::Verb> verb,
                      std::optional<ErrorCode> error, Clock::duration took);
    Statistics& statistics() { return statistics_; }
    /// Count requests when they go to an engine and when they come back. While a quick engine has
    /// any, the loop polls instead of sleeping.
    void count_submitted(const EngineWorker& worker);
    void count_answered(const EngineWorker& worker) {
        if (worker.should_spin()) --quick_in_flight_;
    }
    /// Called by a session's destructor.
    void remove_session(std::uint64_t id, const Peer& peer, bool is_refused);

  private:
    ModelSet::Events model_events();
    /// Loads the models for the first time, one after another, then serves.
    void load_models();
    void begin_serving();
    asio::awaitable<void> accept_connections();
    /// Stops accepting. If no other process listens on the socket, first accepts the connections in
    /// its backlog.
    void stop_accepting();
    /// Starts a connection's session, or refuses it.
    void admit(Socket socket);
    /// Sends `reason` to a connection that is one too many, then closes it.
    void refuse(Socket socket, const Peer& peer, const Error& reason);
    /// Number of open connections without the refused ones.
    std::size_t open_connections() const { return sessions_.size() - refused_sessions_; }
    /// Why a further connection of this peer would be one too many; nullopt if it is not.
    std::optional<Error> reason_to_refuse(const Peer& peer);
    asio::awaitable<void> feed_watchdog(std::chrono::microseconds interval);
    void probe_engines();
    /// The state for the line that `systemctl status` shows.
    std::string describe_state() const;
    asio::awaitable<void> run_ticks();
    void on_tick();
    asio::awaitable<void> handle_signals();
    void reload_for_hangup();
    /// Whether the last session has ended while draining.
    bool is_drained() const { return draining_ && !accepting_ && sessions_.empty(); }
    void begin_drain(std::chrono::milliseconds timeout);
    void handle_fault(const Error& error);
    /// Closes the connections whose clients have not taken all answers of these models.
    void close_readers(const ModelSet::Models& models);

    const Settings& settings_;
    std::function<void()> on_ready_;
    std::optional<Error> fault_;
    ServiceManager manager_;
    ListeningSocket listening_;
    std::size_t waiting_hangups_ = 0;    // reloads for SIGHUP
    bool hangup_while_loading_ = false;  // a SIGHUP came before all models were loaded
    asio::io_context loop_{1};
    ModelSet models_;
    Suggester suggester_;
    asio::local::stream_protocol::acceptor acceptor_;
    asio::signal_set signals_;
    asio::steady_timer accept_pause_;
    asio::steady_timer tick_;
    asio::steady_timer watchdog_tick_;
    std::size_t probes_in_flight_ = 0;
    bool probes_right_ = true;  // all answers since the last round of probes began were right
    Signal probes_done_;
    std::unordered_map<std::uint64_t, std::weak_ptr<Session>> sessions_;  // by id, with the refused
    std::size_t refused_sessions_ = 0;
    std::unordered_map<uid_t, std::size_t> connections_of_;  // number of each user's
    std::uint64_t next_id_ = 1;
    Statistics statistics_;
    std::uint64_t quick_in_flight_ = 0;  // requests at engines that the loop polls for
    Clock::time_point spin_until_;
    bool suggestions_prepared_ = false;
    bool accepting_ = false;  // accept_connections runs
    bool draining_ = false;
    Clock::time_point drain_deadline_ = Clock::time_point::max();
    const Clock::time_point started_ = Clock::now();
    std::array<char, 65536> read_buffer_;
};

}  // namespace gloved::daemon
