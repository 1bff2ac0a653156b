#include "tools/bench/connection.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "common/error_with.hpp"

namespace gloved::bench {
namespace {

constexpr auto kTimeout = std::chrono::seconds(60);

Error lost(std::string_view what, int reason) {
    if (reason == EINTR) return Error{ErrorCode::interrupted, "interrupted"};
    return system_error("the daemon's socket", what, reason);
}

}  // namespace

Result<UniqueFd> connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return error_with(ErrorCode::bad_source, "{}: too long for a socket, at most {} bytes",
                          path, sizeof address.sun_path - 1);
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return system_error(path, "cannot make a socket", errno);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return system_error(path, "cannot connect", errno);
    return fd;
}

Result<Connection> Connection::open(const std::string& path) {
    auto fd = connect_to(path);
    if (!fd) return fd.error();
    const timeval patience{kTimeout.count(), 0};
    ::setsockopt(fd->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return Connection(*std::move(fd));
}

Status Connection::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) return lost("cannot send", errno);
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<Reply> Connection::read_reply() {
    deadline_ = Clock::now() + kTimeout;
    const auto first = line();
    if (!first) return first.error();
    auto status = wire::parse_status_line(*first);
    if (!status) return status.error();
    Reply reply;
    reply.status_line = std::string(*first) + '\n';
    reply.status = *std::move(status);
    for (std::size_t left = reply.status.lines; left > 0; --left) {
        const auto next = line();
        if (!next) return next.error();
        reply.lines.append(*next).push_back('\n');
        if (reply.lines.size() > kMaxReplyBytes) {
            return error_with(ErrorCode::bad_request, "a reply of more than {} bytes",
                              kMaxReplyBytes);
        }
    }
    return reply;
}

Result<Reply> Connection::ask(std::string_view request) {
    if (Status sent = send(request); !sent) return sent.error();
    return read_reply();
}

Result<double> Connection::skip_reply() {
    deadline_ = Clock::now() + kTimeout;
    const auto first = line();
    if (!first) return first.error();
    const auto status = wire::parse_status_line(*first);
    if (!status) return status.error();
    if (!status->ok) {
        return error_with(ErrorCode::unavailable, "the daemon answers {}: {}", status->code,
                          status->message);
    }
    for (std::size_t left = status->lines; left > 0; --left) {
        if (const auto skipped = line(); !skipped) return skipped.error();
    }
    const std::string_view text = status->field("us");
    std::uint64_t us = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), us).ec != std::errc{})
        return Error{ErrorCode::unavailable, "the daemon does not say how long it took"};
    return static_cast<double>(us) / 1000;
}

Result<double> Connection::time(std::string_view request) {
    if (Status sent = send(request); !sent) return sent.error();
    return skip_reply();
}

pid_t Connection::peer() const {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return 0;
    return credentials.pid;
}

/// Valid until the next call.
Result<std::string_view> Connection::line() {
    while (true) {
        if (const auto whole = received_.next()) return *whole;
        if (received_.too_long()) {
            return error_with(
                ErrorCode::bad_request,
                "a line of more than {} bytes; is this the socket of a gloved daemon?",
                kMaxReplyLineBytes);
        }
        if (Clock::now() >= deadline_)
            return Error{ErrorCode::timeout, "the daemon's reply takes longer than a minute"};
        std::array<char, 65536> buffer;
        const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
        if (got < 0) return lost("no answer", errno);
        if (got == 0) {
            return Error{ErrorCode::unavailable,
                         "the daemon closed the connection in the middle of a reply"};
        }
        received_.append({buffer.data(), static_cast<std::size_t>(got)});
    }
}

}  // namespace gloved::bench
