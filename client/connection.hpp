// A connection to the daemon: sends one request and waits for its reply, or sends and receives
// without waiting, for pipelines.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/reply_reader.hpp"
#include "common/files.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {

/// A complete reply. `lines` has the `status.lines` lines of a text reply, without line ends, or
/// the object of a JSON reply.
struct Reply {
    wire::StatusLine status;
    std::vector<std::string> lines;
};

/// Finds the value of a line «key TAB value», as in a reply to STATS. The result is a view into the
/// reply.
std::optional<std::string_view> value_of(const Reply& stats, std::string_view key);

/// Copies a complete reply out of the memory that `piece` views.
Reply whole_reply(const ReplyPiece& piece);

/// The timeout for poll to wait until `deadline`: milliseconds, rounded up, 0 if it has passed.
int poll_timeout_ms(std::chrono::steady_clock::time_point deadline);

/// Owns the socket. Movable; not thread-safe.
class Connection {
  public:
    /// Connects to the first of `paths` where a daemon listens. Waits while the backlog is full
    /// (EAGAIN), since a daemon is there; after any other error tries the next path. `timeout`
    /// applies to connecting and to each `ask`. Errors: timeout; unavailable, with each path, the
    /// system's reason and the remedy.
    static Result<Connection> open(const std::vector<std::string>& paths,
                                   std::chrono::milliseconds timeout);

    /// Sends `line`, which has no LF, and reads the complete reply; an ERR is a reply too. Errors:
    /// timeout; unavailable (connection lost); bad_request (the peer does not speak the protocol);
    /// idle (the daemon closed the connection without reading `line`). After an error the
    /// connection cannot be used again, since the start of the next reply is unknown.
    Result<Reply> ask(std::string_view line);

    // The following functions do not wait, for callers that poll several descriptors.

    /// Whether the peer has neither closed nor sent anything that is still unread. If false while
    /// no reply is pending, the daemon is closing the connection.
    bool is_open_and_silent() const;

    /// The socket, for poll.
    int fd() const { return socket_.get(); }

    /// Sends as much as the socket takes now and returns the number of bytes. If the peer has
    /// closed, all bytes count as sent, so that the caller reads why the daemon refused the
    /// connection. Error: unavailable.
    Result<std::size_t> send_some(std::string_view bytes);

    /// Receives what has arrived, if anything. Error: unavailable if the peer has closed or the
    /// connection broke.
    Status receive_some();

    /// The next reply received, or a piece of it, see ReplyReader::next. Another error: idle, if
    /// the daemon closed the connection because it was idle; it has read no unanswered request.
    Result<std::optional<ReplyPiece>> next_piece(
        std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

    /// The error for a reply that did not come in time.
    Error timed_out() const;

  private:
    using Clock = std::chrono::steady_clock;

    Connection(UniqueFd socket, std::string path, std::chrono::milliseconds timeout)
        : socket_(std::move(socket)), path_(std::move(path)), timeout_(timeout) {}
    Status wait_for(short events, Clock::time_point deadline);
    Error lost(std::string_view how) const;

    UniqueFd socket_;
    std::string path_;
    std::chrono::milliseconds timeout_;
    ReplyReader received_;
};

}  // namespace gloved::client
