#include "client/connection.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "cli/signals.hpp"
#include "client/query_line.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

using namespace std::chrono_literals;

/// Pause between attempts while the backlog is full: Unix sockets have no event for free room.
constexpr auto kBacklogPause = 10ms;

std::string reason(int error_number) { return std::generic_category().message(error_number); }

/// Returns a connected, non-blocking socket, or the errno of the failure.
std::pair<UniqueFd, int> connect_once(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return {UniqueFd(), ENAMETOOLONG};
    std::memcpy(address.sun_path, path.data(), path.size());

    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return {UniqueFd(), errno};
    // Connecting a Unix socket never returns EINPROGRESS.
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
           0) {
        if (errno != EINTR) return {UniqueFd(), errno};
    }
    return {std::move(socket), 0};
}

/// Whom the mode of `it`, a socket or its directory, lets connect.
std::string whom_it_is_for(const struct stat& status, bool for_group, std::string_view it) {
    if ((for_group ? status.st_gid : status.st_uid) == 0) return "only root may connect";
    if (!for_group) {
        const passwd* const user = ::getpwuid(status.st_uid);
        return fmt::format("{} is for the user {} alone", it,
                           user != nullptr ? user->pw_name : fmt::to_string(status.st_uid));
    }
    const group* const found = ::getgrgid(status.st_gid);
    if (found == nullptr) {
        return fmt::format("{} is for the group {}, which has no name here", it, status.st_gid);
    }
    return fmt::format(
        "{} is for the group {}; have yourself added (sudo adduser $USER {}), and log in again", it,
        found->gr_name, found->gr_name);
}

/// Whom the modes let connect: that needs to write the socket, and to enter its directory.
std::string who_may_connect(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0)
        return whom_it_is_for(status, (status.st_mode & S_IWGRP) != 0, "it");
    const std::string directory = std::filesystem::path(path).parent_path();
    if (::stat(directory.empty() ? "." : directory.c_str(), &status) == 0)
        return whom_it_is_for(status, (status.st_mode & S_IXGRP) != 0, "its directory");
    return "you may not enter its directory; ask the administrator";
}

std::string seconds(std::chrono::milliseconds time) {
    return fmt::format("{:g} s", static_cast<double>(time.count()) / 1e3);
}

}  // namespace

std::string_view Reply::body() const {
    const std::string_view all = text;
    return all.starts_with('{') ? all : all.substr(all.find('\n') + 1);
}

std::vector<std::string_view> Reply::lines() const {
    std::vector<std::string_view> lines;
    for (std::string_view rest = body(); !rest.empty();) {
        const std::size_t end = rest.find('\n');
        lines.push_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }
    return lines;
}

std::optional<std::string_view> value_of(const Reply& stats, std::string_view key) {
    for (const std::string_view line : stats.lines()) {
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '\t')
            return line.substr(key.size() + 1);
    }
    return std::nullopt;
}

Result<Connection> Connection::open(const std::vector<std::string>& paths,
                                    std::chrono::milliseconds timeout) {
    const auto deadline = Clock::now() + timeout;
    std::string tried;
    std::string denied;
    for (const std::string& path : paths) {
        auto [socket, fault] = connect_once(path);
        while (fault == EAGAIN) {
            if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
            if (Clock::now() >= deadline) {
                return error_with(ErrorCode::timeout, "{}: the daemon took no connection for {}",
                                  path, seconds(timeout));
            }
            ::poll(nullptr, 0, static_cast<int>(kBacklogPause.count()));
            std::tie(socket, fault) = connect_once(path);
        }
        if (fault == 0) return Connection(std::move(socket), path, timeout);
        // The daemon has nothing to do with it.
        if (fault == EMFILE || fault == ENFILE || fault == ENOMEM || fault == ENOBUFS)
            return system_error(path, "cannot make a socket", fault);
        tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", path, reason(fault));
        if (fault == EACCES && denied.empty()) denied = path;
    }
    if (!denied.empty()) {
        return error_with(ErrorCode::forbidden,
                          "no permission to talk to a daemon at {}: {}; tried: {}", denied,
                          who_may_connect(denied), tried);
    }
    return error_with(ErrorCode::unavailable,
                      "no daemon to talk to at {}; start one (gloved --model DIR) or name its "
                      "socket{}",
                      tried, paths.size() > 1 ? " with --socket or $GLOVED_SOCKET" : "");
}

