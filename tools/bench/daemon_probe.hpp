// Measures a gloved process from outside: start, response times and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/bench/measure.hpp"

namespace gloved::bench {

struct DaemonOptions {
    std::string program;    ///< path of a gloved
    std::string directory;  ///< for its socket and log
    std::string engine;     ///< as for the daemon's --engine
    unsigned threads = 0;   ///< as for the daemon's --threads; not 0
    std::size_t k = 10;
    std::size_t rounds = 0;
    std::size_t singles = 0;  ///< least number of queries to time one at a time
    std::uint64_t seed = 1;
};

/// Pipelined queries of a throughput measurement.
inline constexpr std::size_t kPipelined = 64;
/// Queries before the memory measurement, and how many of them ask for kLargeK words.
inline constexpr std::size_t kQueriesBeforeMemory = 100;
inline constexpr std::size_t kLargeQueries = 4;
inline constexpr std::size_t kLargeK = 10000;

struct DaemonFigures {
    Series fresh_read;    ///< mapping and reading the values file, with page faults
    Series listening;     ///< from exec to the log line «listening on», with everything loaded
    Series first_answer;  ///< from exec to the first reply, for a client that waited
    Series single;        ///< round trip of a query, one at a time
    Series inside;        ///< the daemon's own time for the same queries
    /// Round trip over a socket pair to a thread that waits as long as the daemon took: the cost of
    /// round trips on this machine.
    Series echo;
    Series pipelined;  ///< kPipelined queries sent at once, until the last reply
    /// RssAnon + RssShmem after kQueriesBeforeMemory queries: without pages of mapped files.
    std::uint64_t own_bytes = 0;
};

/// Starts `program` on the directory of `model` in every round, in turn with the fresh read, then
/// once more for the other figures. Stops it with SIGTERM each time; no daemon outlives the call.
/// Errors: unavailable if it cannot start, exits by itself or does not answer in time, with the end
/// of its log; its ERR replies; interrupted.
Result<DaemonFigures> measure_daemon(const format::Model& model, const DaemonOptions& options,
                                     const std::function<bool()>& interrupted);

}  // namespace gloved::bench
