#include "daemon/server.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include "common/quoting.hpp"
#include "common/wire/reply.hpp"
#include "daemon/log.hpp"
#include "daemon/out_of_memory.hpp"
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

/// How long a new model waits for the one before it to give its last answers.
constexpr std::chrono::seconds kMaxFarewell{10};
/// How long connections that were cut may take to let go of it.
constexpr std::chrono::seconds kMaxUnwinding{1};

/// Suggestions may take a fifth of one processor, and a quarter of a second at once.
constexpr int kAllowanceDivisor = 5;
constexpr std::chrono::milliseconds kMaxSuggestAllowance{250};
constexpr std::size_t kMaxWaitingSuggestions = 64;

/// The known query goes out so often within the time that the watchdog allows.
constexpr int kProbesPerInterval = 4;

/// Ends the process with status 1, should it still be there then: a thread may not come back from
/// what it is doing, on a GPU that hangs.
void end_at_the_latest_after(std::chrono::microseconds time) {
    static std::string last_words;  // the handler may not make it
    last_words = std::string(log_prefix_of_errors()) +
                 "an engine has not come to an end in time; ended without it\n";
    struct sigaction action {};
    action.sa_handler = [](int) {
        write_last_words(last_words);
        ::_exit(1);
    };
    (void)::sigaction(SIGALRM, &action, nullptr);
    const itimerval timer{{}, {time.count() / 1'000'000, time.count() % 1'000'000}};
    (void)::setitimer(ITIMER_REAL, &timer, nullptr);
}

Loaded try_to_load(const Loader& load, const ModelSetting& setting, bool verify,
                   const Status& fits) try {
    if (!fits) return fits.error();
    return load(setting, verify);
} catch (const std::exception& error) {
    return Error{ErrorCode::unavailable, error.what()};  // no more threads, most likely
}

/// What was needed while a model was made ready, or by one that is gone, would stay with the arena
/// of the thread that had it, and each model has threads of its own: it adds up to megabytes for
/// every hundred that are mapped.
void give_back_memory() {
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
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
      load_(std::move(load)),
      listening_(std::move(listening)),
      acceptor_(loop_),
      signals_(loop_, SIGTERM, SIGINT, SIGHUP),
      accept_pause_(loop_),
      tick_(loop_),
      watchdog_tick_(loop_),
      probed_(loop_.get_executor()),
      suggesting_allowance_(kMaxSuggestAllowance) {
    acceptor_.assign(asio::local::stream_protocol(), listening_.release_fd());
}

Server::~Server() {
    // What runs beside the loop calls back into it, so it ends first; sessions unregister
    // themselves, so the loop's coroutines end before the members that they use.
    for (asio::thread_pool* pool : {&loading_, &suggesting_}) {
        pool->stop();
        pool->join();
    }
    for (const auto& served : models_) served->stop();
    for (const auto& served : retired_) served->stop();
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->close();
    }
    loop_.restart();
    loop_.poll();
}

void Server::watch_engines(const LoadedModel& served) {
    for (const auto& worker : served.workers()) {
        worker->on_fault([this](const Error& error) {
            asio::post(loop_, [this, error] { handle_fault(error); });
        });
    }
}

