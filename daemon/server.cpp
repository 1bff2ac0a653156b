#include "daemon/server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "common/quoting.hpp"
#include "common/wire/reply.hpp"
#include "daemon/log.hpp"
#include "daemon/pin.hpp"
#include "daemon/session.hpp"
#include "daemon/signals.hpp"

namespace gloved::daemon {
namespace {

/// How often deadlines are looked at: their precision.
constexpr std::chrono::milliseconds kTick{250};
/// After accept failed for want of descriptors or memory: trying again at once would spin.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kLogPause{10};
/// Refused connections that are kept open until they have read why.
constexpr std::size_t kMaxRefusedSessions = 256;
/// How long an answer that is on its way is waited for without sleeping.
constexpr std::chrono::milliseconds kSpin{2};
/// For the ERR lines after an engine was lost: the process is to be gone within two seconds.
constexpr std::chrono::milliseconds kFaultTimeout{1000};
constexpr std::chrono::microseconds kLastResort{1'800'000};
/// For the engines' threads to end and give their memory back, when all is answered.
constexpr std::chrono::microseconds kMaxStopTime{5'000'000};

/// The known query goes out so often within the time that the watchdog allows.
constexpr int kProbesPerInterval = 4;

/// Ends the process with status 1, should it still be there then: a thread may not come back from
/// what it is doing, on a GPU that hangs.
void end_at_the_latest_after(std::chrono::microseconds time) {
    static std::string last_words;  // the handler may not make it
    last_words = std::string(log_prefix_of_errors()) + "engine did not stop in time; exiting\n";
    struct sigaction action {};
    action.sa_handler = [](int) {
        write_last_words(last_words);
        ::_exit(1);
    };
    (void)::sigaction(SIGALRM, &action, nullptr);
    const itimerval timer{{}, {time.count() / 1'000'000, time.count() % 1'000'000}};
    (void)::setitimer(ITIMER_REAL, &timer, nullptr);
}

auto ignoring(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

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
      probed_(loop_.get_executor()) {
    acceptor_.assign(asio::local::stream_protocol(), listening_.release_fd());
}

Server::~Server() {
    // What runs beside the loop calls back into it, so it ends first; sessions unregister
    // themselves, so the loop's coroutines end before the members that they use.
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
        loop_, [this] { return keep_deadlines(); }, asio::detached);
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
    block_signals();  // what comes now would find nobody that handles it, and end the process
    end_log();
    if (!fault_) end_at_the_latest_after(kMaxStopTime);
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

/// The manager hears that all is well only if every engine has answered a known query since it
/// heard so last: it ends a daemon whose GPU, say, never comes back, no later than an interval
/// after that.
asio::awaitable<void> Server::feed_watchdog(std::chrono::microseconds interval) {
    while (!draining_) {
        probes_right_ = true;
        probe_engines();
        while (probes_due_ > 0 && !draining_) co_await probed_.wait();
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
    const std::string_view pinned = first.pinned();
    if (pinned == "on") text += "; memory locked";
    if (pinned == "refused")
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
                    if (--probes_due_ == 0) probed_.notify();
                });
            });
            if (asked) ++probes_due_;
        }
    }
}

