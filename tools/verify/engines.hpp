// Checks that all engines of this machine give the same answers, bit for bit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// An engine in one configuration.
struct Way {
    std::string name;  ///< «cpu avx2», «cpu avx2 plane», «cuda», «cuda plane»
    /// Error unavailable: not in this build or on this machine, which is a fault only if
    /// `required`.
    std::function<Result<std::unique_ptr<kernels::Engine>>()> make;
    bool required = false;
};

/// Lists the cpu engine once for each instruction set of this processor, best first, then all other
/// engines of this build, cuda on all devices; each without planes and with them. The model must
/// outlive them; each has `threads` threads.
std::vector<Way> all_ways(const format::Model& model, std::size_t threads);

struct EngineChecks {
    std::size_t answers = 1000;
    std::size_t plain = 20;  ///< how many of them the oracle gives too
    std::uint64_t seed = 1;
    std::size_t threads = 1;
    std::string ways = {};       ///< names with commas between; empty: all
    std::string reference = {};  ///< the way to compare others with; empty: the first
};

/// Selects ways by checks.ways and checks.reference, the reference first. Ways that are named are
/// required. Error: bad_request for an unknown name.
Result<std::vector<Way>> choose_ways(std::vector<Way> ways, const EngineChecks& checks);

/// Asks each way the same questions (questions.hpp) in the same batches. Compares the first way's
/// answers with the oracle's and all others with the first way's, by the bits of every row and
/// score. Calls `report` once a way, with the first answers that differ. One engine exists at a
/// time; the first way's answers stay in memory, about 200 bytes each. The values must have passed
/// check_values. Error: interrupted once `stop` is set.
Status check_engines(const format::Model& model, const std::vector<Way>& ways,
                     const EngineChecks& checks, const std::atomic<bool>& stop,
                     const Reporter& report);

}  // namespace gloved::verify
