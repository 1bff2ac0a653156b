#include "tools/bench/connection.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "common/error_with.hpp"
#include "common/wire/reply_framer.hpp"

namespace gloved::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTimeout = std::chrono::seconds(60);
constexpr std::size_t kMaxLineBytes = 1 << 20;
constexpr std::size_t kMaxReplyBytes = std::size_t{256} << 20;
constexpr const char* kSocketName = "the daemon's socket";

Error lost(std::string_view where, std::string_view what, int reason) {
    if (reason == EINTR) return Error{ErrorCode::interrupted, "interrupted"};
    return system_error(where, what, reason);
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
        return lost(path, "cannot connect", errno);
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

Status Connection::send(std::string_view bytes) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) return lost(kSocketName, "cannot send", errno);
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<Reply> Connection::ask(std::string_view request) {
    if (Status sent = send(request); !sent) return sent.error();
    const auto deadline = Clock::now() + kTimeout;
    wire::ReplyFramer framer;
    std::string text;
    for (const char* end = nullptr; end == nullptr;) {
        if (Clock::now() >= deadline)
            return Error{ErrorCode::timeout, "the daemon's reply takes longer than a minute"};
        std::array<char, 65536> buffer;
        const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
        if (got < 0) return lost(kSocketName, "no answer", errno);
        if (got == 0) {
            return Error{ErrorCode::unavailable,
                         "the daemon closed the connection in the middle of a reply"};
        }
        const char* const begin = buffer.data();
        end = framer.take(begin, begin + got);
        text.append(begin, end != nullptr ? end : begin + got);
        if (text.size() > kMaxReplyBytes) {
            return error_with(ErrorCode::bad_request, "a reply of more than {} bytes",
                              kMaxReplyBytes);
        }
        // npos + 1 is 0, where the line of a text without LF begins.
        if (text.size() - (text.rfind('\n') + 1) > kMaxLineBytes) {
            return error_with(
                ErrorCode::bad_request,
                "a line of more than {} bytes; is this the socket of a gloved daemon?",
                kMaxLineBytes);
        }
        if (framer.broken()) break;
    }
    const std::size_t status_end = text.find('\n') + 1;
    // Of another protocol it names what came.
    auto status = wire::parse_status_line(std::string_view(text).substr(0, status_end - 1));
    if (!status) return status.error();
    return Reply{*std::move(status), text.substr(0, status_end), text.substr(status_end)};
}

pid_t Connection::peer() const {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return 0;
    return credentials.pid;
}

}  // namespace gloved::bench
