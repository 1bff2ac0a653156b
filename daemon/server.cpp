#include "daemon/server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/quoting.hpp"
#include "common/wire/reply.hpp"
#include "daemon/descriptors.hpp"
#include "daemon/emergency_exit.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/log.hpp"
#include "daemon/pin.hpp"
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
/// A second SIGTERM so soon is the first one of another sender: a service manager's, or a shell's.
constexpr std::chrono::seconds kSameSigterm{1};
/// Time to write ERR lines after a fault. The process must be gone within two seconds.
constexpr std::chrono::milliseconds kFaultDrainTime{1000};
constexpr std::chrono::microseconds kMaxFaultTime{1'800'000};
/// Time for the engines' threads to end after the last answer.
constexpr std::chrono::microseconds kMaxStopTime{5'000'000};

/// Probes of each engine per watchdog interval.
constexpr int kProbesPerInterval = 4;

Peer peer_of(Socket& socket) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
        return {};
    return {credentials.uid, credentials.pid};
}

std::vector<std::unique_ptr<SessionLoop>> make_loops(const Settings& settings,
                                                     SessionLoop::Owner& owner,
                                                     Suggester& suggester) {
    std::vector<std::unique_ptr<SessionLoop>> loops;
    for (std::size_t number = 0; number < settings.io_threads; ++number)
        loops.push_back(std::make_unique<SessionLoop>(number, settings, owner, suggester));
    return loops;
}

void change_signal_mask(int how) noexcept {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
    ::pthread_sigmask(how, &signals, nullptr);
}

std::string_view name_of(int signal) { return signal == SIGTERM ? "SIGTERM" : "SIGINT"; }

}  // namespace

void block_signals() noexcept { change_signal_mask(SIG_BLOCK); }

void unblock_signals() noexcept { change_signal_mask(SIG_UNBLOCK); }

Server::Server(const Settings& settings, Loader load, ListeningSocket listening)
    : settings_(settings),
      listening_(std::move(listening)),
      room_{settings.limits.max_connections, kMaxRefusedSessions},
      loops_(make_loops(settings, *this, suggester_)),
      main_loop_(loops_.front()->io()),
      models_(settings, std::move(load), main_loop_, model_events()),
      acceptor_(main_loop_),
      signals_(main_loop_, SIGTERM, SIGINT, SIGHUP),
      input_(main_loop_),
      accept_pause_(main_loop_),
      tick_(main_loop_),
      watchdog_tick_(main_loop_),
      probes_done_(main_loop_.get_executor()),
      connections_at_(loops_.size()) {
    acceptor_.assign(asio::local::stream_protocol(), listening_.release_fd());
}

Server::~Server() {
    // Other threads post to the loops, so they end first. Sessions unregister themselves, so their
    // coroutines end before the members that they use.
    for (const auto& loop : loops_) loop->stop_thread();
    suggester_.stop();
    models_.stop();
    for (const auto& loop : loops_) loop->close_all();
    main_loop_.restart();
    main_loop_.poll();
}

ModelSet::Events Server::model_events() {
    return {
        .on_replaced =
            [this](const auto& loaded) {
                suggester_.prepare(loaded);
                on_all_loops(
                    [models = models_.all()](SessionLoop& loop) { loop.set_models(models); });
            },
        .on_fault =
            [this](const Error& error) {
                // At once: loops must not write answers that they have already.
                has_fault_ = true;
                asio::post(main_loop_, [this, error] { handle_fault(error); });
            },
        .on_device_error = [this] { probe_engines(); },
        .close_readers =
            [this](const Models& models) {
                on_all_loops([models](SessionLoop& loop) { loop.close_readers(models); });
            },
    };
}

void Server::on_all_loops(const std::function<void(SessionLoop&)>& function) {
    for (const auto& loop : loops_)
        asio::dispatch(loop->io(), [&loop = *loop, function] { function(loop); });
}

