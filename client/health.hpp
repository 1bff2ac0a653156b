// How a daemon is, in one line and an exit status: for monitoring.
#pragma once

#include <string>

#include "client/connection.hpp"
#include "client/patient_connection.hpp"
#include "common/result.hpp"

namespace gloved::client {

/// What a monitor is told; the numbers are exit statuses.
enum class Health {
    serving = 0,
    troubled = 1,     ///< starting, stopping, busy, or degraded: something is there, but not all is
                      ///< well
    unreachable = 2,  ///< nothing is there
};

struct HealthReport {
    Health health;
    std::string line;  ///< for people, and for the log of who asks
};

/// Asks the daemon once for its STATS, within the timeout.
HealthReport ask_health(const PeerSettings& peer);

/// What a reply to STATS says.
HealthReport health_of(const Reply& stats);

}  // namespace gloved::client
