#include "client/retrying_connection.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "client/query_line.hpp"
#include "common/error_with.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

using namespace std::chrono_literals;

/// Short compared with a daemon's start, long enough to cost it no work.
constexpr auto kFirstPause = 20ms;
constexpr auto kMaxPause = 1000ms;
/// Time that a daemon has to answer even at the end of the time for retries: otherwise the last
/// retry would replace its refusal by «no answer».
constexpr auto kLastTry = 100ms;

Error state_refused(std::string_view request, const wire::StatusLine& status) {
    return bad_request("{}: {} is refused: {}", status.code, request, status.message);
}

}  // namespace

bool is_temporary_refusal(const wire::StatusLine& status) {
    return !status.ok && (status.code == wire::code_name(ErrorCode::busy) ||
                          status.code == wire::code_name(ErrorCode::unavailable));
}

bool is_transient(const Error& error) {
    return error.code == ErrorCode::unavailable || error.code == ErrorCode::idle;
}

RetryingConnection::RetryingConnection(PeerSettings settings)
    : settings_(std::move(settings)),
      format_(settings_.json ? "FORMAT json" : ""),
      retry_pause_(kFirstPause) {}

Result<Connection*> RetryingConnection::connect() {
    while (!connection_) {
        auto opened = open_once();
        Status ready;
        if (!opened) {
            ready = opened.error();
            // A full backlog is a daemon that is busy.
            if (ready.error().code == ErrorCode::timeout)
                ready = Error{ErrorCode::unavailable, ready.error().message};
        } else {
            connection_ = *std::move(opened);
            ready = restore_state(*connection_);
        }
        if (ready) break;
        if (is_transient(ready.error()) && wait_and_drop()) continue;
        drop();
        return ready.error();
    }
    return &*connection_;
}

bool RetryingConnection::wait_and_drop() {
    const auto now = Clock::now();
    if (!retry_until_) retry_until_ = now + settings_.retry_for;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*retry_until_ - now);
    if (left <= 0ms) return false;
    drop();
    std::this_thread::sleep_for(std::min(retry_pause_, left));
    retry_pause_ = std::min<std::chrono::milliseconds>(retry_pause_ * 3 / 2, kMaxPause);
    return true;
}

void RetryingConnection::answered(std::string_view request, bool ok) {
    retry_until_.reset();
    retry_pause_ = kFirstPause;
    if (!ok) return;
    const auto verb = verb_of(request);
    if (verb == wire::Verb::format) format_ = request;
    if (verb == wire::Verb::use) use_ = request;
}

Result<Reply> RetryingConnection::ask(std::string_view request) {
    // No reply is pending, so unread bytes mean that the daemon is closing the connection.
    if (connection_ && !connection_->is_open_and_silent()) drop();
    while (true) {
        const auto connection = connect();
        if (!connection) return connection.error();
        auto reply = (*connection)->ask(request);
        const bool passing =
            reply ? is_temporary_refusal(reply->status) : is_transient(reply.error());
        if (passing && wait_and_drop()) continue;
        if (reply) {
            answered(request, reply->status.ok);
        } else {
            drop();
        }
        return reply;
    }
}

Result<Connection> RetryingConnection::open_once() const {
    auto timeout = settings_.timeout;
    if (retry_until_) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(*retry_until_ - Clock::now());
        timeout = std::min(timeout, std::max<std::chrono::milliseconds>(left, kLastTry));
    }
    return Connection::open(settings_.paths, timeout);
}

Status RetryingConnection::restore_state(Connection& connection) {
    for (const std::string& request : {format_, use_}) {
        if (request.empty()) continue;
        const auto reply = connection.ask(request);
        if (!reply) return reply.error();
        if (is_temporary_refusal(reply->status)) {
            return error_with(ErrorCode::unavailable, "{}: {}", reply->status.code,
                              reply->status.message);
        }
        if (!reply->status.ok) return state_refused(request, reply->status);
    }
    return {};
}

}  // namespace gloved::client
