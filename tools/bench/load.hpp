// gloved-bench --load: asks a running daemon as much as it can answer, or at a fixed rate.
#pragma once

#include "common/result.hpp"
#include "tools/bench/load_settings.hpp"

namespace gloved::bench {

/// Runs the load and prints its tables on stdout: answers per second, latencies, and the processor
/// time of this process and of the daemon. Errors: internal, if an answer is wrong; it is printed
/// with its request and the expected answer; mismatch, if --model is not what the daemon serves;
/// unavailable, if the daemon answers nothing or closes a connection; those of connect_to;
/// interrupted.
Status print_load(const LoadSettings& settings);

}  // namespace gloved::bench
