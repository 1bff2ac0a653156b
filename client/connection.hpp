// A connection to the daemon: one request out, one reply in, never later than the deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/result.hpp"
#include "common/wire/line_splitter.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {

/// The longest line of a reply that is believed. A row of MATRIX, the longest that there is, has less than a tenth.
inline constexpr std::size_t kMaxReplyLineBytes = std::size_t{4} << 20;

/// Where to look for the daemon, in this order: `given` alone if it is not empty; else $GLOVED_SOCKET alone if that is
/// set, because whoever names a daemon does not want another one's answers; else /run/gloved/gloved.sock and
/// $XDG_RUNTIME_DIR/gloved.sock.
std::vector<std::string> socket_paths(const std::string& given);

/// A whole reply. `lines` has exactly `status.lines` elements, without line ends.
struct Reply {
    wire::StatusLine status;
    std::vector<std::string> lines;
};

/// Owns the socket. Movable; not safe for concurrent use.
class Connection {
  public:
    /// Connects to the first of `paths` where a daemon listens. A full backlog (EAGAIN) is waited out, since a daemon
    /// is there and busy; every other refusal moves on to the next path at once. `timeout` holds for connecting and
    /// again for each `ask`. Errors: timeout; unavailable, with each path, the system's reason and the remedy.
    static Result<Connection> open(const std::vector<std::string>& paths, std::chrono::milliseconds timeout);

    /// Sends `line`, which must hold no LF, and reads the whole reply; an ERR of the daemon is a reply too.
    /// Errors: timeout; unavailable (connection lost); bad_request (the peer does not speak the protocol). After an
    /// error the connection is of no use: where the next reply begins is unknown.
    Result<Reply> ask(std::string_view line);

  private:
    using Clock = std::chrono::steady_clock;

    Connection(UniqueFd socket, std::string path, std::chrono::milliseconds timeout)
        : socket_(std::move(socket)), path_(std::move(path)), timeout_(timeout) {}
    Status send_all(std::string_view bytes, Clock::time_point deadline);
    Result<std::string> next_line(Clock::time_point deadline);
    Status wait_for(short events, Clock::time_point deadline);
    Error lost(std::string_view how) const;

    UniqueFd socket_;
    std::string path_;
    std::chrono::milliseconds timeout_;
    wire::LineSplitter received_{kMaxReplyLineBytes};
};

}  // namespace gloved::client
