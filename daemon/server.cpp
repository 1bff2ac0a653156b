#include "daemon/server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/quoting.hpp"
#include "common/wire/reply.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/log.hpp"
#include "daemon/pin.hpp"
#include "daemon/signals.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {
namespace {

/// How often deadlines are checked.
constexpr std::chrono::milliseconds kTick{250};
/// Pause after accept failed, say for lack of descriptors: an immediate retry would spin.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kLogPause{10};
/// Refused connections that stay open until their peers have read the reason.
constexpr std::size_t kMaxRefusedSessions = 256;
/// How long the loop polls for an answer before it sleeps.
constexpr std::chrono::milliseconds kSpin{2};
/// Time to write ERR lines after a fault. The process must be gone within two seconds.
constexpr std::chrono::milliseconds kFaultDrainTime{1000};
constexpr std::chrono::microseconds kMaxFaultTime{1'800'000};
/// Time for the engines' threads to end after the last answer.
constexpr std::chrono::microseconds kMaxStopTime{5'000'000};

/// Probes of each engine per watchdog interval.
constexpr int kProbesPerInterval = 4;

/// Ends the process with status 1 after `time`: on a GPU that hangs, a thread may never return.
void exit_after(std::chrono::microseconds time) {
    static std::string message;  // made here: the handler may not allocate
    message = std::string(log_prefix_of_errors()) + "engine did not stop in time; exiting\n";
    struct sigaction action {};
    action.sa_handler = [](int) {
        write_emergency_line(message);
        ::_exit(1);
    };
    (void)::sigaction(SIGALRM, &action, nullptr);
    const itimerval timer{{}, {time.count() / 1'000'000, time.count() % 1'000'000}};
    (void)::setitimer(ITIMER_REAL, &timer, nullptr);
}

Peer peer_of(Socket& socket) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
        return {};
    return {credentials.uid, credentials.pid};
}

}  // namespace

Server::Server(const Settings& settings, Loader load, ListeningSocket listening)
    : settings_(settings),
      listening_(std::move(listening)),
      models_(settings, std::move(load), loop_, model_events()),
      suggester_(loop_),
      acceptor_(loop_),
      signals_(loop_, SIGTERM, SIGINT, SIGHUP),
      accept_pause_(loop_),
      tick_(loop_),
      watchdog_tick_(loop_),
      probes_done_(loop_.get_executor()) {
    acceptor_.assign(asio::local::stream_protocol(), listening_.release_fd());
}

Server::~Server() {
    // Other threads post to the loop, so they end first. Sessions unregister themselves, so their
    // coroutines end before the members that they use.
    suggester_.stop();
    models_.stop();
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->close();
    }
    loop_.restart();
    loop_.poll();
}

ModelSet::Events Server::model_events() {
    return {
        .on_replaced = [this](const auto& loaded) { suggester_.prepare(loaded); },
        .on_fault = [this](const Error& error) { handle_fault(error); },
        .on_device_error = [this] { probe_engines(); },
        .close_readers = [this](const ModelSet::Models& models) { close_readers(models); },
    };
}

bool Server::run(const std::function<void()>& on_ready) {
    on_ready_ = on_ready;
    unblock_signals();
    asio::co_spawn(
        loop_, [this] { return run_ticks(); }, asio::detached);
    asio::co_spawn(
        loop_, [this] { return handle_signals(); }, asio::detached);
    load_models();
    while (!loop_.stopped()) {
        if (quick_in_flight_ > 0 && Clock::now() < spin_until_) {
            loop_.poll_one();
        } else {
            loop_.run_one();
        }
    }
    block_signals();  // no handler is left, so a signal would end the process
    end_log();
    if (!fault_) exit_after(kMaxStopTime);
    return !fault_;
}

