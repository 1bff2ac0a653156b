// The daemon as a library: a listening socket, its sessions, and the life of both.
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

/// Everything here runs on the one thread that calls `run`.
class Server {
  public:
    /// `load` loads one of the models that `settings` names, at the start and anew.
    Server(const Settings& settings, Loader load, ListeningSocket listening);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    /// Loads the models, calls `on_ready`, and serves until SIGTERM or SIGINT; then answers what
    /// has been asked and returns. Until it is ready connections wait in the socket's backlog.
    /// False: a model could not be loaded, or was lost, or its engine was; every request that was
    /// not answered by then got an ERR line, and the log says why.
    [[nodiscard]] bool run(const std::function<void()>& on_ready);
    /// Whether a thread still loads a model, after `run` has returned: destroying the server would
    /// wait for it.
    bool is_loading() const { return models_.is_loading(); }

    const Settings& settings() const { return settings_; }
    /// The models; complete before there is a session.
    ModelSet& models() { return models_; }
    const ModelSet& models() const { return models_; }
    Suggester& suggester() { return suggester_; }
    /// Why no request is answered any more; nothing while all is well.
    const std::optional<Error>& fault() const { return fault_; }
    /// Where a session reads into; its content is good until the session waits for anything.
    std::array<char, 65536>& read_buffer() { return read_buffer_; }

    /// What can be refused without looking at the model: bounds, names. Error: bad_request.
    Status check(const wire::Request& request, const LoadedModel& served) const;
    /// What STATS reports.
    ServerState state() const;

    /// An answer has been written, or its connection was lost meanwhile.
    void count_answer(const Peer& peer, std::optional<wire::Verb> verb,
                      std::optional<ErrorCode> error, Clock::duration took);
    Statistics& statistics() { return statistics_; }
    /// A request went to an engine, and its answer came back.
    void count_submitted(const EngineWorker& worker);
    void count_answered(const EngineWorker& worker) {
        if (worker.worth_spinning()) --quick_in_flight_;
    }
    /// A session is gone.
    void forget(std::uint64_t id, const Peer& peer);
    void forget_refused(std::uint64_t id);

  private:
    ModelSet::Events model_events();
    /// Loads the models for the first time, one after another, then serves.
    void load_models();
    void begin_serving();
    asio::awaitable<void> accept_connections();
    /// Takes no more connections. Of a socket of our own it first takes those that wait already.
    void stop_accepting();
    /// Starts the session of a connection, or refuses it.
    void admit(Socket socket);
    /// Tells a connection why it is one too many.
    void refuse(Socket socket, const Peer& peer, const Error& reason);
    /// Connections open, without those that are being refused.
    std::size_t open_connections() const { return sessions_.size() - refused_sessions_; }
    /// Why a connection of this peer is one too many.
    std::optional<Error> refusal(const Peer& peer);
    asio::awaitable<void> feed_watchdog(std::chrono::microseconds interval);
    void probe_engines();
    /// What `systemctl status` shows.
    std::string describe_state() const;
    asio::awaitable<void> keep_deadlines();
    void on_tick();
    asio::awaitable<void> handle_signals();
    void reload_for_hangup();
    /// Nothing is left to be done but to end.
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
    std::size_t hangups_to_do_ = 0;      // reloads that wait, for SIGHUP
    bool hangup_while_loading_ = false;  // a SIGHUP came before the daemon served
    asio::io_context loop_{1};
    ModelSet models_;
    Suggester suggester_;
    asio::local::stream_protocol::acceptor acceptor_;
    asio::signal_set signals_;
    asio::steady_timer accept_pause_;
    asio::steady_timer tick_;
    asio::steady_timer watchdog_tick_;
    std::size_t probes_due_ = 0;
    bool probes_right_ = true;  // all that have come back since the watchdog asked
    Signal probed_;             // all probes are back
    std::unordered_map<std::uint64_t, std::weak_ptr<Session>> sessions_;  // those that are being
                                                                          // refused, too
    std::size_t refused_sessions_ = 0;                                    // of them, being refused
    std::unordered_map<uid_t, std::size_t> connections_of_;               // by user
    std::uint64_t next_id_ = 1;
    Statistics statistics_;
    std::uint64_t quick_in_flight_ = 0;  // at engines that are worth spinning for
    Clock::time_point spin_until_;
    bool suggestions_prepared_ = false;
    bool accepting_ = false;  // the coroutine that accepts runs
    bool draining_ = false;
    Clock::time_point drain_deadline_ = Clock::time_point::max();
    const Clock::time_point started_ = Clock::now();
    std::array<char, 65536> read_buffer_;
};

}  // namespace gloved::daemon
