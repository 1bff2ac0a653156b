// Pipeline: sends requests without waiting for earlier replies, and reconnects if the connection is
// lost.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "client/reply_reader.hpp"
#include "client/retrying_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// Keeps requests in order until they are answered, sends them as fast as the socket takes them,
/// and delivers the replies in the same order, large ones in pieces. If the connection is lost, or
/// the daemon refuses temporarily (is_temporary_refusal), it repeats the unanswered requests on a
/// new connection, within the time for retries. It cannot repeat a request whose reply is partly
/// delivered. A RELOAD is sent alone: after all earlier replies, and before any later request. So
/// if the connection is lost, at most that one RELOAD may have run without a reply. Not safe for
/// concurrent use.
class Pipeline {
  public:
    /// Called with each reply, or each piece of one. An error ends `step`.
    using Receiver = std::function<Status(const ReplyPiece& piece)>;

    /// `peer` must outlive the pipeline. Nobody else may use its connection while replies are
    /// pending.
    Pipeline(RetryingConnection& peer, Receiver receive);

    /// Whether memory is left for another request; always true if none is pending.
    bool has_room() const;
    /// Adds a request, without its LF. `step` sends it.
    void push(std::string request);
    /// Whether replies are pending.
    bool has_pending() const { return !requests_.empty(); }

    /// Waits until the socket or `input_fd` (−1: none) is ready, then sends and receives. Returns
    /// whether `input_fd` is ready. Errors: timeout if the next reply takes too long; unavailable
    /// if the connection is lost and no time for retries is left, or a reply was partly delivered,
    /// or a RELOAD was sent; bad_request if the peer does not speak the protocol; the receiver's
    /// errors.
    Result<bool> step(int input_fd);

  private:
    using Clock = std::chrono::steady_clock;

    struct Request {
        std::string line;  ///< with its LF
        bool reload;
        std::string_view text() const { return std::string_view(line).substr(0, line.size() - 1); }
    };

    /// How much of requests_ the current connection has taken: all requests before `next`, and
    /// `offset` bytes of that one.
    struct Sending {
        std::size_t next = 0;
        std::size_t offset = 0;
        bool has_begun() const { return next > 0 || offset > 0; }
    };

    Status start_connection();
    Status handle_events(short events);
    Status send();
    Status deliver();
    Status deliver_piece(const ReplyPiece& piece);
    Status on_connection_lost(Error error);
    bool may_send(std::size_t i) const;
    bool unsent() const { return sending_.next < requests_.size() && may_send(sending_.next); }
    void restart_timeout() { time_left_ = timeout_; }

    RetryingConnection& peer_;
    Receiver receive_;
    std::chrono::milliseconds timeout_;
    std::deque<Request> requests_;  ///< unanswered
    std::size_t bytes_ = 0;         ///< of requests_
    Sending sending_;
    bool partly_delivered_ = false;  ///< the reply to the first request
    Clock::duration time_left_{};    ///< to wait for the reply to the first request
};

}  // namespace gloved::client
