#include "daemon/service_manager.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <cstdint>

#include "common/quoting.hpp"

namespace gloved::daemon {

Result<std::optional<UniqueFd>> passed_socket() {
    const int count = ::sd_listen_fds(1);
    if (count < 0) return system_error("LISTEN_FDS", "cannot take the sockets that were passed", -count);
    if (count == 0) return std::optional<UniqueFd>();
    constexpr int kFd = SD_LISTEN_FDS_START;
    if (count > 1 || ::sd_is_socket_unix(kFd, SOCK_STREAM, 1, nullptr, 0) <= 0) {
        return Error{ErrorCode::conflict,
                     "LISTEN_FDS: exactly one listening Unix stream socket is taken; give the socket unit one "
                     "ListenStream= with a path"};
    }
    const int flags = ::fcntl(kFd, F_GETFL);
    if (flags < 0 || ::fcntl(kFd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return system_error("LISTEN_FDS", "cannot make the socket non-blocking", errno);
    }
    return std::optional<UniqueFd>(UniqueFd(kFd));
}

std::optional<std::chrono::microseconds> watchdog_interval() {
    std::uint64_t microseconds = 0;
    if (::sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
    return std::chrono::microseconds(microseconds);
}

void ServiceManager::ready() const { (void)::sd_notify(0, "READY=1"); }

void ServiceManager::alive() const { (void)::sd_notify(0, "WATCHDOG=1"); }

void ServiceManager::stopping() const { (void)::sd_notify(0, "STOPPING=1"); }

void ServiceManager::status(const std::string& text) {
    if (text == last_status_) return;
    last_status_ = text;
    // One line: what follows an LF would be taken for another assignment.
    (void)::sd_notify(0, ("STATUS=" + without_control_bytes(text)).c_str());
}

}  // namespace gloved::daemon
