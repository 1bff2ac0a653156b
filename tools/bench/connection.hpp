// A blocking connection to a daemon: sends a request and waits for its reply. For what gloved-bench
// asks before a load.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::bench {

/// A socket connected to `path`. Errors: io, with the system's reason; interrupted, after a signal;
/// bad_source, if the path is too long for a socket.
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

    /// Sends a line, which ends with LF, and reads its reply; an ERR is a reply. Errors: io;
    /// timeout; unavailable, if the daemon closed the connection; bad_request, if the peer does not
    /// speak the protocol, or a line or the reply is too long; interrupted, after a signal.
    Result<Reply> ask(std::string_view request);

    /// The process that listens, as the kernel names it to this process; 0 if it cannot. With
    /// socket activation it is the service manager, not the daemon.
    pid_t peer() const;

  private:
    explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
    Status send(std::string_view bytes) const;

    UniqueFd fd_;
};

}  // namespace gloved::bench
