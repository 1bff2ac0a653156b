// A connection to the daemon that reconnects when it is lost, for a limited time.
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

struct PeerSettings {
    std::vector<std::string> paths;       ///< see sockets_to_ask
    std::chrono::milliseconds timeout;    ///< for connecting and for each reply
    std::chrono::milliseconds retry_for;  ///< after a failure; 0: do not retry
    bool json = false;                    ///< every connection begins with FORMAT json
};

/// Whether the daemon refused with busy or unavailable, so that a later attempt may succeed.
bool is_temporary_refusal(const wire::StatusLine& status);

/// Whether a new connection may fix the error. Not so for a silent daemon (timeout) or another
/// program (bad_request).
bool is_transient(const Error& error);

/// The error for a RELOAD whose reply was lost.
Error reload_lost(const Error& error);

/// Owns at most one connection. A new connection gets the state of the last one (FORMAT, USE).
/// Retries end settings().retry_for after the first failure since the last reply. Not thread-safe.
class RetryingConnection {
  public:
    explicit RetryingConnection(PeerSettings settings);

    const PeerSettings& settings() const { return settings_; }

    /// The connection, if there is one now.
    Connection* current() { return connection_ ? &*connection_ : nullptr; }

    /// Returns the connection, or a new one in the state of the last, with retries. Valid until
    /// drop or wait_and_drop. Errors: those of Connection::open and ask; bad_request if the daemon
    /// refuses the state.
    Result<Connection*> connect();

    /// Closes the connection.
    void drop() { connection_.reset(); }

    /// After a failure: if time for retries is left, closes the connection, pauses for a little
    /// longer than the last time, and returns true. Otherwise changes nothing.
    bool wait_and_drop();

    /// Call when `request` has its complete reply; `ok`: it was OK.
    void answered(std::string_view request, bool ok);

    /// Sends `request` and reads its reply, with retries. A RELOAD is not repeated if the daemon
    /// may have read it, since it may still run. Errors and ERR as Connection::ask.
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
