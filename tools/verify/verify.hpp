// Verifies a model's files, the answers of engines on it, and that it agrees with its download: all
// of gloved-verify's work except its command line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device_choice.hpp"
#include "common/result.hpp"
#include "tools/verify/audit.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/engines.hpp"
#include "tools/verify/neighbors.hpp"

namespace gloved::verify {

/// What to verify.
struct VerifyOptions {
    std::string model_dir;
    /// The downloads to compare with, in the order in which they were converted; «-» for stdin.
    std::vector<std::string> sources;
    std::string words;     ///< SourceOptions::words; empty: the file that the report names
    std::string tensor;    ///< SourceOptions::tensor; empty: as the report says
    bool quick = false;    ///< only what the daemon checks when it opens a model
    bool engines = false;  ///< also check every engine's answers; not with `quick`
    EngineChecks asked;    ///< how to check engines; its `threads` is ignored
    NeighborsChecks neighbors;
    AuditChecks audit;        ///< answers to check; not with `quick`
    DeviceChoice devices;     ///< of the cuda engine
    std::size_t threads = 1;  ///< of each check
};

/// Facts of the model; zero if it cannot be opened.
struct ModelFacts {
    std::uint64_t rows = 0;
    std::size_t dim = 0;
    std::uint64_t generation = 0;
    /// Shape (dim): smallest and largest value of each dimension. Empty if the values were not
    /// read.
    std::vector<float> minimum;
    std::vector<float> maximum;
};

/// Checks options.model_dir and calls `report` with each outcome, on the calling thread and always
/// in the same order. Continues after a fault, unless the model cannot be opened. With `engines`,
/// every engine answers questions (engines.hpp), unless a check of the values fails. With sources,
/// compares each key, each bit of each number and each rank, under the rules in the model's
/// report.json (without one: the first of several lines with the same key counts). With answers to
/// audit, answers them again (audit.hpp), unless a check of the values fails. Changes nothing on
/// disk. Error: interrupted once `stop` is set.
Result<ModelFacts> verify(const VerifyOptions& options, const std::atomic<bool>& stop,
                          const Reporter& report);

}  // namespace gloved::verify
