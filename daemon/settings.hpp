// The settings of the daemon, from its command line and configuration file.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/engine.hpp"

namespace gloved::daemon {

using Clock = std::chrono::steady_clock;

/// Limits on what peers can make the daemon hold or wait for.
struct Limits {
    std::size_t max_k = 65536;
    std::size_t max_connections = 10000;
    std::size_t uid_share = 75;       ///< how many of a hundred connections one user may hold
    std::size_t queue_length = 8192;  ///< requests that wait for an engine; more are answered busy
    std::chrono::milliseconds request_timeout{10000};  ///< from reading a request to starting on it
    std::chrono::milliseconds line_timeout{30000};     ///< from a line's first byte to its end
    std::chrono::milliseconds idle_timeout{3600000};   ///< between requests; 0: for ever
    std::chrono::milliseconds write_timeout{30000};  ///< for a peer to take the next 64 KiB of its
                                                     ///< answers
    std::chrono::milliseconds drain_timeout{10000};  ///< from SIGTERM to cutting what is left
};

enum class Pin { automatic, on, off };

/// A model to serve, and what it is called.
struct ModelSetting {
    std::string name;
    std::string path;
};

struct Settings {
    std::vector<ModelSetting> models;  ///< the first is the default
    std::string socket_path;
    std::optional<kernels::EngineKind> engine;  ///< nothing: the best that runs here
    std::string simd;
    unsigned threads = 0;
    Pin pin = Pin::automatic;
    bool planes = true;
    std::uint64_t gpu_memory_bytes = 0;  ///< 0: what is free
    std::vector<int> devices = {0};
    bool all_devices = false;
    double batch_ms = 0;  ///< 0: twice what a single query takes, a millisecond at least
    bool access_log = false;
    Limits limits;
    /// Engines that would be preferred but cannot run here, with the reasons; empty where one was
    /// asked for by name.
    std::string missing_engines;
};

}  // namespace gloved::daemon
