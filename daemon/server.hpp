// Server: accepts connections and spreads them over loops, and handles signals, reloads, deadlines
// and the watchdog.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/asio.hpp"
#include "daemon/descriptors.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/model_set.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/session.hpp"
#include "daemon/session_loop.hpp"
#include "daemon/settings.hpp"
#include "daemon/socket_path.hpp"
#include "daemon/statistics.hpp"
#include "daemon/stats_reply.hpp"
#include "daemon/suggester.hpp"

namespace gloved::daemon {

/// Blocks the signals that the server handles, SIGTERM, SIGINT and SIGHUP, in this thread and in
/// the threads that it starts afterwards. Call it first in main: a signal that comes before its
/// handler is installed would end the process, and leave the file of its socket behind.
void block_signals() noexcept;
/// Lets the three signals reach this thread again, those that came meanwhile at once.
void unblock_signals() noexcept;

/// The thread that calls `run` is the main thread, which also runs the first of the loops; all
/// functions run on it.
class Server final : private SessionLoop::Owner {
  public:
    /// `load` loads one model. `settings` must outlive the server.
    Server(const Settings& settings, Loader load, ListeningSocket listening);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    /// Loads all models, calls `on_ready`, and serves. Until then, connections wait in the socket's
    /// backlog. After SIGTERM or SIGINT answers the requests that have arrived and returns true; a
    /// second signal cuts what is left.
    /// Returns false if a model cannot be loaded, or if a model or engine fails: then every
    /// unanswered request gets an ERR line, and the log says why.
    [[nodiscard]] bool run(const std::function<void()>& on_ready);
    /// Whether other threads still do after `run` what nobody needs any more: load a model, or
    /// answer requests that were cut. The destructor would wait for them.
    bool has_useless_threads() const { return models_.is_loading() || is_cut_; }

  private:
    bool has_fault() const override { return has_fault_; }
    void session_ended(std::size_t loop, const Peer& peer, Session::Kind kind) override;
    void reload(SessionLoop& loop, std::optional<std::size_t> place,
                std::function<void(const Status&)> done) override;
    void report(SessionLoop& loop, wire::Form form, std::optional<std::size_t> place,
                std::function<void(Reply)> done) override;

    ModelSet::Events model_events();
    /// Loads the models for the first time, one after another, then serves.
    void load_models();
    void begin_serving();
    /// Lowers the number of connections to what the descriptors allow.
    void limit_connections();
    asio::awaitable<void> accept_connections();
    /// Refuses one connection with the reserve; false if none could be accepted.
    bool refuse_without_descriptor();
    /// Stops accepting. If no other process listens on the socket, first accepts the connections in
    /// its backlog.
    void stop_accepting();
    /// The loop with the fewest connections: the next one goes there.
    std::size_t idlest_loop() const;
    /// Starts a connection's session on the loop of its socket, or refuses it.
    void admit(Socket socket, std::size_t place);
    /// Sends `reason` to a connection that is one too many, then closes it.
    void refuse(Socket socket, std::size_t place, const Peer& peer, const Error& reason);
    /// Calls `function` on every loop's thread, with the loop.
    void on_all_loops(const std::function<void(SessionLoop&)>& function);
    /// Calls `done` on the main thread after all loops have run what was posted to them before.
    void after_all_loops(std::function<void()> done);
    void note_end_of(std::size_t place, const Peer& peer, Session::Kind kind);
    /// Why a further connection of this peer would be one too many; nullopt if it is not.
    std::optional<Error> reason_to_refuse(const Peer& peer);
    asio::awaitable<void> feed_watchdog(std::chrono::microseconds interval);
    void probe_engines();
    /// Called when a probe of an engine or a loop has come back.
    void count_probe(bool right);
    /// The state for the line that `systemctl status` shows.
    std::string describe_state() const;
    asio::awaitable<void> run_ticks();
    void on_tick();
    asio::awaitable<void> handle_signals();
    /// Waits for the end of standard input, then stops as after SIGTERM.
    asio::awaitable<void> watch_input();
    /// SIGTERM or SIGINT while the daemon stops: ends it now.
    void handle_second_signal(int number);
    /// Closes all connections and logs how many, and why.
    void cut_connections(const std::string& why);
    void reload_for_hangup();
    /// Whether the last session has ended while draining.
    bool is_drained() const {
        return draining_ && !accepting_ && open_connections_ == 0 && refused_sessions_ == 0;
    }
    /// What STATS reports; `statistics` are those of all loops.
    ServerState state(const Statistics& statistics) const;
    void begin_drain(std::chrono::milliseconds timeout);
    void handle_fault(const Error& error);

    const Settings& settings_;
    std::function<void()> on_ready_;
    std::atomic<bool> has_fault_ = false;  // as soon as any thread notices a fault
    std::optional<Error> fault_;
    ServiceManager manager_;
    ListeningSocket listening_;
    std::size_t waiting_hangups_ = 0;    // reloads for SIGHUP
    bool hangup_while_loading_ = false;  // a SIGHUP came before all models were loaded
    Suggester suggester_;
    ConnectionRoom room_;
    ReserveDescriptor reserve_;
    std::vector<std::unique_ptr<SessionLoop>> loops_;
    asio::io_context& main_loop_;  // the first one's
    ModelSet models_;
    asio::local::stream_protocol::acceptor acceptor_;
    asio::signal_set signals_;
    asio::posix::stream_descriptor input_;  // standard input, if its end stops the daemon
    asio::steady_timer accept_pause_;
    asio::steady_timer tick_;
    asio::steady_timer watchdog_tick_;
    std::size_t probes_in_flight_ = 0;
    bool probes_right_ = true;  // all answers since the last round of probes began were right
    Signal probes_done_;
    std::vector<std::size_t> connections_at_;  // number of each loop's, without the refused
    std::size_t open_connections_ = 0;         // the sum
    std::size_t refused_sessions_ = 0;
    std::unordered_map<uid_t, std::size_t> connections_of_;  // number of each user's
    std::uint64_t next_id_ = 1;
    bool suggestions_prepared_ = false;
    bool accepting_ = false;  // accept_connections runs
    bool draining_ = false;
    bool is_cut_ = false;  // cut_connections was called
    std::string cut_reason_;
    std::atomic<std::size_t> cut_connections_ = 0;  // by all loops
    std::atomic<std::size_t> cut_requests_ = 0;
    Clock::time_point drain_began_;
    Clock::time_point drain_deadline_ = Clock::time_point::max();
    const Clock::time_point started_ = Clock::now();
};

}  // namespace gloved::daemon
