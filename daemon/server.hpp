// The server: accepts connections, keeps their sessions, and handles signals, deadlines and the
// watchdog.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/asio.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/model_set.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/session.hpp"
#include "daemon/settings.hpp"
#include "daemon/socket_path.hpp"
#include "daemon/statistics.hpp"
#include "daemon/stats_reply.hpp"
#include "daemon/suggester.hpp"

namespace gloved::daemon {

/// Runs on the one thread that calls `run`.
class Server {
  public:
    /// `load` loads a model of `settings`, which outlives the server.
    Server(const Settings& settings, Loader load, ListeningSocket listening);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    /// Loads the models, calls `on_ready`, and serves until SIGTERM or SIGINT; then answers the
    /// requests that have arrived and returns true. Until it is ready, connections wait in the
    /// socket's backlog. Returns false when a model could not be loaded, or a model or engine
    /// failed: every unanswered request got an ERR line, and the log says why.
    [[nodiscard]] bool run(const std::function<void()>& on_ready);
    /// Whether a thread still loads a model after `run`: the destructor waits for it.
    bool is_loading() const { return models_.is_loading(); }

    const Settings& settings() const { return settings_; }
    /// The models; complete before there is a session.
    ModelSet& models() { return models_; }
    const ModelSet& models() const { return models_; }
    Suggester& suggester() { return suggester_; }
    /// Why the daemon answers no more requests; nothing while all is well.
    const std::optional<Error>& fault() const { return fault_; }
    /// The buffer that all sessions read into; valid until the session awaits anything.
    std::array<char, 65536>& read_buffer() { return read_buffer_; }

    /// Checks a request's k and engine. Error: bad_request.
    Status check(const wire::Request& request, const LoadedModel& loaded) const;
    /// What STATS reports.
    ServerState state() const;

    /// Counts an answer that was written, or whose connection was lost; writes the access log.
    void count_answer(const Peer& peer, std::optional<wire::Verb> verb,
                      std::optional<ErrorCode> error, Clock::duration took);
    Statistics& statistics() { return statistics_; }
    /// Counts requests at engines, so that the loop polls for quick answers.
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
    /// Stops accepting. Connections that wait at a socket of our own are accepted first.
    void stop_accepting();
    /// Starts a connection's session, or refuses it.
    void admit(Socket socket);
    /// Sends `reason` to a connection that is one too many, then closes it.
    void refuse(Socket socket, const Peer& peer, const Error& reason);
    /// Open connections without the refused ones.
    std::size_t open_connections() const { return sessions_.size() - refused_sessions_; }
    /// Why a further connection of this peer is one too many.
    std::optional<Error> reason_to_refuse(const Peer& peer);
    asio::awaitable<void> feed_watchdog(std::chrono::microseconds interval);
    void probe_engines();
    /// The line that `systemctl status` shows.
    std::string describe_state() const;
    asio::awaitable<void> run_ticks();
    void on_tick();
    asio::awaitable<void> handle_signals();
    void reload_for_hangup();
    /// Whether the last session has ended while draining.
    bool is_drained() const { return draining_ && !accepting_ && sessions_.empty(); }
    void begin_drain(std::chrono::milliseconds timeout);
    void handle_fault(const Error& error);
    /// Closes connections that are owed answers of these models.
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
    bool probes_right_ = true;  // those that came back since the last round began
    Signal probes_done_;
    std::unordered_map<std::uint64_t, std::weak_ptr<Session>> sessions_;  // with the refused
    std::size_t refused_sessions_ = 0;
    std::unordered_map<uid_t, std::size_t> connections_of_;  // by user
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
