// The daemon's health as one line and an exit status, for monitoring.
#pragma once

#include <string>

#include "client/connection.hpp"
#include "client/retrying_connection.hpp"

namespace gloved::client {

/// The daemon's state. The numbers are the exit statuses of `gloved-client --health`.
enum class Health {
    serving = 0,
    not_ready = 1,    ///< starting, stopping, silent, or with a fault
    unreachable = 2,  ///< no daemon takes the connection
};

/// What `gloved-client --health` reports.
struct HealthReport {
    Health health;
    std::string line;  ///< one line for people and logs
};

/// Sends STATS once and judges the reply. Waits for at most `peer.timeout` for the
/// connection, and as long again for the reply. Does not retry.
HealthReport ask_health(const PeerSettings& peer);

/// Judges a reply to STATS.
HealthReport health_of(const Reply& stats);

}  // namespace gloved::client
