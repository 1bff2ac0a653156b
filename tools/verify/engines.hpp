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
    std::string name;  ///< «cpu avx2», «cpu avx2 plane», «cuda», «cuda plane»
    /// Error unavailable: this build or machine has no such way, and that is no fault, unless it is
    /// `required`.
    std::function<Result<std::unique_ptr<kernels::Engine>>()> make;
    bool required = false;
};

/// The cpu engine once for each instruction set that this processor has, best first, then every
/// other engine that this build knows of, cuda on all devices: each without planes and with them.
/// The model must outlive them; each has `threads` threads.
std::vector<Way> all_ways(const format::Model& model, std::size_t threads);

struct EngineChecks {
    std::size_t answers = 1000;
    std::size_t plain = 20;  ///< how many of them the plain float64 search gives too
    std::uint64_t seed = 1;
    std::size_t threads = 1;
    std::string ways = {};       ///< names with commas between; empty: all
    std::string reference = {};  ///< the way that others are compared with; empty: the first
};

/// Those of `ways` that are wanted, the reference first; what was named is required. Error:
/// bad_request, a name that is none.
Result<std::vector<Way>> choose_ways(std::vector<Way> ways, const EngineChecks& checks);

/// Asks each way the same questions (questions.hpp), in the same batches. The first way's answers
/// are compared with those of a plain float64 search, and those of all others with the first way's,
/// by the bits of every row and score. Tells `report` one outcome a way, with the first answers
/// that differ. One engine exists at a time; the first way's answers stay in memory, about 200
/// bytes each. The values must be sound (check_values). Error: interrupted once `stop` is set.
Status check_engines(const format::Model& model, const std::vector<Way>& ways,
                     const EngineChecks& checks, const std::atomic<bool>& stop,
                     const Reporter& report);

}  // namespace gloved::verify
