#include "client/patient_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client/query_line.hpp"

namespace gloved::client {
namespace {

using namespace std::chrono_literals;

/// Short enough not to be noticed beside a daemon's start, long enough not to be work for it.
constexpr auto kFirstPause = 20ms;
constexpr auto kMaxPause = 1000ms;

Error state_refused(std::string_view request, const wire::StatusLine& status) {
    return {ErrorCode::bad_request,
            fmt::format("{}: {} is refused: {}", status.code, request, status.message)};
}

}  // namespace

bool refused_for_now(const wire::StatusLine& status) {
    return !status.ok && (status.code == wire::code_name(ErrorCode::busy) ||
                          status.code == wire::code_name(ErrorCode::unavailable));
}

bool may_pass(const Error& error) {
    return error.code == ErrorCode::unavailable || error.code == ErrorCode::idle;
}

Error reload_lost(const Error& error) {
    return {error.code, error.message +
                            "; RELOAD is not sent twice, and may be under way: the daemon's log "
                            "says what became of it"};
}

PatientConnection::PatientConnection(PeerSettings settings)
    : settings_(std::move(settings)),
      format_(settings_.json ? "FORMAT json" : ""),
      pause_(kFirstPause) {}

Result<Connection*> PatientConnection::connect() {
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
        if (may_pass(ready.error()) && wait_and_drop()) continue;
        drop();
        return ready.error();
    }
    return &*connection_;
}

bool PatientConnection::wait_and_drop() {
    const auto now = Clock::now();
    if (!patience_ends_) patience_ends_ = now + settings_.patience;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*patience_ends_ - now);
    if (left <= 0ms) return false;
    drop();
    std::this_thread::sleep_for(std::min(pause_, left));
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 3 / 2, kMaxPause);
    return true;
}

void PatientConnection::answered(std::string_view request, bool ok) {
    patience_ends_.reset();
    pause_ = kFirstPause;
    if (!ok) return;
    const auto verb = verb_of(request);
    if (verb == wire::Verb::format) format_ = request;
    if (verb == wire::Verb::use) use_ = request;
}

Result<Reply> PatientConnection::ask(std::string_view request) {
    // Nothing is owed: what a connection has to say now is that it ends, and no answer is lost with
    // it.
    if (connection_ && !connection_->quiet()) drop();
    while (true) {
        const auto connection = connect();
        if (!connection) return connection.error();
        auto reply = (*connection)->ask(request);
        const bool passing = reply ? refused_for_now(reply->status) : may_pass(reply.error());
        const bool is_unread = !reply && reply.error().code == ErrorCode::idle;
        const bool may_be_done = verb_of(request) == wire::Verb::reload && !is_unread;
        if (passing && !may_be_done && wait_and_drop()) continue;
        if (reply) {
            answered(request, reply->status.ok);
            return reply;
        }
        drop();
        if (may_be_done && (passing || reply.error().code == ErrorCode::timeout))
            return reload_lost(reply.error());
        return reply;
    }
}

Result<Connection> PatientConnection::open_once() const {
    auto timeout = settings_.timeout;
    if (patience_ends_) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(*patience_ends_ - Clock::now());
        timeout = std::clamp(left, std::chrono::milliseconds(1), timeout);
    }
    return Connection::open(settings_.paths, timeout);
}

Status PatientConnection::restore_state(Connection& connection) {
    for (const std::string& request : {format_, use_}) {
        if (request.empty()) continue;
        const auto reply = connection.ask(request);
        if (!reply) return reply.error();
        if (refused_for_now(reply->status)) {
            return Error{ErrorCode::unavailable,
                         fmt::format("{}: {}", reply->status.code, reply->status.message)};
        }
        if (!reply->status.ok) return state_refused(request, reply->status);
    }
    return {};
}

}  // namespace gloved::client
