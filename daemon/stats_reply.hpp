// The replies to STATS and STATS prometheus, as long as all others together (reply.hpp).
#pragma once

#include <cstddef>

#include "common/wire/request.hpp"
#include "daemon/model_set.hpp"
#include "daemon/reply.hpp"
#include "daemon/settings.hpp"
#include "daemon/statistics.hpp"
#include "daemon/suggester.hpp"

namespace gloved::daemon {

/// What STATS reports of the daemon.
struct ServerState {
    const Settings& settings;
    const ModelSet& models;
    const Suggester& suggester;
    const Statistics& statistics;
    std::size_t open_connections;
    Clock::time_point started;
};

/// Keys and values, those of one model about `loaded`.
Reply stats_reply(wire::Form form, const ServerState& state, const LoadedModel& loaded);
/// All models in the text exposition format of Prometheus.
Reply metrics_reply(wire::Form form, const ServerState& state);

}  // namespace gloved::daemon
