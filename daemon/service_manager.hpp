// How the daemon talks to its service manager, systemd: the socket that it passes, notifications,
// and the watchdog (sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3)). Without a service
// manager all functions do nothing.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::daemon {

/// Takes the listening Unix stream socket that the manager passed to this process; nullopt if it
/// passed none. Removes LISTEN_FDS from the environment. Error: conflict, for another kind of
/// descriptor or more than one.
Result<std::optional<UniqueFd>> passed_socket();

/// The interval within which the manager's watchdog expects `alive`; nullopt without a watchdog.
std::optional<std::chrono::microseconds> watchdog_interval();

/// Sends notifications to the manager. Unlike sd_notify, never waits until it has room for them.
/// Not safe for concurrent use.
class ServiceManager {
  public:
    /// Takes the socket from NOTIFY_SOCKET, if it is set.
    ServiceManager();

    /// Reports that the service is ready.
    void ready();
    /// Reports to the watchdog that the service works. Dropped if the manager has no room.
    void alive() const;
    /// Reports that the service is stopping.
    void stopping();
    /// Sets the line that `systemctl status` shows. Sends it only if it differs from the last.
    void status(const std::string& text);
    /// Sends what the manager had no room for. Call it a few times a second.
    void send_pending();

  private:
    /// False when the manager has no room for the message.
    bool send(std::string_view message) const;

    UniqueFd socket_;
    sockaddr_un address_{};
    socklen_t address_size_ = 0;
    std::string last_status_;
    std::string unsent_status_;
    bool ready_is_unsent_ = false;
    bool stopping_is_unsent_ = false;
};

}  // namespace gloved::daemon
