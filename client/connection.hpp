// A connection to the daemon: one request out, one reply in, never later than the deadline; or
// bytes out and replies in, as they come, for who pipelines.
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

/// A whole reply. Of text, `lines` has exactly `status.lines` elements, without line ends; of JSON,
/// it is the object.
struct Reply {
    wire::StatusLine status;
    std::vector<std::string> lines;
};

/// The value of a line «key TAB value», as in a reply to STATS; nothing where there is none. It
/// looks into the reply.
std::optional<std::string_view> value_of(const Reply& stats, std::string_view key);

/// A whole reply, apart from the memory that `piece` looks into.
Reply whole_reply(const ReplyPiece& piece);

/// What poll is to be told to wait no longer than until `deadline`: whole milliseconds, not less
/// than are left, 0 when it has passed.
int poll_timeout_ms(std::chrono::steady_clock::time_point deadline);

/// Owns the socket. Movable; not safe for concurrent use.
class Connection {
  public:
    /// Connects to the first of `paths` where a daemon listens. A full backlog (EAGAIN) is waited
    /// out, since a daemon is there and busy; every other refusal moves on to the next path at
    /// once. `timeout` holds for connecting and again for each `ask`. Errors: timeout; unavailable,
    /// with each path, the system's reason and the remedy.
    static Result<Connection> open(const std::vector<std::string>& paths,
                                   std::chrono::milliseconds timeout);

    /// Sends `line`, which must hold no LF, and reads the whole reply; an ERR of the daemon is a
    /// reply too. Errors: timeout; unavailable (connection lost); bad_request (the peer does not
    /// speak the protocol); idle (the daemon closed the connection without reading `line`). After
    /// an error the connection is of no use: where the next reply begins is unknown.
    Result<Reply> ask(std::string_view line);

    // What follows does not wait, and is for who waits for more than this connection.

    /// Whether the peer neither said something that nobody asked for nor closed. False where
    /// nothing is owed: it is going, or gone.
    bool quiet() const;

    /// The socket, to be waited for.
    int fd() const { return socket_.get(); }

    /// Sends as much as the socket takes now, and says how much that was. Bytes for a peer that has
    /// closed count as sent, because a daemon that refuses a connection says why before it closes,
    /// and that is worth reading. Error: unavailable.
    Result<std::size_t> send_some(std::string_view bytes);

    /// Takes what has arrived, if anything has. Error: unavailable, when the peer has closed or the
    /// connection broke.
    Status receive_some();

    /// Of what was taken, the next reply or a piece of it, see ReplyReader::next. Error besides:
    /// idle, when the daemon has closed a connection on which nothing was asked for too long. It
    /// has read nothing that got no answer.
    Result<std::optional<ReplyPiece>> next_piece(
        std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

    /// The error for an answer that did not come in time.
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