void Server::after_all_loops(std::function<void()> done) {
    const auto left = std::make_shared<std::size_t>(loops_.size());
    on_all_loops([this, left, done = std::move(done)](SessionLoop&) {
        asio::post(main_loop_, [left, done] {
            if (--*left == 0) done();
        });
    });
}

void Server::reload(SessionLoop& loop, std::optional<std::size_t> place,
                    std::function<void(const Status&)> done) {
    const auto tell = [this, &loop, done = std::move(done)](const Status& status) {
        // A request that is read after the reply to RELOAD, on any connection, gets the new model.
        after_all_loops(
            [&loop, done, status] { asio::post(loop.io(), [done, status] { done(status); }); });
    };
    asio::post(main_loop_, [this, place, tell] { models_.reload(place, tell); });
}

void Server::report(SessionLoop& loop, wire::Form form, std::optional<std::size_t> place,
                    std::function<void(Reply)> done) {
    asio::post(main_loop_, [this, &loop, form, place, done = std::move(done)]() mutable {
        Statistics all(settings_.models.size());
        for (const auto& each : loops_) all.add(each->statistics());
        Reply reply = place ? stats_reply(form, state(all), *models_.all()[*place])
                            : metrics_reply(form, state(all));
        asio::post(loop.io(), [reply = std::move(reply), done = std::move(done)]() mutable {
            done(std::move(reply));
        });
    });
}

bool Server::run(const std::function<void()>& on_ready) {
    on_ready_ = on_ready;
    unblock_signals();
    asio::co_spawn(
        main_loop_, [this] { return run_ticks(); }, asio::detached);
    asio::co_spawn(
        main_loop_, [this] { return handle_signals(); }, asio::detached);
    if (settings_.stop_at_eof) {
        input_.assign(STDIN_FILENO);
        asio::co_spawn(
            main_loop_, [this] { return watch_input(); }, asio::detached);
    }
    load_models();
    while (!main_loop_.stopped()) loops_.front()->run_one();
    for (const auto& loop : loops_) loop->stop_thread();
    // Now that all loops have ended: the last connection's end also stops the main loop.
    if (cut_connections_ > 0) {
        log_warning("{}: cut connections: {}; requests without a whole answer: {}", cut_reason_,
                    cut_connections_.load(), cut_requests_.load());
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
    for (const auto& loop : loops_) {
        loop->set_models(models_.all());
        if (loop != loops_.front()) loop->start_thread();
    }
    limit_connections();
    accepting_ = true;
    asio::co_spawn(
        main_loop_, [this] { return accept_connections(); }, asio::detached);
    if (hangup_while_loading_) reload_for_hangup();
    if (const auto interval = watchdog_interval()) {
        const std::chrono::duration<double> timeout = settings_.limits.request_timeout;
        const std::chrono::duration<double> watchdog = *interval;
        if (timeout >= watchdog) {
            log_warning(
                "request-timeout is {:g} s; keep it below the service's WatchdogSec=, {:g} s",
                timeout.count(), watchdog.count());
        }
        asio::co_spawn(
            main_loop_, [this, interval] { return feed_watchdog(*interval); }, asio::detached);
    }
    manager_.status(describe_state());
    manager_.ready();
    on_ready_();
}

/// Here, since loaded models and a GPU's driver have taken their descriptors.
void Server::limit_connections() {
    const auto descriptors = count_descriptors();
    if (!descriptors) return;
    const ConnectionRoom wanted = room_;
    room_ = room_for_connections(wanted, descriptors->free, settings_.models.size());
    if (room_.served == wanted.served) return;
    log_warning("max-connections is {} here, not {}: this process may have {} descriptors; {}",
                room_.served, wanted.served, descriptors->limit, kMoreDescriptors);
}

/// Feeds the service manager's watchdog while every engine answers its probe and every loop runs.
/// The manager kills a daemon whose GPU hangs, an interval later at most.
asio::awaitable<void> Server::feed_watchdog(std::chrono::microseconds interval) {
    while (!draining_) {
        probes_right_ = true;
        probe_engines();
        ++probes_in_flight_;
        after_all_loops([this] { count_probe(true); });
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
    if (!first.running()->missing_engines().empty())
        text += fmt::format("; not {}", first.running()->missing_engines());
    const PinState pinned = first.running()->pinned();
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
                asio::post(main_loop_, [this, right] { count_probe(right); });
            });
            if (asked) ++probes_in_flight_;
        }
    }
}

