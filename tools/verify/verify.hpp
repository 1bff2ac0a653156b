// Whether a model is what it says it is, and what its download said.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/engines.hpp"

namespace gloved::verify {

struct VerifyOptions {
    std::string model_dir;
    std::string source;    ///< the download to compare with; «-» for stdin; empty for none
    bool quick = false;    ///< only what a daemon checks when it opens a model
    bool engines = false;  ///< ask every engine too; not with `quick`
    EngineChecks asked;    ///< how, but for the threads
    std::size_t threads = 1;
};

/// The model, as far as it could be opened.
struct ModelFacts {
    std::uint64_t rows = 0;
    std::size_t dim = 0;
    std::uint64_t generation = 0;
    /// float32, shape (dim): the range of every dimension, see MinMax. Empty where the values were
    /// not looked at.
    std::vector<float> minimum;
    std::vector<float> maximum;
};

/// Checks options.model_dir and tells `report` each outcome, on the calling thread and in an order
/// that is always the same. A fault in one check does not keep the others from being made, unless
/// the model cannot be opened at all. With `engines`, every engine answers questions (see
/// engines.hpp), unless a check of the values has failed. With a source, each key, each bit of each
/// number and each rank is compared, under the rules that the model's report.json names (without
/// one: the first of several lines with one key counts). Nothing is changed on disk. Error:
/// interrupted once `stop` is set.
Result<ModelFacts> verify(const VerifyOptions& options, const std::atomic<bool>& stop,
                          const Reporter& report);

}  // namespace gloved::verify
