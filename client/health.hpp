// The daemon's health as one line and an exit status, for monitoring.
#pragma once

#include <string>

#include "client/connection.hpp"
#include "client/retrying_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// The numbers are exit statuses.
enum class Health {
    serving = 0,
    not_ready = 1,    ///< starting, stopping, busy or degraded
    unreachable = 2,  ///< no daemon
};

struct HealthReport {
    Health health;
    std::string line;  ///< for people and logs
};

/// Asks the daemon once for its STATS, within the timeout.
HealthReport ask_health(const PeerSettings& peer);

/// The health that a reply to STATS reports.
HealthReport health_of(const Reply& stats);

}  // namespace gloved::client
