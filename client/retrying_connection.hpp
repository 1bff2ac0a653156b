// A client's connection to the daemon that is opened again when it is lost, for a limited time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/connection.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {

/// Which daemon to ask, and how long to wait for it.
struct PeerSettings {
    std::vector<std::string> paths;       ///< see sockets_to_ask
    std::chrono::milliseconds timeout;    ///< for connecting and for each reply
    std::chrono::milliseconds retry_for;  ///< time for retries after a failure; 0: do not retry
    bool json = false;                    ///< begin every connection with FORMAT json
};

/// Whether the daemon refused with busy or unavailable, so that a later attempt may succeed.
bool is_temporary_refusal(const wire::StatusLine& status);

/// Whether a new connection may help after the error. False for a silent daemon (timeout) and for a
/// peer that is no daemon (bad_request).
bool is_transient(const Error& error);

/// Owns at most one connection. A new connection gets the state of the last one: its FORMAT and USE
/// requests are repeated. Retries end when settings().retry_for has passed since the first failure
/// after the last reply. Not safe for concurrent use.
class RetryingConnection {
  public:
    /// Opens no connection yet.
    explicit RetryingConnection(PeerSettings settings);

    const PeerSettings& settings() const { return settings_; }

    /// The connection, if there is one now.
    Connection* current() { return connection_ ? &*connection_ : nullptr; }

    /// Returns the current connection. If there is none, opens one, with retries, and restores the
    /// state. The pointer is valid until `drop` or `wait_and_drop`. Errors: those of
    /// Connection::open and Connection::ask; bad_request if the daemon refuses the FORMAT or USE.
    Result<Connection*> connect();

    /// Closes the connection.
    void drop() { connection_.reset(); }

    /// Prepares a retry after a failure: if time for retries is left, closes the connection, sleeps
    /// for a little longer than the last time, and returns true. Otherwise does nothing and returns
    /// false.
    bool wait_and_drop();

    /// Notes that `request` has its complete reply; `ok`: whether it was OK. Remembers a FORMAT or
    /// USE, and starts the time for retries anew.
    void answered(std::string_view request, bool ok);

    /// Sends `request`, which is no RELOAD, and reads its reply, with retries. Errors as
    /// Connection::ask; an ERR is a reply.
    Result<Reply> ask(std::string_view request);

  private:
    using Clock = std::chrono::steady_clock;

    Result<Connection> open_once() const;
    Status restore_state(Connection& connection);

    PeerSettings settings_;
    std::string format_;  ///< the last FORMAT and USE requests that succeeded, or empty
    std::string use_;
    std::optional<Connection> connection_;
    std::optional<Clock::time_point> retry_until_;  ///< set since the first failure
    std::chrono::milliseconds retry_pause_;
};

}  // namespace gloved::client
