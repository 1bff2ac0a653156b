// Checks that all engines of this machine give the same answers, bit for bit, for gloved-verify.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/device_choice.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/oracle.hpp"

namespace gloved::verify {

/// An engine in one configuration, one way to get answers.
struct Way {
    std::string name;  ///< «cpu avx2», «cpu avx2 plane», «cuda», «cuda plane»,
                       ///< «cuda mma plane», «cuda rows plane», «cuda one plane»
    /// Makes the engine. The error `unavailable` means that this build does not have it or this
    /// machine cannot run it.
    std::function<Result<std::unique_ptr<kernels::Engine>>()> make;
    bool required = false;  ///< whether `unavailable` is a fault
};

/// Lists the cpu engine once for each instruction set of this processor, best first, then the other
/// engines of this build; cuda uses `devices`. Each is listed without planes and with planes, and
/// has `threads` threads. If there are several devices, «rows» is the engine in which each holds a
/// part of the rows, and «one» the engine on the first of them. All have room for lists. The model
/// must outlive all of them.
std::vector<Way> all_ways(const format::Model& model, std::size_t threads,
                          const DeviceChoice& devices = {.numbers = {}, .all = true});

/// How to check engines.
struct EngineChecks {
    std::size_t answers = 1000;  ///< number of questions for each way
    std::size_t plain = 20;      ///< how many of these the oracle answers too
    std::uint64_t seed = 1;      ///< of the questions
    std::size_t threads = 1;     ///< of each engine
    std::string ways = {};       ///< names of ways, separated by commas; empty: all
    std::string reference = {};  ///< the way with which others are compared; empty: the first
    Lists lists = {};            ///< those that questions name
};

/// Selects the ways that checks.ways names, all if it is empty; checks.reference, if given, is the
/// first. Those that the two name become `required`. Error: bad_request, for an unknown name.
Result<std::vector<Way>> choose_ways(std::vector<Way> ways, const EngineChecks& checks);

/// Asks each way the same questions (questions.hpp) in the same batches. Compares the first way's
/// answers with the oracle's, and those of all others with the first way's, by the bits of every
/// row and score. Calls `report` once per way, with the first answers that differ. One engine
/// exists at a time; the first way's answers stay in memory, about 200 bytes each. The model must
/// have passed check_values. Error: interrupted, once `stop` is true.
Status check_engines(const format::Model& model, const std::vector<Way>& ways,
                     const EngineChecks& checks, const std::atomic<bool>& stop,
                     const Reporter& report);

}  // namespace gloved::verify
