// Requests sent ahead of their answers, over a connection that may be lost on the way.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "client/patient_connection.hpp"
#include "client/reply_reader.hpp"
#include "common/result.hpp"

namespace gloved::client {

struct PipelineLimits {
    std::size_t requests = 64;  ///< unanswered ones; a daemon reads no more than 256 of a
                                ///< connection
    std::size_t bytes = std::size_t{256} << 10;
    /// From this size on a reply is passed on before it is whole. What was passed on cannot be
    /// asked for again.
    std::size_t whole_reply_bytes = std::size_t{1} << 20;
};

/// Keeps requests in their order until they are answered, sends them as the socket takes them and
/// passes on the replies, in that order, as they come. A connection that is lost, or a daemon that
/// refuses for now, begins anew with what is not answered, as the connection's patience allows. A
/// RELOAD travels alone: it is sent when all before it is answered, and what is behind it waits for
/// its answer; so losing a connection never leaves open whether more than it was done. Not safe for
/// concurrent use.
class Pipeline {
  public:
    /// Takes a reply to `request`, or a piece of one. An error ends the step that brought it.
    using Receiver = std::function<Status(std::string_view request, const ReplyPiece& piece)>;

    /// `peer` must outlive the pipeline; its connection belongs to the pipeline while anything is
    /// owed.
    Pipeline(PatientConnection& peer, PipelineLimits limits, Receiver receive);

    /// Whether another request may be pushed: bounded in number and bytes, and at least one.
    bool room() const;
    /// Adds a request, without its LF.
    void push(std::string request);
    /// Whether answers are missing.
    bool owed() const { return !requests_.empty(); }

    /// Waits until the socket is ready or `input_fd` is (−1: none), and does what can be done with
    /// the socket. Returns whether `input_fd` is ready. Errors: timeout, when the answer that is
    /// next was waited for so long; unavailable, when the connection is lost beyond patience, in
    /// the middle of a reply that was passed on, or during a RELOAD; bad_request (no gloved answers
    /// there); the receiver's.
    Result<bool> step(int input_fd);

  private:
    using Clock = std::chrono::steady_clock;

    struct Request {
        std::string line;  ///< with its LF
        bool reload;
        std::string_view text() const { return std::string_view(line).substr(0, line.size() - 1); }
    };

    Status begin();
    Status converse(short events);
    Status send();
    Status deliver();
    Status pass_on(const ReplyPiece& piece);
    Status lose(Error error);
    bool may_send(std::size_t i) const;
    bool unsent() const { return next_ < requests_.size() && may_send(next_); }
    void renew() { patience_ = timeout_; }

    PatientConnection& peer_;
    PipelineLimits limits_;
    Receiver receive_;
    std::chrono::milliseconds timeout_;
    std::deque<Request> requests_;  ///< unanswered
    std::size_t bytes_ = 0;         ///< of them
    std::size_t next_ = 0;          ///< of them the first that is not sent whole,
    std::size_t offset_ = 0;        ///< and how much of it is
    bool passed_on_ = false;        ///< a piece of the first one's reply
    Clock::duration patience_{};    ///< how long the first one's answer may still be waited for
};

}  // namespace gloved::client
