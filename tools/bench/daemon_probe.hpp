// Measures a daemon, a process of gloved, from outside: start, response times and memory. For
// gloved-bench --daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/measure.hpp"

namespace gloved::bench {

/// How to start the daemon and what to ask it.
struct DaemonOptions {
    std::string program;      ///< path of the program gloved
    std::string directory;    ///< where the daemon's socket and log are put
    std::string engine;       ///< as for the daemon's --engine
    unsigned threads = 0;     ///< as for the daemon's --threads; not 0
    std::size_t k = 10;       ///< hits per query
    std::size_t rounds = 0;   ///< how often each figure is measured
    std::size_t singles = 0;  ///< minimum number of queries to time one at a time
    std::uint64_t seed = 1;
};

/// Number of queries sent at once to measure throughput.
inline constexpr std::size_t kPipelined = 64;
/// Number of queries before memory is measured; kLargeQueries of them ask for kLargeK words.
inline constexpr std::size_t kQueriesBeforeMemory = 100;
inline constexpr std::size_t kLargeQueries = 4;
inline constexpr std::size_t kLargeK = 10000;

/// What measure_daemon measured.
struct DaemonFigures {
    Series fresh_read;    ///< mapping and reading the values file, with page faults
    Series listening;     ///< from exec to the log line «listening on», with everything loaded
    Series first_answer;  ///< from exec to the first reply, for a client that waited
    Series single;        ///< round trip of a query, one at a time
    Series inside;        ///< the daemon's own time for the same queries
    /// Round trip to a thread that waits as long as the daemon's own time: shows what a round trip
    /// costs on this machine.
    Series echo;
    Series pipelined;  ///< from sending kPipelined queries at once to the last reply
    /// The daemon's memory after kQueriesBeforeMemory queries, without pages of mapped files
    /// (RssAnon + RssShmem).
    std::uint64_t own_bytes = 0;
};

/// Starts a daemon for the model in every round, in turn with fresh_read, to measure its start.
/// Then starts one more for the other figures. Stops each with SIGTERM; none outlives the call.
/// Errors: unavailable, with the end of the daemon's log, if it cannot start, exits by itself or
/// does not answer in time; those of its ERR replies; interrupted, after a signal.
Result<DaemonFigures> measure_daemon(const format::Model& model, const DaemonOptions& options);

}  // namespace gloved::bench
