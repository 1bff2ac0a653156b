#include "client/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gloved::client {
namespace {

/// The value of a line «key TAB value»; empty where there is none.
std::string_view value_of(const Reply& stats, std::string_view key) {
    for (const std::string_view line : stats.lines) {
        if (line.substr(0, line.find('\t')) == key && line.size() > key.size()) return line.substr(key.size() + 1);
    }
    return {};
}

}  // namespace

HealthReport health_of(const Reply& stats) {
    if (!stats.status.ok) {
        return {Health::troubled, fmt::format("degraded: {}: {}", stats.status.code, stats.status.message)};
    }
    const std::string_view health = value_of(stats, "health");
    if (health.empty())
        return {Health::troubled, "degraded: the daemon does not say how it is; it is older than this client"};
    std::string line =
        fmt::format("{}: {}: {} words x {}, engine {} ({})", health, value_of(stats, "model"), value_of(stats, "rows"),
                    value_of(stats, "dim"), value_of(stats, "engine"), value_of(stats, "engine_description"));
    if (const auto models = value_of(stats, "models"); models != "1") line += fmt::format("; {} models in all", models);
    if (const auto missing = value_of(stats, "missing_engines"); !missing.empty())
        line += fmt::format("; not {}", missing);
    if (const auto reason = value_of(stats, "health_reason"); !reason.empty()) line += fmt::format("; {}", reason);
    return {health == "serving" ? Health::serving : Health::troubled, std::move(line)};
}

HealthReport ask_health(const PeerSettings& peer) {
    auto connection = Connection::open(peer.paths, peer.timeout);
    if (!connection) {
        // A full backlog: somebody is there, and takes no connections.
        const bool there = connection.error().code == ErrorCode::timeout;
        return {there ? Health::troubled : Health::unreachable,
                fmt::format("{}: {}", there ? "starting or stuck" : "unreachable", connection.error().message)};
    }
    const auto stats = connection->ask("STATS");
    // While a daemon loads its models, connections wait in the backlog; so they do where a service manager starts it anew.
    if (!stats) return {Health::troubled, fmt::format("starting or stopping: {}", stats.error().message)};
    return health_of(*stats);
}

}  // namespace gloved::client
