#include "client/pipeline.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "client/connection.hpp"
#include "client/query_line.hpp"
#include "common/files.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

/// Unanswered requests. The daemon reads at most 256 of one connection.
constexpr std::size_t kMaxRequests = 64;
/// Bytes of unanswered requests.
constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 10;
/// A reply of this size or more is delivered in pieces.
constexpr std::size_t kWholeReplyBytes = std::size_t{1} << 20;
/// Bytes to send in one call.
constexpr std::size_t kSendBytes = 65536;

/// Whether the daemon closes the connection after this reply, without reading later requests.
bool closes(std::string_view request, const wire::StatusLine& status) {
    return status.code == wire::code_name(ErrorCode::too_long) ||
           (status.ok && verb_of(request) == wire::Verb::quit);
}

/// The error for a RELOAD whose reply was lost.
Error reload_lost(const Error& error) {
    return {
        error.code,
        error.message + "; RELOAD is not sent twice, and may be under way; see the daemon's log"};
}

}  // namespace

Pipeline::Pipeline(RetryingConnection& peer, Receiver receive)
    : peer_(peer), receive_(std::move(receive)), timeout_(peer.settings().timeout) {}

bool Pipeline::has_room() const {
    return requests_.empty() || (requests_.size() < kMaxRequests && bytes_ < kMaxRequestBytes);
}

void Pipeline::push(std::string request) {
    if (requests_.empty()) restart_timeout();
    const bool reload = verb_of(request) == wire::Verb::reload;
    request += '\n';
    bytes_ += request.size();
    requests_.push_back({std::move(request), reload});
}

Result<bool> Pipeline::step(int input_fd) {
    if (has_pending() && peer_.current() == nullptr) {
        if (Status begun = start_connection(); !begun) return begun.error();
    }
    const Connection* connection = peer_.current();
    const auto wanted = static_cast<short>(unsent() ? POLLIN | POLLOUT : POLLIN);
    // poll ignores negative descriptors.
    std::array<pollfd, 2> waiting = {
        pollfd{input_fd, POLLIN, 0},
        pollfd{connection == nullptr ? -1 : connection->fd(), wanted, 0}};
    const auto began = Clock::now();
    const int wait_ms = has_pending() ? poll_timeout_ms(began + time_left_) : -1;
    const int ready = ::poll(waiting.data(), waiting.size(), wait_ms);
    const int fault = errno;
    // Only this counts as the daemon's time: the receiver may be slow.
    time_left_ -= Clock::now() - began;
    if (ready < 0) {
        if (fault == EINTR) return false;
        return system_error("the connection", "cannot be waited for", fault);
    }
    if (waiting[1].revents != 0) {
        if (Status conversed = handle_events(waiting[1].revents); !conversed)
            return conversed.error();
    } else if (connection != nullptr && has_pending() && time_left_ <= Clock::duration::zero()) {
        const Error late = connection->timed_out();
        return requests_.front().reload ? reload_lost(late) : late;
    }
    return waiting[0].revents != 0;
}

/// Connects and starts over with the first unanswered request.
Status Pipeline::start_connection() {
    sending_ = {};
    partly_delivered_ = false;
    const auto connection = peer_.connect();
    if (!connection) return connection.error();
    restart_timeout();
    return {};
}

Status Pipeline::handle_events(short events) {
    if ((events & POLLOUT) != 0) {
        if (Status sent = send(); !sent) return on_connection_lost(sent.error());
    }
    if ((events & ~POLLOUT) == 0) return {};
    if (Status received = peer_.current()->receive_some(); !received)
        return on_connection_lost(received.error());
    return deliver();
}

Status Pipeline::send() {
    auto& [next, offset] = sending_;
    std::string bytes;
    for (std::size_t i = next; i < requests_.size() && may_send(i) && bytes.size() < kSendBytes;
         ++i)
        bytes.append(requests_[i].line, i == next ? offset : 0);
    if (bytes.empty()) return {};
    const auto sent = peer_.current()->send_some(bytes);
    if (!sent) return sent.error();
    offset += *sent;
    while (next < requests_.size() && offset >= requests_[next].line.size())
        offset -= requests_[next++].line.size();
    return {};
}

/// Delivers the replies that have arrived.
Status Pipeline::deliver() {
    while (peer_.current() != nullptr) {
        const auto piece = peer_.current()->next_piece(kWholeReplyBytes);
        if (!piece)
            return is_transient(piece.error()) ? on_connection_lost(piece.error()) : piece.error();
        if (!*piece) return {};
        if (requests_.empty()) {
            // Without a request, a daemon only says why it closes the connection.
            peer_.drop();
            return {};
        }
        if (Status passed = deliver_piece(**piece); !passed) return passed;
    }
    return {};
}

Status Pipeline::deliver_piece(const ReplyPiece& piece) {
    const Request& request = requests_.front();
    if (is_temporary_refusal(*piece.status) && !request.reload && peer_.wait_and_drop()) return {};
    if (Status asked = peer_.current()->check_form(request.text(), piece); !asked) return asked;
    if (Status received = receive_(piece); !received) return received;
    partly_delivered_ = !piece.last;
    if (!piece.last) return {};
    restart_timeout();

    peer_.answered(request.text(), piece.status->ok);
    // If the request is not completely sent, the daemon would take the rest for another request.
    const bool must_reconnect = sending_.next == 0 || closes(request.text(), *piece.status);
    bytes_ -= request.line.size();
    requests_.pop_front();
    if (must_reconnect)
        peer_.drop();
    else
        --sending_.next;
    return {};
}

/// Handles a lost connection. No error if the next step may reconnect.
Status Pipeline::on_connection_lost(Error error) {
    if (!has_pending()) {
        peer_.drop();
        return {};
    }
    const bool is_unread = error.code == ErrorCode::idle;
    const bool reload_sent = requests_.front().reload && sending_.has_begun() && !is_unread;
    if (!partly_delivered_ && !reload_sent && peer_.wait_and_drop()) return {};
    peer_.drop();
    if (partly_delivered_)
        error.message += ", in the middle of an answer of which a part is out already";
    return reload_sent ? reload_lost(error) : error;
}

bool Pipeline::may_send(std::size_t i) const {
    return i == 0 || (!requests_.front().reload && !requests_[i].reload);
}

}  // namespace gloved::client