int poll_timeout_ms(std::chrono::steady_clock::time_point deadline) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(
        std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

Result<Reply> Connection::ask(std::string_view line) {
    const auto deadline = Clock::now() + timeout_;
    const std::string request = std::string(line) + '\n';
    for (std::string_view left = request; !left.empty();) {
        const auto sent = send_some(left);
        if (!sent) return sent.error();
        left.remove_prefix(*sent);
        if (left.empty()) break;
        if (Status ready = wait_for(POLLOUT, deadline); !ready) return ready.error();
    }
    while (true) {
        const auto piece = next_piece(kMaxWholeReplyBytes);
        if (!piece) return piece.error();
        if (*piece) {
            if (Status asked = check_form(line, **piece); !asked) return asked.error();
            if ((*piece)->last) return Reply{*(*piece)->status, std::string((*piece)->bytes)};
            return bad_request("{}: a reply to {} of more than {} bytes", path_,
                               line.substr(0, line.find(' ')), kMaxWholeReplyBytes);
        }
        if (Status ready = wait_for(POLLIN, deadline); !ready) return ready.error();
        if (Status received = receive_some(); !received) return received.error();
    }
}

bool Connection::is_open_and_silent() const {
    pollfd now{socket_.get(), POLLIN, 0};
    return received_.empty() && ::poll(&now, 1, 0) == 0;
}

Result<std::size_t> Connection::send_some(std::string_view bytes) {
    while (true) {
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) return static_cast<std::size_t>(sent);
        if (errno == EPIPE || errno == ECONNRESET) return bytes.size();
        if (errno == EAGAIN) return std::size_t{0};
        if (errno != EINTR) return lost(reason(errno));
    }
}

Status Connection::receive_some() {
    std::array<char, 65536> chunk;
    while (true) {
        const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
        if (got > 0) {
            received_.append({chunk.data(), static_cast<std::size_t>(got)});
            return {};
        }
        if (got == 0) return lost("the daemon closed it before its answer was complete");
        if (errno == EAGAIN) return {};
        if (errno != EINTR) return lost(reason(errno));
    }
}

Result<std::optional<ReplyPiece>> Connection::next_piece(std::size_t max_bytes) {
    auto piece = received_.next(max_bytes);
    if (!piece) return Error{piece.error().code, path_ + ": " + piece.error().message};
    if (*piece && (*piece)->first && (*piece)->status->code == wire::code_name(ErrorCode::idle)) {
        return Error{ErrorCode::idle,
                     path_ +
                         ": the daemon has closed the connection, which was idle for too long; "
                         "what was asked since is not read, and may be asked again"};
    }
    return piece;
}

Status Connection::check_form(std::string_view request, const ReplyPiece& piece) {
    if (!piece.first) return {};
    if (piece.status->ok && verb_of(request) == wire::Verb::format) {
        if (const auto parsed = wire::parse_request(request)) form_ = parsed->form;
    }
    const bool is_json = piece.bytes.starts_with('{');
    if (is_json == (form_ == wire::Form::json)) return {};
    return bad_request(
        "{}: a reply in {}, which was not asked for; is this the socket of a gloved "
        "daemon?",
        path_, is_json ? "JSON" : "text");
}

Error Connection::timed_out() const {
    return error_with(ErrorCode::timeout, "{}: no answer within {}", path_, seconds(timeout_));
}

Status Connection::wait_for(short events, Clock::time_point deadline) {
    pollfd waiting{socket_.get(), events, 0};
    while (true) {
        const int wait_ms = poll_timeout_ms(deadline);
        const int ready = ::poll(&waiting, 1, wait_ms);
        if (ready > 0 && wait_ms > 0) return {};
        if (ready < 0 && errno != EINTR) return lost(reason(errno));
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        if (wait_ms == 0) return timed_out();
    }
}

Error Connection::lost(std::string_view how) const {
    return error_with(ErrorCode::unavailable, "{}: connection lost: {}", path_, how);
}

}  // namespace gloved::client
