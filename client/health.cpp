#include "client/health.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "common/result.hpp"

namespace gloved::client {

HealthReport health_of(const Reply& stats) {
    if (!stats.status.ok) {
        return {Health::not_ready,
                fmt::format("degraded: {}: {}", stats.status.code, stats.status.message)};
    }
    const auto value = [&](std::string_view key) { return value_of(stats, key).value_or(""); };
    const std::string_view health = value("health");
    if (health.empty())
        return {Health::not_ready,
                "degraded: the daemon is older than this client and does not report its health"};
    for (const char* key : {"model", "rows", "dim", "engine", "engine_description", "models"}) {
        if (value_of(stats, key)) continue;
        return {Health::not_ready,
                fmt::format("degraded: the reply to STATS has no {}; is this the socket of a "
                            "gloved daemon?",
                            key)};
    }
    std::string line =
        fmt::format("{}: {}: {} words x {}, engine {} ({})", health, value("model"), value("rows"),
                    value("dim"), value("engine"), value("engine_description"));
    if (const auto models = value("models"); models != "1")
        line += fmt::format("; {} models in all", models);
    if (const auto missing = value("missing_engines"); !missing.empty())
        line += fmt::format("; not {}", missing);
    if (const auto reason = value("health_reason"); !reason.empty())
        line += fmt::format("; {}", reason);
    return {health == "serving" ? Health::serving : Health::not_ready, std::move(line)};
}

HealthReport ask_health(const PeerSettings& peer) {
    auto connection = Connection::open(peer.paths, peer.timeout);
    if (!connection) {
        // A full backlog: a daemon is there but accepts no connections.
        const bool there = connection.error().code == ErrorCode::timeout;
        return {there ? Health::not_ready : Health::unreachable,
                fmt::format("{}: {}", there ? "starting or stuck" : "unreachable",
                            connection.error().message)};
    }
    const auto stats = connection->ask("STATS");
    // Connections wait in the backlog while a daemon loads its models, and while a service manager
    // restarts it.
    if (!stats)
        return {Health::not_ready, fmt::format("starting or stopping: {}", stats.error().message)};
    return health_of(*stats);
}

}  // namespace gloved::client
