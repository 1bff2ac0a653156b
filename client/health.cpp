#include "client/health.hpp"

#include <fmt/format.h>

#include <string_view>

namespace gloved::client {

HealthReport health_of(const Reply& stats) {
    if (!stats.status.ok) {
        return {Health::troubled,
                fmt::format("degraded: {}: {}", stats.status.code, stats.status.message)};
    }
    const auto value = [&](std::string_view key) { return value_of(stats, key).value_or(""); };
    const std::string_view health = value("health");
    if (health.empty())
        return {Health::troubled,
                "degraded: the daemon does not say how it is; it is older than this client"};
    std::string line =
        fmt::format("{}: {}: {} words x {}, engine {} ({})", health, value("model"), value("rows"),
                    value("dim"), value("engine"), value("engine_description"));
    if (const auto models = value("models"); models != "1")
        line += fmt::format("; {} models in all", models);
    if (const auto missing = value("missing_engines"); !missing.empty())
        line += fmt::format("; not {}", missing);
    if (const auto reason = value("health_reason"); !reason.empty())
        line += fmt::format("; {}", reason);
    return {health == "serving" ? Health::serving : Health::troubled, std::move(line)};
}

HealthReport ask_health(const PeerSettings& peer) {
    auto connection = Connection::open(peer.paths, peer.timeout);
    if (!connection) {
        // A full backlog: somebody is there, and takes no connections.
        const bool there = connection.error().code == ErrorCode::timeout;
        return {there ? Health::troubled : Health::unreachable,
                fmt::format("{}: {}", there ? "starting or stuck" : "unreachable",
                            connection.error().message)};
    }
    const auto stats = connection->ask("STATS");
    // While a daemon loads its models, connections wait in the backlog; so they do where a service
    // manager starts it anew.
    if (!stats)
        return {Health::troubled, fmt::format("starting or stopping: {}", stats.error().message)};
    return health_of(*stats);
}

}  // namespace gloved::client
