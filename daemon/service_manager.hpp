// What a service manager gives a daemon and wants to hear from it: sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3).
// Without one nothing of this does anything.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::daemon {

/// The listening Unix stream socket that this process was started with, if it was. Takes LISTEN_FDS out of the environment.
/// Error: conflict, when what was passed is something else, or more than one.
Result<std::optional<UniqueFd>> passed_socket();

/// How often at least the manager wants to hear that all is well; nothing where it does not ask for that.
std::optional<std::chrono::microseconds> watchdog_interval();

/// Tells what became of the service. Of one thread.
class ServiceManager {
  public:
    /// All models are loaded and answer.
    void ready() const;
    void alive() const;
    void stopping() const;
    /// A line for `systemctl status`; sent if it is another one than the last.
    void status(const std::string& text);

  private:
    std::string last_status_;
};

}  // namespace gloved::daemon
