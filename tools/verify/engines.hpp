// Whether every engine of this machine gives the same answers.
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

/// One way to have queries answered.
struct Way {
    std::string name;  ///< «cpu avx2», «cuda»
    /// Error unavailable: this build or machine has no such way, and that is no fault.
    std::function<Result<std::unique_ptr<kernels::Engine>>()> make;
};

/// The cpu engine once for each instruction set that this processor has, best first, then every other engine that this
/// build knows of, cuda on all devices. The model must outlive them; each has `threads` threads.
std::vector<Way> all_ways(const format::Model& model, std::size_t threads);

struct EngineChecks {
    std::size_t queries = 1000;
    std::size_t reference = 20;  ///< how many of them the plain float64 search answers too
    std::uint64_t seed = 1;
    std::size_t threads = 1;
};

/// Asks each way the same queries, made of random words: k = 1, 10 and 100, one word or several with coefficients, raw
/// and unit, all kinds of filters, a few 3CosMul and counts, alone and in batches. The first way's answers are compared
/// with those of a plain float64 search, and those of all others with the first way's, by the bits of every row and
/// score. Tells `report` one outcome a way. One engine exists at a time. The values must be sound (check_values).
/// Error: interrupted once `stop` is set.
Status check_engines(const format::Model& model, const std::vector<Way>& ways, const EngineChecks& checks,
                     const std::atomic<bool>& stop, const Reporter& report);

}  // namespace gloved::verify
