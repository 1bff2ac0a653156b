// A gloved from outside: how soon it answers, how fast, and what memory it takes.
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
    std::string directory;  ///< where its socket and log may be made
    std::string engine;     ///< as for the daemon's --engine
    unsigned threads = 0;   ///< as for the daemon's --threads; not 0
    std::size_t k = 10;
    std::size_t rounds = 0;
    std::size_t singles = 0;  ///< queries timed one at a time, at least
    std::uint64_t seed = 1;
};

/// The pipelined queries that throughput is measured with.
inline constexpr std::size_t kPipelined = 64;
/// The queries after which memory is looked at, and how many of them ask for kLargeK words.
inline constexpr std::size_t kQueriesBeforeMemory = 100;
inline constexpr std::size_t kLargeQueries = 4;
inline constexpr std::size_t kLargeK = 10000;

struct DaemonFigures {
    Series fresh_read;    ///< mapping the values file anew and reading all of it, page faults
                          ///< included
    Series listening;     ///< from exec to the line of its log that says that it listens: all is
                          ///< loaded then
    Series first_answer;  ///< from exec to the first answer, for a client that was there first
    Series single;        ///< a query's round trip, one at a time
    Series inside;  ///< what the daemon says that each of these took: from the request's arrival to
                    ///< its answer
    /// A socket pair with nothing behind it but a thread that waits as long as the daemon said, and
    /// answers: what this machine makes of such round trips.
    Series echo;
    Series pipelined;  ///< kPipelined queries sent at once, until the last answer
    /// RssAnon + RssShmem after kQueriesBeforeMemory queries: pages of the mapped files are not
    /// among them.
    std::uint64_t own_bytes = 0;
};

/// Starts `program` on `model`'s directory several times, round by round with the fresh read, then
/// once more for the other figures; ends it with SIGTERM each time. No daemon outlives the call.
/// Errors: unavailable (it cannot be started, ends by itself or does not answer in time; the
/// message has the end of its log), what it answers with ERR, or interrupted.
Result<DaemonFigures> measure_daemon(const format::Model& model, const DaemonOptions& options,
                                     const std::function<bool()>& interrupted);

}  // namespace gloved::bench
