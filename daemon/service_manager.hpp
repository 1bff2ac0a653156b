// The protocol with systemd: passed sockets, notifications and the watchdog (sd_listen_fds(3),
// sd_notify(3), sd_watchdog_enabled(3)). Does nothing without a service manager.
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

/// The listening Unix stream socket that this process was started with, if any. Removes LISTEN_FDS
/// from the environment. Error: conflict, for another kind of descriptor or more than one.
Result<std::optional<UniqueFd>> passed_socket();

/// The interval of the manager's watchdog, if it has one.
std::optional<std::chrono::microseconds> watchdog_interval();

/// Sends notifications without ever waiting for the manager, which sd_notify would. Not safe for
/// concurrent use.
class ServiceManager {
  public:
    /// Takes the socket from NOTIFY_SOCKET, if it is set.
    ServiceManager();

    /// Reports that the service is ready.
    void ready();
    /// Feeds the watchdog. Not repeated if the manager has no room for it.
    void alive() const;
    void stopping();
    /// Sets the line of `systemctl status`; sent if it differs from the last.
    void status(const std::string& text);
    /// Sends again what the manager had no room for. Call it a few times a second.
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
