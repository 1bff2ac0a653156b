#include "daemon/session_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/error_with.hpp"
#include "common/quoting.hpp"
#include "daemon/log.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {
namespace {

/// How often deadlines are checked.
constexpr std::chrono::milliseconds kTick{250};

}  // namespace

SessionLoop::SessionLoop(std::size_t number, const Settings& settings, Owner& owner,
                         Suggester& suggester)
    : number_(number),
      settings_(settings),
      owner_(owner),
      suggester_(suggester),
      statistics_(settings.models.size()),
      tick_(io_),
      wake_(io_) {}

SessionLoop::~SessionLoop() { stop_thread(); }

void SessionLoop::start_thread() {
    work_.emplace(io_.get_executor());
    asio::co_spawn(
        io_, [this] { return run_ticks(); }, asio::detached);
    thread_ = std::thread([this] {
        while (!io_.stopped()) run_one();
    });
}

void SessionLoop::stop_thread() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
}

void SessionLoop::run_one() {
    if (poll_.is_polling(Clock::now())) {
        io_.poll_one();
    } else {
        io_.run_one();
    }
}

asio::awaitable<void> SessionLoop::run_ticks() {
    error_code error;
    while (true) {
        tick_.expires_after(kTick);
        co_await tick_.async_wait(ignoring(error));
        on_tick();
    }
}

void SessionLoop::admit(Socket socket, const Peer& peer, std::uint64_t id) {
    const auto session = std::make_shared<Session>(*this, std::move(socket), peer, id);
    ++statistics_.connections().admitted;
    sessions_.emplace(id, session);
    session->start();
    if (draining_) session->begin_drain();
}

void SessionLoop::refuse(Socket socket, const Peer& peer, std::uint64_t id, const Error& reason) {
    const auto session =
        std::make_shared<Session>(*this, std::move(socket), peer, id, Session::Kind::refused);
    sessions_.emplace(id, session);
    session->start_refused(reason);
}

/// A copy of the map's sessions: one that ends removes itself from the map.
std::vector<std::shared_ptr<Session>> SessionLoop::sessions() const {
    std::vector<std::shared_ptr<Session>> alive;
    alive.reserve(sessions_.size());
    for (const auto& [id, session] : sessions_) {
        if (auto locked = session.lock()) alive.push_back(std::move(locked));
    }
    return alive;
}

void SessionLoop::on_tick() {
    const auto now = Clock::now();
    for (const auto& session : sessions()) session->enforce_deadlines(now);
}

SessionLoop::Cut SessionLoop::cut_all() {
    Cut cut;
    for (const auto& session : sessions()) {
        ++cut.connections;
        cut.requests += session->unanswered();
        session->close();
    }
    return cut;
}

void SessionLoop::begin_drain() {
    draining_ = true;
    for (const auto& session : sessions()) session->begin_drain();
}

void SessionLoop::close_readers(const Models& models) {
    for (const auto& session : sessions()) {
        if (!session->is_owed_answers_of(models)) continue;
        statistics_.connections().count(CloseReason::unread);
        session->close();
    }
}

void SessionLoop::close_all() {
    (void)cut_all();
    io_.restart();
    io_.poll();
}

void SessionLoop::set_models(const Models& models) {
    models_.clear();
    // Every request refers to its model. With a count of references for each loop, loops do not
    // wait for each other's caches.
    for (const auto& loaded : models) models_.emplace_back(loaded.get(), [loaded](LoadedModel*) {});
}

Status SessionLoop::check(const wire::Request& request, const LoadedModel& loaded) const {
    const wire::Options& options = request.options;
    if (options.k > settings_.limits.max_k) {
        return bad_request("k= is at most {} here, not {}", settings_.limits.max_k, options.k);
    }
    if (loaded.find_worker(options.engine) == nullptr) {
        std::string names;
        for (const auto& worker : loaded.workers())
            names += (names.empty() ? "" : ", ") + worker->engine().name();
        return bad_request("no engine {} here: there is {}", printable(options.engine), names);
    }
    return {};
}

bool SessionLoop::submit(EngineWorker& worker, std::shared_ptr<Job> job, bool may_refuse) {
    job->receiver = this;
    const bool awaited = worker.should_spin();
    job->is_awaited = awaited;
    if (awaited) wake_at(poll_.submitted(Clock::now()));
    const bool submitted = worker.submit(std::move(job), number_, may_refuse);
    if (awaited && !submitted) poll_.refused();
    return submitted;
}

void SessionLoop::wake_at(std::optional<Clock::time_point> due) {
    if (!due) return;
    wake_.expires_at(*due);
    wake_.async_wait([this](error_code error) {
        if (!error) poll_.wake(Clock::now());
    });
}

void SessionLoop::receive(std::vector<std::shared_ptr<Job>> jobs) {
    asio::post(io_, [this, jobs = std::move(jobs)] {
        const auto awaited = std::ranges::count_if(jobs, &Job::is_awaited);
        wake_at(poll_.returned(static_cast<std::size_t>(awaited), Clock::now()));
        for (const auto& job : jobs) Session::take_answer(job);
    });
}

void SessionLoop::count_answer(const Peer& peer, const Asked& asked, std::optional<ErrorCode> error,
                               Clock::duration took) {
    statistics_.count(asked, error);
    if (!settings_.access_log) return;
    // Never the request itself: it is private.
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    std::string line =
        fmt::format("uid={} pid={} verb={} outcome={} us={}", static_cast<std::int64_t>(peer.uid),
                    peer.pid, asked.verb ? wire::verb_name(*asked.verb) : "none",
                    error ? wire::code_name(*error) : "OK", us);
    if (asked.model) line += " model=" + settings_.models[*asked.model].name;
    write_log_always(spdlog::level::info, line);
}

void SessionLoop::remove_session(std::uint64_t id, const Peer& peer, Session::Kind kind) {
    sessions_.erase(id);
    owner_.session_ended(number_, peer, kind);
}

}  // namespace gloved::daemon