asio::awaitable<void> Server::accept_connections() {
    auto next_log = Clock::time_point::min();
    while (!draining_) {
        Socket socket(loop_);
        error_code error;
        co_await acceptor_.async_accept(socket, ignoring(error));
        // What was taken is served, though the daemon may have been told to stop since: nobody else
        // can.
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
        // From here on connects are refused, and those that came before can still be taken: none is
        // lost in between.
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
    // A socket that was passed is its owner's, and what waits there is for the next daemon. Taken
    // from Asio before it is closed: the kernel would go on telling about a socket that others hold
    // open.
    const UniqueFd listening(acceptor_.release(error));
    accept_pause_.cancel();
}

void Server::admit(Socket socket) {
    const Peer peer = peer_of(socket);
    if (const auto reason = refusal(peer)) return refuse(std::move(socket), peer, *reason);
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
        // Too many are being told already: this one may lose its line.
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

std::optional<Error> Server::refusal(const Peer& peer) {
    const Limits& limits = settings_.limits;
    const std::size_t open = open_connections();
    if (open >= limits.max_connections) {
        ++statistics_.connections().refused;
        log_warning("refused a connection of user {}: {} connections are open (--max-connections)",
                    peer.uid, open);
        return Error{ErrorCode::busy,
                     fmt::format("{} connections are open, which is the limit", open)};
    }
    const auto found = connections_of_.find(peer.uid);
    const std::size_t of_user = found == connections_of_.end() ? 0 : found->second;
    if (of_user >= std::max<std::size_t>(1, limits.max_connections * limits.uid_share / 100)) {
        ++statistics_.connections().refused;
        ++statistics_.connections().refused_uid_share;
        log_warning(
            "refused a connection of user {}: the user has {} connections open (--uid-share)",
            peer.uid, of_user);
        return Error{
            ErrorCode::busy,
            fmt::format("you have {} connections open, which is one user's share", of_user)};
    }
    return std::nullopt;
}

asio::awaitable<void> Server::keep_deadlines() {
    error_code error;
    while (!is_drained()) {
        tick_.expires_after(kTick);
        co_await tick_.async_wait(ignoring(error));
        on_tick();
    }
}

/// What is to be done now and then.
void Server::on_tick() {
    tend_log();
    manager_.send_kept();
    if (!models_.is_complete()) return;
    if (!draining_) manager_.status(describe_state());
    models_.on_tick();
    // Not before: until then the first answers come sooner.
    if (!suggestions_prepared_) {
        suggestions_prepared_ = true;
        for (const auto& loaded : models_.all()) suggester_.prepare(loaded);
    }
    // A session that ends here would change the map under the loop.
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
        // A model may have been replaced since it was read.
        hangup_while_loading_ = true;
        return log_info("SIGHUP: all models will be reloaded once the daemon is ready");
    }
    // One is under way and one waits, which will find whatever has changed by now.
    if (hangups_to_do_ > 1)
        return log_info("SIGHUP: ignored; a reload of all models is waiting already");
    log_info("SIGHUP: reloading {}", settings_.models.size() == 1 ? "the model" : "all models");
    ++hangups_to_do_;
    models_.reload(models_.all_places(), [this](const Status&) { --hangups_to_do_; });
}

void Server::handle_fault(const Error& error) {
    if (fault_) return;
    fault_ = error;
    manager_.status(fmt::format("out of service: {}", error.message));
    models_.refuse(error);
    end_at_the_latest_after(kLastResort);
    begin_drain(std::min(kFaultTimeout, settings_.limits.drain_timeout));
}

void Server::begin_drain(std::chrono::milliseconds timeout) {
    draining_ = true;
    drain_deadline_ = Clock::now() + timeout;
    manager_.stopping();
    if (!fault_) manager_.status("finishing received requests, then stopping");
    // The path first: while it is there somebody listens on it, and no successor takes it for a
    // dead one.
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
    probed_.notify();
}

ServerState Server::state() const {
    return {settings_, models_, suggester_, statistics_, open_connections(), started_};
}

void Server::count_submitted(const EngineWorker& worker) {
    if (!worker.worth_spinning()) return;
    ++quick_in_flight_;
    spin_until_ = Clock::now() + kSpin;
}

void Server::count_answer(const Peer& peer, std::optional<wire::Verb> verb,
                          std::optional<ErrorCode> error, Clock::duration took) {
    statistics_.count(verb, error);
    if (!settings_.access_log) return;
    // What was asked is nobody's business but the one's who asked.
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    write_log_always(spdlog::level::info, fmt::format("uid={} pid={} verb={} outcome={} us={}",
                                                      static_cast<std::int64_t>(peer.uid), peer.pid,
                                                      verb ? wire::verb_name(*verb) : "none",
                                                      error ? wire::code_name(*error) : "OK", us));
}

void Server::forget(std::uint64_t id, const Peer& peer) {
    sessions_.erase(id);
    if (const auto found = connections_of_.find(peer.uid);
        found != connections_of_.end() && --found->second == 0) {
        connections_of_.erase(found);
    }
    // Where there was no descriptor for one more, there may be now.
    accept_pause_.cancel();
    // The last one out lets the loop end now rather than at the next tick.
    if (is_drained()) tick_.cancel();
}

void Server::forget_refused(std::uint64_t id) {
    sessions_.erase(id);
    --refused_sessions_;
    accept_pause_.cancel();
    if (is_drained()) tick_.cancel();
}

Status Server::check(const wire::Request& request, const LoadedModel& served) const {
    const wire::Options& options = request.options;
    if (options.k > settings_.limits.max_k) {
        return Error{ErrorCode::bad_request, fmt::format("k= is at most {} here, not {}",
                                                         settings_.limits.max_k, options.k)};
    }
    if (served.find_worker(options.engine) == nullptr) {
        std::string names;
        for (const auto& worker : served.workers())
            names += (names.empty() ? "" : ", ") + worker->engine().name();
        return Error{ErrorCode::bad_request, fmt::format("no engine {} here: there is {}",
                                                         printable(options.engine), names)};
    }
    return {};
}

void Server::close_readers(const ModelSet::Models& models) {
    for (const auto& [id, session] : sessions_) {
        const auto alive = session.lock();
        if (!alive || !alive->takes_answers_of(models)) continue;
        statistics_.connections().count(CloseReason::unread);
        alive->close();
    }
}

}  // namespace gloved::daemon