bool Server::run(const std::function<void()>& on_ready) {
    on_ready_ = on_ready;
    unblock_signals();
    asio::co_spawn(
        loop_, [this] { return keep_deadlines(); }, asio::detached);
    asio::co_spawn(
        loop_, [this] { return handle_signals(); }, asio::detached);
    load_next();
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

void Server::load_next() {
    if (models_.size() == settings_.models.size()) return begin_serving();
    const ModelSetting& setting = settings_.models[models_.size()];
    manager_.status(fmt::format("loading {} ({} of {})", setting.name, models_.size() + 1,
                                settings_.models.size()));
    load(setting, nullptr, &Server::take_first);
}

void Server::load(const ModelSetting& setting, const LoadedModel* old,
                  void (Server::*take)(const Loaded&)) {
    is_loading_ = true;
    const bool is_reload = old != nullptr;
    const bool locks_files = is_reload && std::string_view(old->pinned()) == "on";
    asio::post(loading_, [=, this, &setting] {
        const Status fits =
            is_reload ? check_memory_for(setting, settings_.planes, locks_files) : Status();
        asio::post(loop_, [this, take, loaded = try_to_load(load_, setting, is_reload, fits)] {
            (this->*take)(loaded);
        });
    });
}

void Server::take_first(const Loaded& loaded) {
    is_loading_ = false;
    if (draining_) return;
    if (!loaded) {
        fault_ = loaded.error();
        log_error("{}", loaded.error().message);
        manager_.status(fmt::format("cannot start: {}", loaded.error().message));
        return begin_drain({});
    }
    watch_engines(**loaded);
    models_.push_back(*loaded);
    load_next();
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

void Server::probe_engines() {
    for (const auto& served : models_) {
        for (const auto& worker : served->workers()) {
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
            log_warning("cannot accept connections: {}; {} are open", error.message(),
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
    if (listening_.is_own() && is_serving()) {
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
    ++admitted_connections_;
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
        ++refused_connections_;
        log_warning(
            "{} connections are open, which is --max-connections; one more of user {} is refused",
            open, peer.uid);
        return Error{ErrorCode::busy,
                     fmt::format("{} connections are open, which is the limit", open)};
    }
    const auto found = connections_of_.find(peer.uid);
    const std::size_t of_user = found == connections_of_.end() ? 0 : found->second;
    if (of_user >= std::max<std::size_t>(1, limits.max_connections * limits.uid_share / 100)) {
        ++refused_connections_;
        ++refused_uid_share_;
        log_warning("user {} has {} connections, which is --uid-share; one more is refused",
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
    if (!is_serving()) return;
    if (!draining_) manager_.status(describe_state());
    free_retired();
    go_on_reloading();
    // Not before: until then the first answers come sooner.
    if (!suggestions_prepared_) {
        suggestions_prepared_ = true;
        for (const auto& served : models_) prepare_suggestions(served);
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
        log_info("{}: answering what has been asked, then stopping",
                 number == SIGTERM ? "SIGTERM" : "SIGINT");
        begin_drain(settings_.limits.drain_timeout);
    }
}

void Server::reload_for_hangup() {
    if (!is_serving()) {
        // A model may have been replaced since it was read.
        hangup_while_loading_ = true;
        return log_info("SIGHUP: the models are loaded anew as soon as the daemon serves");
    }
    // One is under way and one waits, which will find whatever has changed by now.
    if (hangups_to_do_ > 1) return log_info("SIGHUP: the one before still waits");
    log_info("SIGHUP: loading {} anew", models_.size() == 1 ? "the model" : "all models");
    ++hangups_to_do_;
    reload(all_models(), [this](const Status&) { --hangups_to_do_; });
}

void Server::handle_fault(const Error& error) {
    if (fault_) return;
    fault_ = error;
    manager_.status(fmt::format("out of service: {}", error.message));
    for (const auto* models : {&models_, &retired_}) {
        for (const auto& served : *models) {
            for (const auto& worker : served->workers()) worker->refuse(error);
        }
    }
    end_at_the_latest_after(kLastResort);
    begin_drain(std::min(kFaultTimeout, settings_.limits.drain_timeout));
}

void Server::begin_drain(std::chrono::milliseconds timeout) {
    draining_ = true;
    drain_deadline_ = Clock::now() + timeout;
    manager_.stopping();
    if (!fault_) manager_.status("answering what has been asked, then stopping");
    // The path first: while it is there somebody listens on it, and no successor takes it for a
    // dead one.
    listening_.remove_path();
    stop_accepting();
    error_code ignored;
    signals_.cancel(ignored);
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->begin_drain();
    }
    go_on_reloading();
    tick_.cancel();
    watchdog_tick_.cancel();
    probed_.notify();
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

std::vector<std::size_t> Server::all_models() const {
    std::vector<std::size_t> all(models_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

Result<std::size_t> Server::find_model(const std::string& name) const {
    std::string names;
    for (std::size_t i = 0; i < models_.size(); ++i) {
        if (models_[i]->name() == name) return i;
        names += (i == 0 ? "" : ", ") + models_[i]->name();
    }
    return Error{ErrorCode::unknown_model,
                 fmt::format("no model {} here: there is {}", printable(name), names)};
}

void Server::reload(std::vector<std::size_t> models, std::function<void(const Status&)> done) {
    reloads_to_do_.push_back({std::move(models), 0, {}, std::move(done)});
    go_on_reloading();
}

void Server::go_on_reloading() {
    if (is_loading_) return;
    if (draining_) {
        for (const Reload& reload : std::exchange(reloads_to_do_, {})) {
            reload.done(
                Error{ErrorCode::unavailable, "the daemon stops; no model is loaded any more"});
        }
        return;
    }
    if (freeing_ > 0 || reloads_to_do_.empty()) return;
    free_retired();
    if (freeing_ > 0) return;
    if (!retired_.empty()) {
        const auto now = Clock::now();
        if (now < load_anyway_at_) return;
        // There is memory for one model that was replaced. Who still takes its answers has had the
        // time for it.
        cut_readers_of_retired();
        if (now < load_anyway_at_ + kMaxUnwinding) return;
    }
    const Reload& reload = reloads_to_do_.front();
    const std::size_t index = reload.models[reload.next];
    load(settings_.models[index], models_[index].get(), &Server::take_loaded);
}

void Server::take_loaded(const Loaded& loaded) {
    is_loading_ = false;
    Reload& reload = reloads_to_do_.front();
    const std::size_t index = reload.models[reload.next++];
    if (loaded) {
        adopt(index, *loaded);
    } else {
        ++failed_reloads_;
        const Error error{ErrorCode::unavailable,
                          fmt::format("{} is not loaded anew, the old one serves on: {}",
                                      settings_.models[index].name, loaded.error().message)};
        log_error("{}", error.message);
        refused_reloads_[settings_.models[index].name] = error.message;
        if (reload.status) reload.status = error;
        // Whether the device has an error that stays with it, and has been lost for the old engines
        // too, the next request would tell.
        if (loaded.error().code == ErrorCode::device) probe_engines();
    }
    if (reload.next == reload.models.size()) {
        const Reload finished = std::move(reload);
        reloads_to_do_.pop_front();
        finished.done(finished.status);
    }
    free_retired();
    go_on_reloading();
}

void Server::adopt(std::size_t index, std::shared_ptr<LoadedModel> loaded) {
    ++reloads_;
    refused_reloads_.erase(loaded->name());
    watch_engines(*loaded);
    if (fault_) {
        for (const auto& worker : loaded->workers()) worker->refuse(*fault_);
    }
    retired_.push_back(std::exchange(models_[index], std::move(loaded)));
    load_anyway_at_ = Clock::now() + kMaxFarewell;
    const LoadedModel& now = *models_[index];
    log_info("model {}: generation {} in place of {}", now.name(),
             format::hex(now.model().generation()),
             format::hex(retired_.back()->model().generation()));
    prepare_suggestions(models_[index]);
}

void Server::cut_readers_of_retired() {
    for (const auto& [id, session] : sessions_) {
        const auto alive = session.lock();
        if (!alive || !alive->takes_answers_of(retired_)) continue;
        count_closed(CloseReason::unread);
        alive->close();
    }
}

void Server::free_retired() {
    // But for the thread that makes suggestions ready, and then lets go, nobody takes a new hold of
    // a model that only the list holds.
    const auto first = std::partition(retired_.begin(), retired_.end(),
                                      [](const auto& served) { return served.use_count() > 1; });
    for (auto left = retired_.end() - first; left > 0; --left) {
        ++freeing_;
        // Elsewhere: unmapping gigabytes takes its time.
        asio::post(loading_, [this, last = std::move(retired_.back())]() mutable {
            last.reset();
            give_back_memory();
            asio::post(loop_, [this] {
                --freeing_;
                go_on_reloading();
            });
        });
        retired_.pop_back();
    }
}

void Server::prepare_suggestions(const std::shared_ptr<LoadedModel>& served) {
    asio::post(suggesting_, [loaded = std::weak_ptr(served)] {
        // Unless it is replaced by now.
        if (const auto still_there = loaded.lock()) (void)still_there->suggest({});
        give_back_memory();
    });
}

bool Server::suggest(std::shared_ptr<LoadedModel> served, std::string word,
                     std::function<void(std::vector<std::string>)> done) {
    const auto now = Clock::now();
    suggesting_allowance_ = std::min<Clock::duration>(
        kMaxSuggestAllowance,
        suggesting_allowance_ + (now - allowance_counted_) / kAllowanceDivisor);
    allowance_counted_ = now;
    if (suggestions_in_flight_ >= kMaxWaitingSuggestions ||
        suggesting_allowance_ <= Clock::duration::zero()) {
        ++not_suggested_;
        return false;
    }
    asio::post(suggesting_, [this, served = std::move(served), word = std::move(word),
                             done = std::move(done)]() mutable {
        const auto begun = Clock::now();
        auto found = served->suggest(word);
        const auto took = Clock::now() - begun;
        served.reset();
        // `done` is moved: what it holds on to belongs to the loop thread.
        asio::post(loop_, [this, took, found = std::move(found), done = std::move(done)]() mutable {
            --suggestions_in_flight_;
            suggesting_allowance_ -= took;
            done(std::move(found));
        });
    });
    ++suggestions_in_flight_;
    ++suggested_;
    return true;
}

}  // namespace gloved::daemon