void Server::load_models() {
    if (models_.is_complete()) return begin_serving();
    const std::size_t place = models_.all().size();
    manager_.status(fmt::format("loading {} ({} of {})", settings_.models[place].name, place + 1,
                                settings_.models.size()));
    models_.load_next([this](const Status& loaded) {
        if (loaded) return load_models();
        fault_ = loaded.error();
        log_error("{}", loaded.error().message);
        manager_.status(fmt::format("cannot start: {}", loaded.error().message));
        begin_drain({});
    });
}

void Server::begin_serving() {
    accepting_ = true;
    asio::co_spawn(
        loop_, [this] { return accept_connections(); }, asio::detached);
    if (hangup_while_loading_) reload_for_hangup();
    if (const auto interval = watchdog_interval()) {
        asio::co_spawn(
            loop_, [this, interval] { return feed_watchdog(*interval); }, asio::detached);
    }
    manager_.status(describe_state());
    manager_.ready();
    on_ready_();
}

/// Feeds the service manager's watchdog while every engine answers its probe. The manager kills a
/// daemon whose GPU hangs, an interval later at most.
asio::awaitable<void> Server::feed_watchdog(std::chrono::microseconds interval) {
    while (!draining_) {
        probes_right_ = true;
        probe_engines();
        while (probes_in_flight_ > 0 && !draining_) co_await probes_done_.wait();
        if (!fault_ && probes_right_) manager_.alive();
        error_code ignored;
        watchdog_tick_.expires_after(interval / kProbesPerInterval);
        if (!draining_) co_await watchdog_tick_.async_wait(ignoring(ignored));
    }
}

std::string Server::describe_state() const {
    const LoadedModel& first = *models_.all().front();
    const kernels::Engine& engine = first.first_worker().engine();
    std::string text =
        fmt::format("serving {}: {} words x {}, engine {} ({})", first.name(), first.model().rows(),
                    first.model().dim(), engine.name(), engine.description());
    if (models_.all().size() > 1) text += fmt::format("; {} models in all", models_.all().size());
    if (!settings_.missing_engines.empty())
        text += fmt::format("; not {}", settings_.missing_engines);
    const PinState pinned = first.pinned();
    if (pinned == PinState::on) text += "; memory locked";
    if (pinned == PinState::refused)
        text += fmt::format("; memory not locked (the limit is {})", describe(memlock_limit()));
    if (const std::string reason = models_.degraded_reason(); !reason.empty())
        text += "; DEGRADED: " + reason;
    return text;
}

void Server::probe_engines() {
    for (const auto& loaded : models_.all()) {
        for (const auto& worker : loaded->workers()) {
            const bool asked = worker->probe([this](bool right) {
                asio::post(loop_, [this, right] {
                    probes_right_ = probes_right_ && right;
                    if (--probes_in_flight_ == 0) probes_done_.notify();
                });
            });
            if (asked) ++probes_in_flight_;
        }
    }
}

asio::awaitable<void> Server::accept_connections() {
    auto next_log = Clock::time_point::min();
    while (!draining_) {
        Socket socket(loop_);
        error_code error;
        co_await acceptor_.async_accept(socket, ignoring(error));
        // An accepted connection is served even if the daemon is stopping: no other process can.
        if (!error) admit(std::move(socket));
        if (!error || draining_) continue;
        if (Clock::now() >= next_log) {
            log_warning("cannot accept connections: {}; {} connections are open", error.message(),
                        open_connections());
            next_log = Clock::now() + kLogPause;
        }
        accept_pause_.expires_after(kAcceptPause);
        co_await accept_pause_.async_wait(ignoring(error));
    }
    accepting_ = false;
    if (is_drained()) tick_.cancel();
}

void Server::stop_accepting() {
    error_code error;
    if (listening_.is_own() && models_.is_complete()) {
        // From here on connects are refused, and those that wait can still be accepted.
        ::shutdown(acceptor_.native_handle(), SHUT_RD);
        acceptor_.non_blocking(true, error);
        while (true) {
            Socket socket(loop_);
            acceptor_.accept(socket, error);
            if (error == asio::error::connection_aborted) continue;
            if (error) break;
            admit(std::move(socket));
        }
    }
    // A passed socket belongs to the service manager; what waits there is for the next daemon. It
    // is released from Asio before it is closed: epoll keeps reporting a socket that another
    // process holds open.
    const UniqueFd listening(acceptor_.release(error));
    accept_pause_.cancel();
}