void Server::count_probe(bool right) {
    probes_right_ = probes_right_ && right;
    if (--probes_in_flight_ == 0) probes_done_.notify();
}

asio::awaitable<void> Server::accept_connections() {
    auto next_log = Clock::time_point::min();
    while (!draining_) {
        const std::size_t place = idlest_loop();
        Socket socket(loops_[place]->io());
        error_code error;
        co_await acceptor_.async_accept(socket, ignoring(error));
        // An accepted connection is served even if the daemon is stopping: no other process can.
        if (!error) admit(std::move(socket), place);
        if (!error || draining_) continue;
        const bool is_refused = refuse_without_descriptor();
        if (Clock::now() >= next_log) {
            log_warning("cannot accept connections: {}; {} connections are open; {}",
                        error.message(), open_connections_, kMoreDescriptors);
            next_log = Clock::now() + kLogPause;
        }
        if (is_refused) continue;
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
            const std::size_t place = idlest_loop();
            Socket socket(loops_[place]->io());
            acceptor_.accept(socket, error);
            if (error == asio::error::connection_aborted) continue;
            if (error) break;
            admit(std::move(socket), place);
        }
    }
    // A passed socket belongs to the service manager; what waits there is for the next daemon. It
    // is released from Asio before it is closed: epoll keeps reporting a socket that another
    // process holds open.
    const UniqueFd listening(acceptor_.release(error));
    accept_pause_.cancel();
}

std::size_t Server::idlest_loop() const {
    return static_cast<std::size_t>(std::ranges::min_element(connections_at_) -
                                    connections_at_.begin());
}

void Server::admit(Socket socket, std::size_t place) {
    const Peer peer = peer_of(socket);
    if (const auto reason = reason_to_refuse(peer))
        return refuse(std::move(socket), place, peer, *reason);
    ++connections_of_[peer.uid];
    ++connections_at_[place];
    ++open_connections_;
    SessionLoop& loop = *loops_[place];
    asio::dispatch(loop.io(), [&loop, peer, id = next_id_++, socket = std::move(socket)]() mutable {
        loop.admit(std::move(socket), peer, id);
    });
}

void Server::refuse(Socket socket, std::size_t place, const Peer& peer, const Error& reason) {
    SessionLoop& loop = *loops_[place];
    if (refused_sessions_ >= room_.refused) {
        // Too many peers are reading their reason: this one may lose its line.
        loops_.front()->statistics().count({}, reason.code);
        error_code error;
        socket.non_blocking(true, error);
        socket.write_some(asio::buffer(wire::error_reply(wire::Form::text, reason)), error);
        return;
    }
    ++refused_sessions_;
    asio::dispatch(loop.io(),
                   [&loop, peer, reason, id = next_id_++, socket = std::move(socket)]() mutable {
                       loop.refuse(std::move(socket), peer, id, reason);
                   });
}

bool Server::refuse_without_descriptor() {
    const Error reason =
        error_with(ErrorCode::busy, "{} connections are open, and there is no descriptor for more",
                   open_connections_);
    if (!reserve_.refuse_connection(acceptor_.native_handle(),
                                    wire::error_reply(wire::Form::text, reason)))
        return false;
    ++loops_.front()->statistics().connections().refused;
    loops_.front()->statistics().count({}, reason.code);
    return true;
}

void Server::session_ended(std::size_t loop, const Peer& peer, Session::Kind kind) {
    asio::dispatch(main_loop_, [this, loop, peer, kind] { note_end_of(loop, peer, kind); });
}

