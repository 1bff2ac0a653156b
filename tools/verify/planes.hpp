// Checks that a model's planes file is sound, so that searches may rely on it.
#pragma once

#include <atomic>
#include <cstddef>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// Checks the planes file, if there is one, in one pass over it and the vectors with `threads`
/// threads. Calls `report` with each outcome: the checksum; that padding is zero as in FORMAT.md;
/// and that each row's projection and residual follow from its vector and codes, rounded to the
/// safe side and no further than FORMAT.md allows. Does not check that the codes are those of
/// gloved-convert: any codes are valid. Error: interrupted once `stop` is set.
Status check_planes(const format::Model& model, std::size_t threads, const std::atomic<bool>& stop,
                    const Reporter& report);

}  // namespace gloved::verify
