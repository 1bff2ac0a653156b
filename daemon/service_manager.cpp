#include "daemon/service_manager.hpp"

#include <fcntl.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/quoting.hpp"

namespace gloved::daemon {

Result<std::optional<UniqueFd>> passed_socket() {
    const int count = ::sd_listen_fds(1);
    if (count < 0)
        return system_error("LISTEN_FDS", "cannot take the sockets that were passed", -count);
    if (count == 0) return std::optional<UniqueFd>();
    constexpr int kFd = SD_LISTEN_FDS_START;
    if (count > 1 || ::sd_is_socket_unix(kFd, SOCK_STREAM, 1, nullptr, 0) <= 0) {
        return Error{ErrorCode::conflict,
                     "LISTEN_FDS: exactly one listening Unix stream socket is accepted; give the "
                     "socket unit one ListenStream= with a path"};
    }
    const int flags = ::fcntl(kFd, F_GETFL);
    if (flags < 0 || ::fcntl(kFd, F_SETFL, flags | O_NONBLOCK) != 0)
        return system_error("LISTEN_FDS", "cannot make the socket non-blocking", errno);
    return std::optional<UniqueFd>(UniqueFd(kFd));
}

std::optional<std::chrono::microseconds> watchdog_interval() {
    std::uint64_t microseconds = 0;
    if (::sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
    return std::chrono::microseconds(microseconds);
}

ServiceManager::ServiceManager() {
    const char* given = std::getenv("NOTIFY_SOCKET");
    const std::string_view name = given == nullptr ? "" : given;
    if (name.size() < 2 || name.size() >= sizeof address_.sun_path ||
        (name[0] != '/' && name[0] != '@'))
        return;
    address_.sun_family = AF_UNIX;
    name.copy(address_.sun_path, name.size());
    address_size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    // An abstract name has no final NUL; a path has.
    if (name[0] == '@') {
        address_.sun_path[0] = '\0';
    } else {
        ++address_size_;
    }
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

void ServiceManager::ready() {
    ready_is_unsent_ = true;
    send_pending();
}

void ServiceManager::alive() const { (void)send("WATCHDOG=1"); }

void ServiceManager::stopping() {
    stopping_is_unsent_ = true;
    send_pending();
}

void ServiceManager::status(const std::string& text) {
    if (text == last_status_) return;
    // One line: an LF would begin another assignment.
    unsent_status_ = "STATUS=" + without_control_bytes(text);
    last_status_ = text;
    send_pending();
}

void ServiceManager::send_pending() {
    if (!unsent_status_.empty() && !send(unsent_status_)) return;
    unsent_status_.clear();
    if (ready_is_unsent_ && !send("READY=1")) return;
    ready_is_unsent_ = false;
    if (stopping_is_unsent_ && !send("STOPPING=1")) return;
    stopping_is_unsent_ = false;
}

bool ServiceManager::send(std::string_view message) const {
    if (!socket_) return true;
    const ssize_t sent =
        ::sendto(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address_), address_size_);
    return sent >= 0 || errno != EAGAIN;
}

}  // namespace gloved::daemon