void Server::note_end_of(std::size_t place, const Peer& peer, Session::Kind kind) {
    if (kind == Session::Kind::refused) {
        --refused_sessions_;
    } else {
        --connections_at_[place];
        --open_connections_;
        if (--connections_of_.at(peer.uid) == 0) connections_of_.erase(peer.uid);
    }
    // A descriptor is free now: accept again.
    accept_pause_.cancel();
    // After the last session the loop ends now, not at the next tick.
    if (is_drained()) tick_.cancel();
}

std::optional<Error> Server::reason_to_refuse(const Peer& peer) {
    const std::size_t open = open_connections_;
    if (open >= room_.served) {
        ++loops_.front()->statistics().connections().refused;
        log_warning("refused a connection of user {}: {} connections are open (--max-connections)",
                    peer.uid, open);
        return error_with(ErrorCode::busy, "{} connections are open, which is the limit", open);
    }
    const auto found = connections_of_.find(peer.uid);
    const std::size_t of_user = found == connections_of_.end() ? 0 : found->second;
    if (of_user >= std::max<std::size_t>(1, room_.served * settings_.limits.uid_share / 100)) {
        ++loops_.front()->statistics().connections().refused;
        ++loops_.front()->statistics().connections().refused_uid_share;
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
    // Waiting for a signal or for input would keep the loop running.
    signals_.cancel(error);
    input_.close(error);
}

void Server::on_tick() {
    flush_log();
    manager_.send_pending();
    if (Clock::now() >= drain_deadline_)
        cut_connections("the time for the last answers has passed");
    if (!models_.is_complete()) return;
    if (!draining_) manager_.status(describe_state());
    models_.on_tick();
    // Not at the start, so that the first answers come sooner.
    if (!suggestions_prepared_) {
        suggestions_prepared_ = true;
        for (const auto& loaded : models_.all()) suggester_.prepare(loaded);
    }
    loops_.front()->on_tick();
}

asio::awaitable<void> Server::handle_signals() {
    while (true) {
        error_code error;
        const int number = co_await signals_.async_wait(ignoring(error));
        if (error) co_return;
        if (number == SIGHUP) {
            reload_for_hangup();
        } else if (draining_) {
            handle_second_signal(number);
        } else {
            log_info("{}: finishing received requests, then stopping", name_of(number));
            begin_drain(settings_.limits.drain_timeout);
        }
    }
}

asio::awaitable<void> Server::watch_input() {
    std::array<char, 256> unused{};
    error_code error;
    while (!error) co_await input_.async_read_some(asio::buffer(unused), ignoring(error));
    if (draining_) co_return;
    log_info("standard input ended: finishing received requests, then stopping");
    begin_drain(settings_.limits.drain_timeout);
}

void Server::handle_second_signal(int number) {
    if (number == SIGTERM && Clock::now() - drain_began_ < kSameSigterm) return;
    cut_connections(fmt::format("{} while stopping", name_of(number)));
}

void Server::cut_connections(const std::string& why) {
    if (std::exchange(is_cut_, true)) return;
    cut_reason_ = why;
    on_all_loops([this](SessionLoop& loop) {
        const SessionLoop::Cut cut = loop.cut_all();
        cut_connections_ += cut.connections;
        cut_requests_ += cut.requests;
    });
}

void Server::reload_for_hangup() {
    if (draining_) return log_info("SIGHUP: ignored; the daemon stops");
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
    models_.reload(std::nullopt, [this](const Status&) { --waiting_hangups_; });
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
    drain_began_ = Clock::now();
    drain_deadline_ = drain_began_ + timeout;
    manager_.stopping();
    if (!fault_) manager_.status("finishing received requests, then stopping");
    // The path first: a successor takes a socket that nobody listens on for a dead one.
    listening_.remove_path();
    stop_accepting();
    on_all_loops([](SessionLoop& loop) { loop.begin_drain(); });
    models_.stop_loading();
    tick_.cancel();
    watchdog_tick_.cancel();
    probes_done_.notify();
}

ServerState Server::state(const Statistics& statistics) const {
    return {settings_, models_, suggester_, statistics, open_connections_, room_.served, started_};
}

}  // namespace gloved::daemon