void Server::admit(Socket socket) {
    const Peer peer = peer_of(socket);
    if (const auto reason = reason_to_refuse(peer)) return refuse(std::move(socket), peer, *reason);
    const std::uint64_t id = next_id_++;
    const auto session = std::make_shared<Session>(*this, std::move(socket), peer, id);
    ++connections_of_[peer.uid];
    ++statistics_.connections().admitted;
    sessions_.emplace(id, session);
    session->start();
    if (draining_) session->begin_drain();
}

void Server::refuse(Socket socket, const Peer& peer, const Error& reason) {
    if (refused_sessions_ == kMaxRefusedSessions) {
        // Too many peers are reading their reason: this one may lose its line.
        statistics_.count(std::nullopt, reason.code);
        error_code error;
        socket.non_blocking(true, error);
        socket.write_some(asio::buffer(wire::error_reply(wire::Form::text, reason)), error);
        return;
    }
    const std::uint64_t id = next_id_++;
    const auto session =
        std::make_shared<Session>(*this, std::move(socket), peer, id, Session::Kind::refused);
    ++refused_sessions_;
    sessions_.emplace(id, session);
    session->start_refused(reason);
}

std::optional<Error> Server::reason_to_refuse(const Peer& peer) {
    const Limits& limits = settings_.limits;
    const std::size_t open = open_connections();
    if (open >= limits.max_connections) {
        ++statistics_.connections().refused;
        log_warning("refused a connection of user {}: {} connections are open (--max-connections)",
                    peer.uid, open);
        return error_with(ErrorCode::busy, "{} connections are open, which is the limit", open);
    }
    const auto found = connections_of_.find(peer.uid);
    const std::size_t of_user = found == connections_of_.end() ? 0 : found->second;
    if (of_user >= std::max<std::size_t>(1, limits.max_connections * limits.uid_share / 100)) {
        ++statistics_.connections().refused;
        ++statistics_.connections().refused_uid_share;
        log_warning(
            "refused a connection of user {}: the user has {} connections open (--uid-share)",
            peer.uid, of_user);
        return error_with(ErrorCode::busy,
                          "you have {} connections open, which is one user's share", of_user);
    }
    return std::nullopt;
}

asio::awaitable<void> Server::run_ticks() {
    error_code error;
    while (!is_drained()) {
        tick_.expires_after(kTick);
        co_await tick_.async_wait(ignoring(error));
        on_tick();
    }
}

void Server::on_tick() {
    flush_log();
    manager_.send_pending();
    if (!models_.is_complete()) return;
    if (!draining_) manager_.status(describe_state());
    models_.on_tick();
    // Not at the start, so that the first answers come sooner.
    if (!suggestions_prepared_) {
        suggestions_prepared_ = true;
        for (const auto& loaded : models_.all()) suggester_.prepare(loaded);
    }
    // A copy: a session that ends removes itself from the map.
    const auto now = Clock::now();
    std::vector<std::shared_ptr<Session>> alive;
    for (const auto& [id, session] : sessions_) {
        if (auto locked = session.lock()) alive.push_back(std::move(locked));
    }
    for (const auto& session : alive) {
        if (now >= drain_deadline_) {
            session->close();
        } else {
            session->enforce_deadlines(now);
        }
    }
}

asio::awaitable<void> Server::handle_signals() {
    while (!draining_) {
        error_code error;
        const int number = co_await signals_.async_wait(ignoring(error));
        if (error) co_return;
        if (number == SIGHUP) {
            reload_for_hangup();
            continue;
        }
        log_info("{}: finishing received requests, then stopping",
                 number == SIGTERM ? "SIGTERM" : "SIGINT");
        begin_drain(settings_.limits.drain_timeout);
    }
}

