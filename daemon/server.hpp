// The daemon as a library: a listening socket, its sessions, and the life of both.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/result.hpp"
#include "common/wire/request.hpp"
#include "daemon/asio.hpp"
#include "daemon/compute.hpp"
#include "daemon/pin.hpp"
#include "daemon/settings.hpp"
#include "daemon/socket_path.hpp"

namespace gloved::daemon {

class Session;

/// Everything here runs on the one thread that calls `run`.
class Server {
  public:
    /// `computes`: one for each engine that can be asked for, all on one model; the first is the one that answers unless a
    /// request names another.
    Server(const Settings& settings, std::vector<std::unique_ptr<Compute>> computes, ListeningSocket listening);
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    /// Serves until SIGTERM or SIGINT, then answers what has been asked and returns. Error: device, when an engine was lost:
    /// every request that was not answered by then got an ERR line.
    Status run();

    const Settings& settings() const { return settings_; }
    /// The engine that `name` means: empty and «auto» are the first one's. nullptr when there is none.
    Compute* find_compute(const std::string& name) const;
    /// Why no request is answered any more; nothing while all is well.
    const std::optional<Error>& fault() const { return fault_; }
    /// Where a session reads into; its content is good until the session waits for anything.
    std::array<char, 65536>& read_buffer() { return read_buffer_; }

    /// What can be refused without looking at the model: bounds, names. Errors: bad_request, unknown_model,
    /// unavailable.
    Status check(const wire::Request& request) const;
    /// The reply to STATS.
    std::string stats() const;
    void count_refused() { ++refused_; }
    /// A request went to an engine, and its answer came back.
    void count_submitted(const Compute& compute);
    void count_answered(const Compute& compute) {
        if (compute.worth_spinning()) --quick_in_flight_;
    }
    /// A session is gone.
    void forget(std::uint64_t id);

  private:
    asio::awaitable<void> accept_connections();
    bool welcome(Socket& socket);
    asio::awaitable<void> keep_deadlines();
    asio::awaitable<void> handle_signals();
    void begin_drain(std::chrono::milliseconds timeout);
    void handle_fault(const Error& error);

    const Settings& settings_;
    std::vector<std::unique_ptr<Compute>> computes_;
    std::optional<Error> fault_;
    Pinning pinning_;
    ListeningSocket listening_;
    asio::io_context loop_{1};
    asio::local::stream_protocol::acceptor acceptor_;
    asio::signal_set signals_;
    asio::steady_timer tick_;
    std::unordered_map<std::uint64_t, std::weak_ptr<Session>> sessions_;
    std::uint64_t next_id_ = 1;
    std::uint64_t refused_ = 0;
    std::uint64_t quick_in_flight_ = 0;  // at engines that are worth spinning for
    Clock::time_point spin_until_;
    bool draining_ = false;
    Clock::time_point drain_deadline_ = Clock::time_point::max();
    const Clock::time_point started_ = Clock::now();
    std::array<char, 65536> read_buffer_;
};

}  // namespace gloved::daemon
