// A client's connection to the daemon: sends one request and waits for its reply, or sends and
// receives without waiting, for pipelines.
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

/// A complete reply.
struct Reply {
    wire::StatusLine status;
    std::string text;  ///< as received, with line ends

    /// What follows the status line of a text reply; a JSON reply. With line ends.
    std::string_view body() const;
    /// The lines of the body, without line ends.
    std::vector<std::string_view> lines() const;
};

/// The value of the line «key TAB value» in a reply to STATS, as a view into the reply; nullopt if
/// there is no such line.
std::optional<std::string_view> value_of(const Reply& stats, std::string_view key);

/// The timeout for poll to wait until `deadline`: milliseconds, rounded up, 0 if it has passed.
int poll_timeout_ms(std::chrono::steady_clock::time_point deadline);

/// Limit on a reply that is read into memory. Pipelines pass on longer ones in pieces.
inline constexpr std::size_t kMaxWholeReplyBytes = std::size_t{64} << 20;

/// A connected socket and what was received on it. Movable; not safe for concurrent use. In
/// programs that catch signals (cli::stop_on_signals), what waits ends with the error interrupted
/// after one.
class Connection {
  public:
    /// Connects to the first of `paths` where a daemon listens. Waits while the backlog is full
    /// (EAGAIN): a daemon is there. After any other error tries the next path. `timeout` applies to
    /// connecting and to each `ask`. Errors: timeout; unavailable, or forbidden if the system does
    /// not let this user connect. Their messages have each path, the system's reason and the
    /// remedy.
    static Result<Connection> open(const std::vector<std::string>& paths,
                                   std::chrono::milliseconds timeout);

    /// Sends `line`, which has no LF, and reads the complete reply, of up to kMaxWholeReplyBytes.
    /// An ERR line is a reply, not an error. Errors: timeout; unavailable (connection lost);
    /// bad_request (the peer does not speak the protocol, or says too much); idle (the daemon
    /// closed the connection without reading `line`). After an error the connection cannot be used
    /// again, since the start of the next reply is unknown.
    Result<Reply> ask(std::string_view line);

    // The following functions do not wait, for callers that poll several descriptors.

    /// Whether the connection is open and no received byte is unread. If false while no request
    /// waits for its reply, the daemon is closing the connection.
    bool is_open_and_silent() const;

    /// The socket, for poll.
    int fd() const { return socket_.get(); }

    /// Sends as many of `bytes` as the socket takes now and returns their number. If the daemon has
    /// closed, all bytes count as sent: the caller goes on to read, and finds the ERR line that
    /// says why. Error: unavailable.
    Result<std::size_t> send_some(std::string_view bytes);

    /// Receives what has arrived, if anything, for `next_piece`. Error: unavailable if the daemon
    /// has closed or the connection broke.
    Status receive_some();

    /// Takes the next reply received, or a piece of it, as ReplyReader::next does. Errors: those of
    /// ReplyReader::next; idle, if the daemon closed the connection because no request came. It has
    /// then read no unanswered request.
    Result<std::optional<ReplyPiece>> next_piece(
        std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

    /// Call it with each piece of the reply to `request`, in order. Error: bad_request if the reply
    /// is JSON where text is asked for, or text where JSON is (FORMAT).
    Status check_form(std::string_view request, const ReplyPiece& piece);

    /// Makes the error for a reply that did not come in time: timeout.
    Error timed_out() const;

  private:
    using Clock = std::chrono::steady_clock;

    Connection(UniqueFd socket, std::string path, std::chrono::milliseconds timeout)
        : socket_(std::move(socket)), path_(std::move(path)), timeout_(timeout) {}
    /// Error: timeout, also if what is awaited never stops coming.
    Status wait_for(short events, Clock::time_point deadline);
    Error lost(std::string_view how) const;

    UniqueFd socket_;
    std::string path_;
    std::chrono::milliseconds timeout_;
    ReplyReader received_;
    wire::Form form_ = wire::Form::text;  ///< of the replies, as FORMAT has chosen it
};

}  // namespace gloved::client
