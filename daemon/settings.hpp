// The daemon's settings; options.hpp reads them from its command line and configuration file.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/device_choice.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"

namespace gloved::daemon {

using Clock = std::chrono::steady_clock;

/// Limits on the memory and time that clients can make the daemon spend.
struct Limits {
    std::size_t max_k = 65536;  ///< maximum number of hits that a request may ask for
    std::size_t max_connections = 10000;
    std::size_t uid_share = 75;        ///< per cent of max_connections that one user may hold
    std::size_t queue_length = 32768;  ///< requests in one engine's queue; further ones get ERR
                                       ///< busy
    std::chrono::milliseconds request_timeout{10000};  ///< from reading a request to starting on it
    std::chrono::milliseconds line_timeout{30000};     ///< from a line's first byte to its end
    std::chrono::milliseconds idle_timeout{3600000};   ///< between requests; 0: for ever
    std::chrono::milliseconds write_timeout{30000};  ///< for a peer to take the next 64 KiB of its
                                                     ///< answers
    std::chrono::milliseconds drain_timeout{10000};  ///< from SIGTERM to cutting what is left
};

/// Whether a model's files are locked in memory. `automatic`: if the system allows it, after the
/// start; `on`: before serving, and it is an error if the system refuses.
enum class Pin { automatic, on, off };

/// Whether a cpu engine that gets batches makes a fine plane for them. `automatic`: if memory has
/// room for that and a reload.
enum class FinePlane { automatic, on, off };

/// Whether a model or a list may be called so.
inline bool is_name(std::string_view name) {
    constexpr std::string_view kOthers = "._-";
    return !name.empty() && std::ranges::all_of(name, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kOthers.find(c) != std::string_view::npos;
    });
}

/// A file with a word a line, and what requests call it.
struct ListSetting {
    std::string name;
    std::string path;
    bool is_of_directory = false;  ///< of Settings::lists_directory
};

/// A model to serve, what it is called, and its lists.
struct ModelSetting {
    std::string name;
    std::string path;
    std::vector<ListSetting> lists = {};
};

/// How the words of requests are found.
struct LookUpRules {
    wire::Unknown unknown = wire::Unknown::error;
    wire::WordCase word_case = wire::WordCase::exact;
    /// Whether every word has to be in the model as it stands.
    bool are_strict() const {
        return unknown == wire::Unknown::error && word_case == wire::WordCase::exact;
    }
};

/// All settings. Those without a comment are the options of the same names in `gloved --help`.
struct Settings {
    std::vector<ModelSetting> models;  ///< the first is the default
    std::string lists_directory;       ///< --lists; empty: none
    std::string socket_path;
    std::optional<kernels::EngineKind> engine;  ///< nullopt: the best that runs on this machine
    std::string simd;         ///< instruction set of the cpu engine; empty: the best
    unsigned threads = 0;     ///< of the cpu engine; 0: one per processor
    unsigned io_threads = 0;  ///< that run sessions; at least 1 once the options are read
    Pin pin = Pin::automatic;
    bool planes = true;  ///< whether engines use planes
    FinePlane fine_plane = FinePlane::automatic;
    bool neighbors = true;               ///< whether to answer from neighbors files
    std::uint64_t gpu_memory_bytes = 0;  ///< limit per GPU; 0: what is free
    std::uint64_t rank_cache_bytes = std::uint64_t{64} << 20;
    DeviceChoice devices = {};                            ///< the GPUs to use
    kernels::Spread spread = kernels::Spread::automatic;  ///< how they share the work
    LookUpRules look_up;                                  ///< for requests that choose none
    double batch_ms = 0;       ///< budget of a batch; 0: a multiple of a single query's time
    bool access_log = false;   ///< log every answer
    bool stop_at_eof = false;  ///< stop when standard input ends
    Limits limits;
};

}  // namespace gloved::daemon
