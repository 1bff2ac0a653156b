// What a service manager gives a daemon and wants to hear from it: sd_listen_fds(3), sd_notify(3),
// sd_watchdog_enabled(3). Without one nothing of this does anything. sd_notify itself is not
// called: it waits for a manager that does not read.
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

/// The listening Unix stream socket that this process was started with, if it was. Takes LISTEN_FDS
/// out of the environment. Error: conflict, when what was passed is something else, or more than
/// one.
Result<std::optional<UniqueFd>> passed_socket();

/// How often at least the manager wants to hear that all is well; nothing where it does not ask for
/// that.
std::optional<std::chrono::microseconds> watchdog_interval();

/// Tells what became of the service, without ever waiting for the manager. Of one thread.
class ServiceManager {
  public:
    /// To the socket that NOTIFY_SOCKET names, if it does.
    ServiceManager();

    /// All models are loaded and answer.
    void ready();
    /// All is well now. Is not told later, if the manager has no room for it.
    void alive() const;
    void stopping();
    /// A line for `systemctl status`; sent if it is another one than the last.
    void status(const std::string& text);
    /// To be called now and then: tells again what the manager had no room for.
    void send_kept();

  private:
    /// Whether there is nothing left to do: false where the manager has no room for the message.
    bool send(std::string_view message) const;

    UniqueFd socket_;
    sockaddr_un address_{};
    socklen_t address_size_ = 0;
    std::string last_status_;
    std::string unsent_status_;
    bool owes_ready_ = false;
    bool owes_stopping_ = false;
};

}  // namespace gloved::daemon
