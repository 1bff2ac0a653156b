// A blocking connection to a daemon: sends requests and waits for their replies. For the
// measurements of gloved-bench, which ask from one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/result.hpp"
#include "common/wire/line_splitter.hpp"
#include "common/wire/reply.hpp"

namespace gloved::bench {

/// A socket connected to `path`. Errors: io, with the system's reason; bad_source, if the path is
/// too long for a socket.
Result<UniqueFd> connect_to(const std::string& path);

/// A reply as it was received.
struct Reply {
    wire::StatusLine status;
    std::string status_line;  ///< with its LF
    std::string lines;        ///< what follows the status line, with all LF
};

/// One connection. Waits at most a minute for each reply.
class Connection {
  public:
    /// Connects. Errors as connect_to.
    static Result<Connection> open(const std::string& path);

    /// Sends all bytes. Errors: io; interrupted, after a signal.
    Status send(std::string_view bytes);

    /// Reads one reply; an ERR is a reply. Errors: io; timeout; unavailable, if the daemon
    /// closed the connection; bad_request, if the peer does not speak the protocol, or a line or
    /// the reply is too long; interrupted, after a signal.
    Result<Reply> read_reply();
    /// Sends a line, which ends with LF, and reads its reply. Errors as `send` and `read_reply`.
    Result<Reply> ask(std::string_view request);

    /// Reads one reply, drops it and returns the daemon's own milliseconds. Errors as `read_reply`;
    /// unavailable, for an ERR.
    Result<double> skip_reply();
    /// Sends a line, which ends with LF. Then as `skip_reply`.
    Result<double> time(std::string_view request);

    /// The process that listens, as the kernel names it to this process; 0 if it cannot. With
    /// socket activation it is the service manager, not the daemon.
    pid_t peer() const;

  private:
    explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
    Result<std::string_view> line();

    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxReplyLineBytes = 1 << 20;
    static constexpr std::size_t kMaxReplyBytes = std::size_t{256} << 20;

    UniqueFd fd_;
    Clock::time_point deadline_;  // of the reply that is read
    wire::LineSplitter received_{kMaxReplyLineBytes};
};

}  // namespace gloved::bench
