// A connection to the daemon that is taken up again when it is lost, for as long as patience lasts.
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
    std::vector<std::string> paths;      ///< see sockets_to_ask
    std::chrono::milliseconds timeout;   ///< for connecting, and for each answer
    std::chrono::milliseconds patience;  ///< how long trouble may last; 0: the first is the last
    bool json = false;                   ///< every connection begins with FORMAT json
};

/// Whether the daemon refused only for now: busy or unavailable. A later attempt may be answered.
bool refused_for_now(const wire::StatusLine& status);

/// Faults that a new connection may mend. A silent daemon (timeout) and a foreign one (bad_request)
/// would be so again.
bool may_pass(const Error& error);

/// What an error says of a RELOAD whose answer was lost.
Error reload_lost(const Error& error);

/// Owns at most one connection. What belongs to a connection (FORMAT, USE) is asked for again on
/// the next one. Patience begins with the first trouble after an answer, and anew after each
/// answer. Not safe for concurrent use.
class PatientConnection {
  public:
    explicit PatientConnection(PeerSettings settings);

    const PeerSettings& settings() const { return settings_; }

    /// The connection, if there is one now.
    Connection* current() { return connection_ ? &*connection_ : nullptr; }

    /// The connection; where there is none, a new one in the state of the last, as soon as patience
    /// allows. Valid until drop or wait_and_drop. Errors: those of Connection::open and ask;
    /// bad_request when the daemon refuses the state.
    Result<Connection*> connect();

    /// Forgets the connection.
    void drop() { connection_.reset(); }

    /// After trouble: if patience lasts, forgets the connection, pauses for a little longer than
    /// the last time, and returns true. Otherwise changes nothing.
    bool wait_and_drop();

    /// Says that `request` got its whole answer, and whether that was an OK.
    void answered(std::string_view request, bool ok);

    /// Sends `request` and reads its reply, again as patience allows, but a RELOAD that the daemon
    /// may have read only once: it may be under way when its answer is lost. Errors and ERR as
    /// Connection::ask.
    Result<Reply> ask(std::string_view request);

  private:
    using Clock = std::chrono::steady_clock;

    Result<Connection> open_once() const;
    Status restore_state(Connection& connection);

    PeerSettings settings_;
    std::string format_;  ///< the FORMAT and the USE that were answered last, as requests; or empty
    std::string use_;
    std::optional<Connection> connection_;
    std::optional<Clock::time_point> patience_ends_;  ///< there is trouble
    std::chrono::milliseconds pause_;
};

}  // namespace gloved::client