void Server::reload_for_hangup() {
    if (!models_.is_complete()) {
        // The model may have been replaced on disk since it was read.
        hangup_while_loading_ = true;
        return log_info("SIGHUP: all models will be reloaded once the daemon is ready");
    }
    // One is running and one waits, which will read whatever has changed by now.
    if (waiting_hangups_ > 1)
        return log_info("SIGHUP: ignored; a reload of all models is waiting already");
    log_info("SIGHUP: reloading {}", settings_.models.size() == 1 ? "the model" : "all models");
    ++waiting_hangups_;
    models_.reload(models_.all_places(), [this](const Status&) { --waiting_hangups_; });
}

void Server::handle_fault(const Error& error) {
    if (fault_) return;
    fault_ = error;
    manager_.status(fmt::format("out of service: {}", error.message));
    models_.refuse_all(error);
    exit_after(kMaxFaultTime);
    begin_drain(std::min(kFaultDrainTime, settings_.limits.drain_timeout));
}

void Server::begin_drain(std::chrono::milliseconds timeout) {
    draining_ = true;
    drain_deadline_ = Clock::now() + timeout;
    manager_.stopping();
    if (!fault_) manager_.status("finishing received requests, then stopping");
    // The path first: a successor takes a socket that nobody listens on for a dead one.
    listening_.remove_path();
    stop_accepting();
    error_code ignored;
    signals_.cancel(ignored);
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->begin_drain();
    }
    models_.stop_loading();
    tick_.cancel();
    watchdog_tick_.cancel();
    probes_done_.notify();
}

ServerState Server::state() const {
    return {settings_, models_, suggester_, statistics_, open_connections(), started_};
}

void Server::count_submitted(const EngineWorker& worker) {
    if (!worker.should_spin()) return;
    ++quick_in_flight_;
    spin_until_ = Clock::now() + kSpin;
}

void Server::count_answer(const Peer& peer, std::optional<wire::Verb> verb,
                          std::optional<ErrorCode> error, Clock::duration took) {
    statistics_.count(verb, error);
    if (!settings_.access_log) return;
    // Never the request itself: it is private.
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    write_log_always(spdlog::level::info, fmt::format("uid={} pid={} verb={} outcome={} us={}",
                                                      static_cast<std::int64_t>(peer.uid), peer.pid,
                                                      verb ? wire::verb_name(*verb) : "none",
                                                      error ? wire::code_name(*error) : "OK", us));
}

void Server::remove_session(std::uint64_t id, const Peer& peer, bool is_refused) {
    sessions_.erase(id);
    if (is_refused) {
        --refused_sessions_;
    } else if (--connections_of_.at(peer.uid) == 0) {
        connections_of_.erase(peer.uid);
    }
    // A descriptor is free now: accept again.
    accept_pause_.cancel();
    // After the last session the loop ends now, not at the next tick.
    if (is_drained()) tick_.cancel();
}

Status Server::check(const wire::Request& request, const LoadedModel& loaded) const {
    const wire::Options& options = request.options;
    if (options.k > settings_.limits.max_k) {
        return error_with(ErrorCode::bad_request, "k= is at most {} here, not {}",
                          settings_.limits.max_k, options.k);
    }
    if (loaded.find_worker(options.engine) == nullptr) {
        std::string names;
        for (const auto& worker : loaded.workers())
            names += (names.empty() ? "" : ", ") + worker->engine().name();
        return error_with(ErrorCode::bad_request, "no engine {} here: there is {}",
                          printable(options.engine), names);
    }
    return {};
}

void Server::close_readers(const ModelSet::Models& models) {
    for (const auto& [id, session] : sessions_) {
        const auto alive = session.lock();
        if (!alive || !alive->is_owed_answers_of(models)) continue;
        statistics_.connections().count(CloseReason::unread);
        alive->close();
    }
}

}  // namespace gloved::daemon
