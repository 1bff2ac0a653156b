// OpenLoop: when each request of an open loop is due.
#pragma once

#include <cstdint>

namespace gloved::bench {

/// Spreads `rate` requests a second evenly over time and over `connections`. Request number i of
/// all goes to connection i % connections and is due i / rate seconds after the start, whatever
/// the daemon does. A latency that counts from then includes the time that a request could not be
/// sent because earlier ones were slow.
class OpenLoop {
  public:
    OpenLoop(double rate, std::uint64_t connections)
        : interval_ns_(1e9 / rate), connections_(connections) {}

    /// When request number `index` of `connection` is due, in nanoseconds after the start.
    std::int64_t due_ns(std::uint64_t connection, std::uint64_t index) const {
        const std::uint64_t number = index * connections_ + connection;
        return static_cast<std::int64_t>(static_cast<double>(number) * interval_ns_);
    }

    /// How many requests of `connection` are due at `now_ns` after the start.
    std::uint64_t count_due(std::uint64_t connection, std::int64_t now_ns) const {
        if (now_ns < 0) return 0;
        const double passed = static_cast<double>(now_ns) / interval_ns_;
        const auto all = static_cast<std::uint64_t>(passed);
        std::uint64_t count = all < connection ? 0 : (all - connection) / connections_ + 1;
        // Division and multiplication round differently: `due_ns` decides.
        while (count > 0 && due_ns(connection, count - 1) > now_ns) --count;
        while (due_ns(connection, count) <= now_ns) ++count;
        return count;
    }

  private:
    double interval_ns_;
    std::uint64_t connections_;
};

}  // namespace gloved::bench
