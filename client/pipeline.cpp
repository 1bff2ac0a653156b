#include "client/pipeline.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "client/query_line.hpp"
#include "common/files.hpp"

namespace gloved::client {
namespace {

/// How much is handed to the socket at once.
constexpr std::size_t kSendBytes = 65536;

/// After these answers the daemon closes, and what was sent behind the request is not read.
bool closes(std::string_view request, const wire::StatusLine& status) {
    return status.code == wire::code_name(ErrorCode::too_long) ||
           (status.ok && verb_of(request) == wire::Verb::quit);
}

}  // namespace

Pipeline::Pipeline(PatientConnection& peer, PipelineLimits limits, Receiver receive)
    : peer_(peer),
      limits_(limits),
      receive_(std::move(receive)),
      timeout_(peer.settings().timeout) {}

bool Pipeline::room() const {
    return requests_.empty() || (requests_.size() < limits_.requests && bytes_ < limits_.bytes);
}

void Pipeline::push(std::string request) {
    if (requests_.empty()) renew();
    const bool reload = verb_of(request) == wire::Verb::reload;
    request += '\n';
    bytes_ += request.size();
    requests_.push_back({std::move(request), reload});
}

Result<bool> Pipeline::step(int input_fd) {
    if (owed() && peer_.current() == nullptr) {
        if (Status begun = begin(); !begun) return begun.error();
    }
    const Connection* connection = peer_.current();
    const auto wanted = static_cast<short>(unsent() ? POLLIN | POLLOUT : POLLIN);
    // poll passes over negative descriptors.
    std::array<pollfd, 2> waiting = {
        pollfd{input_fd, POLLIN, 0},
        pollfd{connection == nullptr ? -1 : connection->fd(), wanted, 0}};
    const auto began = Clock::now();
    // Where nobody owes anything, for as long as it takes.
    const int wait_ms = owed() ? poll_timeout_ms(began + patience_) : -1;
    const int ready = ::poll(waiting.data(), waiting.size(), wait_ms);
    const int fault = errno;
    // Only this is the daemon's time. Whoever takes the answers may be slow.
    patience_ -= Clock::now() - began;
    if (ready < 0) {
        if (fault == EINTR) return false;
        return system_error("the connection", "cannot be waited for", fault);
    }
    if (waiting[1].revents != 0) {
        if (Status conversed = converse(waiting[1].revents); !conversed) return conversed.error();
    } else if (connection != nullptr && owed() && patience_ <= Clock::duration::zero()) {
        const Error late = connection->timed_out();
        return requests_.front().reload ? reload_lost(late) : late;
    }
    return waiting[0].revents != 0;
}

/// A connection on which nothing is sent yet.
Status Pipeline::begin() {
    next_ = 0;
    offset_ = 0;
    passed_on_ = false;
    const auto connection = peer_.connect();
    if (!connection) return connection.error();
    renew();
    return {};
}

Status Pipeline::converse(short events) {
    if ((events & POLLOUT) != 0) {
        if (Status sent = send(); !sent) return lose(sent.error());
    }
    if ((events & ~POLLOUT) == 0) return {};
    if (Status received = peer_.current()->receive_some(); !received) return lose(received.error());
    return deliver();
}

Status Pipeline::send() {
    std::string bytes;
    for (std::size_t i = next_; i < requests_.size() && may_send(i) && bytes.size() < kSendBytes;
         ++i) {
        bytes.append(requests_[i].line, i == next_ ? offset_ : 0);
    }
    if (bytes.empty()) return {};
    const auto sent = peer_.current()->send_some(bytes);
    if (!sent) return sent.error();
    offset_ += *sent;
    while (next_ < requests_.size() && offset_ >= requests_[next_].line.size()) {
        offset_ -= requests_[next_].line.size();
        ++next_;
    }
    return {};
}

/// Passes on what has arrived.
Status Pipeline::deliver() {
    while (peer_.current() != nullptr) {
        const auto piece = peer_.current()->next_piece(limits_.whole_reply_bytes);
        if (!piece) return may_pass(piece.error()) ? lose(piece.error()) : piece.error();
        if (!*piece) return {};
        if (requests_.empty()) {
            // What a daemon says unasked is why it closes. No answer is lost by that.
            peer_.drop();
            return {};
        }
        if (Status passed = pass_on(**piece); !passed) return passed;
    }
    return {};
}

Status Pipeline::pass_on(const ReplyPiece& piece) {
    const Request& request = requests_.front();
    if (refused_for_now(*piece.status) && !request.reload && peer_.wait_and_drop()) return {};
    if (Status received = receive_(request.text(), piece); !received) return received;
    passed_on_ = !piece.last;
    if (!piece.last) return {};
    renew();

    peer_.answered(request.text(), piece.status->ok);
    // An answer to a line that is not sent whole: the rest of it would be taken for a request of
    // its own.
    const bool ends = next_ == 0 || closes(request.text(), *piece.status);
    bytes_ -= request.line.size();
    requests_.pop_front();
    if (next_ > 0) --next_;
    if (ends) peer_.drop();
    return {};
}

/// The connection broke. Not an error if it can be taken up again, which the next step does.
Status Pipeline::lose(Error error) {
    if (!owed()) {
        peer_.drop();
        return {};
    }
    const bool is_unread = error.code == ErrorCode::idle;
    const bool reload_sent = requests_.front().reload && (next_ > 0 || offset_ > 0) && !is_unread;
    if (!passed_on_ && !reload_sent && peer_.wait_and_drop()) return {};
    peer_.drop();
    if (passed_on_) error.message += ", in the middle of an answer of which a part is out already";
    return reload_sent ? reload_lost(error) : error;
}

bool Pipeline::may_send(std::size_t i) const {
    return i == 0 || (!requests_.front().reload && !requests_[i].reload);
}

}  // namespace gloved::client
