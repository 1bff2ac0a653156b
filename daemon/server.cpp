#include "daemon/server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <vector>

#include "common/quoting.hpp"
#include "common/version.hpp"
#include "common/wire/reply.hpp"
#include "daemon/session.hpp"

namespace gloved::daemon {
namespace {

/// How often deadlines are looked at: their precision.
constexpr std::chrono::milliseconds kTick{250};
/// After accept failed for want of descriptors or memory: trying again at once would spin.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kLogPause{10};
/// How long an answer that is on its way is waited for without sleeping.
constexpr std::chrono::milliseconds kSpin{2};
/// For the ERR lines after an engine was lost: the process is to be gone within two seconds.
constexpr std::chrono::milliseconds kFaultTimeout{1000};
constexpr std::chrono::microseconds kLastResort{1'800'000};

auto ignoring(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

}  // namespace

Server::Server(const Settings& settings, std::vector<std::unique_ptr<Compute>> computes, ListeningSocket listening)
    : settings_(settings),
      computes_(std::move(computes)),
      // Rows that are scanned on a GPU are read on the host only where a word is looked up.
      pinning_(computes_.front()->share_model(), computes_.front()->engine().name() == "cpu" ? settings.pin : Pin::off,
               computes_.front()->counts().batches),
      listening_(std::move(listening)),
      acceptor_(loop_),
      signals_(loop_, SIGTERM, SIGINT, SIGHUP),
      tick_(loop_) {
    acceptor_.assign(asio::local::stream_protocol(), listening_.release_fd());
    for (const auto& compute : computes_) {
        compute->on_fault([this](const Error& error) { asio::post(loop_, [this, error] { handle_fault(error); }); });
    }
}

Server::~Server() {
    // Jobs call back into the loop, so their thread ends first; sessions unregister themselves, so the loop's
    // coroutines end before the members that they use.
    for (const auto& compute : computes_) compute->stop();
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->close();
    }
    loop_.restart();
    loop_.poll();
}

Status Server::run() {
    asio::co_spawn(
        loop_, [this] { return accept_connections(); }, asio::detached);
    asio::co_spawn(
        loop_, [this] { return keep_deadlines(); }, asio::detached);
    asio::co_spawn(
        loop_, [this] { return handle_signals(); }, asio::detached);
    while (!loop_.stopped()) {
        if (quick_in_flight_ > 0 && Clock::now() < spin_until_) {
            loop_.poll_one();
        } else {
            loop_.run_one();
        }
    }
    if (fault_) return *fault_;
    return {};
}

asio::awaitable<void> Server::accept_connections() {
    auto next_log = Clock::time_point::min();
    while (!draining_) {
        Socket socket(loop_);
        error_code error;
        co_await acceptor_.async_accept(socket, ignoring(error));
        if (draining_) break;
        if (!error && !welcome(socket)) error = make_error_code(boost::system::errc::not_enough_memory);
        if (!error) continue;
        if (Clock::now() >= next_log) {
            spdlog::warn("cannot accept connections: {}; {} are open", error.message(), sessions_.size());
            next_log = Clock::now() + kLogPause;
        }
        asio::steady_timer pause(loop_, kAcceptPause);
        co_await pause.async_wait(ignoring(error));
    }
}

/// Gives a connection its session; false when there is no memory for it.
bool Server::welcome(Socket& socket) try {
    error_code error;
    if (sessions_.size() >= settings_.limits.max_connections) {
        ++refused_;
        const std::string reply = wire::error_line(
            {ErrorCode::busy, fmt::format("{} connections are open, which is the limit", sessions_.size())});
        socket.non_blocking(true, error);
        socket.write_some(asio::buffer(reply), error);
        return true;
    }
    const std::uint64_t id = next_id_++;
    const auto session = std::make_shared<Session>(*this, std::move(socket), id);
    sessions_.emplace(id, session);
    session->start();
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

asio::awaitable<void> Server::keep_deadlines() {
    error_code error;
    while (!draining_ || !sessions_.empty()) {
        tick_.expires_after(kTick);
        co_await tick_.async_wait(ignoring(error));
        const auto now = Clock::now();
        // A session that ends here would change the map under the loop.
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
}

asio::awaitable<void> Server::handle_signals() {
    while (!draining_) {
        error_code error;
        const int number = co_await signals_.async_wait(ignoring(error));
        if (error) co_return;
        if (number == SIGHUP) {
            spdlog::warn("SIGHUP: this version cannot load a model anew; restart to serve another one");
            continue;
        }
        spdlog::info("{}: answering what has been asked, then stopping", number == SIGTERM ? "SIGTERM" : "SIGINT");
        begin_drain(settings_.limits.drain_timeout);
    }
}

void Server::handle_fault(const Error& error) {
    if (fault_) return;
    fault_ = error;
    for (const auto& compute : computes_) compute->refuse(error);
    // Should a thread not come back from what it is doing, SIGALRM ends the process.
    const itimerval last_resort{{}, {kLastResort.count() / 1'000'000, kLastResort.count() % 1'000'000}};
    ::setitimer(ITIMER_REAL, &last_resort, nullptr);
    begin_drain(std::min(kFaultTimeout, settings_.limits.drain_timeout));
}

void Server::begin_drain(std::chrono::milliseconds timeout) {
    draining_ = true;
    drain_deadline_ = Clock::now() + timeout;
    // The path first: while it is there somebody listens on it, and no successor takes it for a dead one.
    listening_.remove_path();
    error_code ignored;
    acceptor_.close(ignored);
    signals_.cancel(ignored);
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->begin_drain();
    }
    tick_.cancel();
}

void Server::count_submitted(const Compute& compute) {
    if (!compute.worth_spinning()) return;
    ++quick_in_flight_;
    spin_until_ = Clock::now() + kSpin;
}

void Server::forget(std::uint64_t id) {
    sessions_.erase(id);
    // The last one out lets the loop end now rather than at the next tick.
    if (draining_ && sessions_.empty()) tick_.cancel();
}

Status Server::check(const wire::Request& request) const {
    const wire::Options& options = request.options;
    if (options.k > settings_.limits.max_k) {
        return Error{ErrorCode::bad_request,
                     fmt::format("k= is at most {} here, not {}", settings_.limits.max_k, options.k)};
    }
    if (!options.model.empty() && options.model != settings_.model_name) {
        return Error{ErrorCode::unknown_model,
                     fmt::format("no model {} here: there is {}", printable(options.model), settings_.model_name)};
    }
    if (find_compute(options.engine) == nullptr) {
        std::string names;
        for (const auto& compute : computes_) names += (names.empty() ? "" : ", ") + compute->engine().name();
        return Error{ErrorCode::unavailable,
                     fmt::format("no engine {} here: there is {}", printable(options.engine), names)};
    }
    return {};
}

Compute* Server::find_compute(const std::string& name) const {
    if (name.empty() || name == "auto") return computes_.front().get();
    for (const auto& compute : computes_) {
        if (compute->engine().name() == name) return compute.get();
    }
    return nullptr;
}

std::string Server::stats() const {
    const Compute& first = *computes_.front();
    const format::Model& model = first.model();
    std::uint64_t queries = 0;
    std::uint64_t errors = refused_;
    std::uint64_t batches = 0;
    std::uint64_t largest_batch = 0;
    std::size_t waiting = 0;
    for (const auto& compute : computes_) {
        const ComputeCounts& counts = compute->counts();
        queries += counts.queries;
        errors += counts.errors;
        batches += counts.batches;
        largest_batch = std::max(largest_batch, counts.largest_batch.load());
        waiting += compute->waiting();
    }
    std::string engines;
    for (const auto& compute : computes_) engines += (engines.empty() ? "" : " ") + compute->engine().name();
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
    std::vector<std::pair<std::string, std::string>> lines = {
        {"version", kProgramVersion},
        {"uptime_s", std::to_string(uptime)},
        {"model", settings_.model_name},
        {"rows", std::to_string(model.rows())},
        {"dim", std::to_string(model.dim())},
        {"generation", format::hex(model.generation())},
        {"engine", first.engine().name()},
        {"engine_description", first.engine().description()},
        {"engines", engines},
        {"pinned", pinning_.state()},
        {"load_keys_ms", fmt::format("{:.3f}", model.load_keys_ms())},
        {"load_values_ms", fmt::format("{:.3f}", model.load_values_ms())},
        {"queries", std::to_string(queries)},
        {"errors", std::to_string(errors)},
        {"batches", std::to_string(batches)},
        {"largest_batch", std::to_string(largest_batch)},
        {"single_query_us", std::to_string(first.counts().single_us.load())},
        {"queue_depth", std::to_string(waiting)},
        {"queue_length", std::to_string(settings_.limits.queue_length)},
        {"connections", std::to_string(sessions_.size())},
        {"connections_total", std::to_string(next_id_ - 1)},
        {"max_connections", std::to_string(settings_.limits.max_connections)},
        {"max_k", std::to_string(settings_.limits.max_k)},
    };
    for (auto& fact : first.engine().facts()) lines.push_back(std::move(fact));
    std::string reply = wire::ok_line(lines.size());
    for (const auto& [key, value] : lines) reply += fmt::format("{}\t{}\n", key, value);
    return reply;
}

}  // namespace gloved::daemon
