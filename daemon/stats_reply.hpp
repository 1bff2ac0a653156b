// Makes the replies to STATS and STATS prometheus.
#pragma once

#include <cstddef>

#include "common/wire/request.hpp"
#include "daemon/model_set.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "daemon/statistics.hpp"
#include "daemon/suggester.hpp"

namespace gloved::daemon {

/// Where STATS finds what it reports about the daemon.
struct ServerState {
    const Settings& settings;
    const ModelSet& models;
    const Suggester& suggester;
    const Statistics& statistics;
    std::size_t open_connections;
    std::size_t max_connections;
    Clock::time_point started;
};

/// The reply to STATS: lines «key TAB value» about the daemon and the model `loaded`.
Reply stats_reply(wire::Form form, const ServerState& state, const LoadedModel& loaded);
/// The reply to STATS prometheus: lines about the daemon and all models, in the text exposition
/// format of Prometheus.
Reply metrics_reply(wire::Form form, const ServerState& state);

}  // namespace gloved::daemon
