#include "daemon/server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

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

auto ignoring(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

}  // namespace

Server::Server(const Settings& settings, std::unique_ptr<Compute> compute, ListeningSocket listening)
    : settings_(settings),
      compute_(std::move(compute)),
      pinning_(compute_->share_model(), settings.pin, compute_->counts().batches),
      listening_(std::move(listening)),
      acceptor_(loop_),
      signals_(loop_, SIGTERM, SIGINT, SIGHUP),
      tick_(loop_) {
    acceptor_.assign(asio::local::stream_protocol(), listening_.release_fd());
}

Server::~Server() {
    // Jobs call back into the loop, so their thread ends first; sessions unregister themselves, so the loop's
    // coroutines end before the members that they use.
    compute_->stop();
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->close();
    }
    loop_.restart();
    loop_.poll();
}

void Server::run() {
    asio::co_spawn(
        loop_, [this] { return accept_connections(); }, asio::detached);
    asio::co_spawn(
        loop_, [this] { return keep_deadlines(); }, asio::detached);
    asio::co_spawn(
        loop_, [this] { return handle_signals(); }, asio::detached);
    loop_.run();
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
        begin_drain();
    }
}

void Server::begin_drain() {
    draining_ = true;
    drain_deadline_ = Clock::now() + settings_.limits.drain_timeout;
    // The path first: while it is there somebody listens on it, and no successor takes it for a dead one.
    listening_.remove_path();
    error_code ignored;
    acceptor_.close(ignored);
    for (const auto& [id, session] : sessions_) {
        if (const auto alive = session.lock()) alive->begin_drain();
    }
    tick_.cancel();
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
    const std::string engine = compute_->engine().name();
    if (!options.engine.empty() && options.engine != engine && options.engine != "auto") {
        return Error{ErrorCode::unavailable,
                     fmt::format("no engine {} here: there is {}", printable(options.engine), engine)};
    }
    return {};
}

std::string Server::stats() const {
    const format::Model& model = compute_->model();
    const ComputeCounts& counts = compute_->counts();
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
    std::vector<std::pair<std::string_view, std::string>> lines = {
        {"version", kProgramVersion},
        {"uptime_s", std::to_string(uptime)},
        {"model", settings_.model_name},
        {"rows", std::to_string(model.rows())},
        {"dim", std::to_string(model.dim())},
        {"generation", format::hex(model.generation())},
        {"engine", compute_->engine().name()},
        {"engine_description", compute_->engine().description()},
        {"pinned", pinning_.state()},
        {"load_keys_ms", fmt::format("{:.3f}", model.load_keys_ms())},
        {"load_values_ms", fmt::format("{:.3f}", model.load_values_ms())},
        {"queries", std::to_string(counts.queries.load())},
        {"errors", std::to_string(counts.errors.load() + refused_)},
        {"batches", std::to_string(counts.batches.load())},
        {"largest_batch", std::to_string(counts.largest_batch.load())},
        {"single_query_us", std::to_string(counts.single_us.load())},
        {"queue_depth", std::to_string(compute_->waiting())},
        {"queue_length", std::to_string(settings_.limits.queue_length)},
        {"connections", std::to_string(sessions_.size())},
        {"connections_total", std::to_string(next_id_ - 1)},
        {"max_connections", std::to_string(settings_.limits.max_connections)},
        {"max_k", std::to_string(settings_.limits.max_k)},
    };
    std::string reply = wire::ok_line(lines.size());
    for (const auto& [key, value] : lines) reply += fmt::format("{}\t{}\n", key, value);
    return reply;
}

}  // namespace gloved::daemon
