// Checks that a model's planes file is right, so that searches that skip rows by it miss no answer.
#pragma once

#include <atomic>
#include <cstddef>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// Checks the planes file, if there is one, in one pass over it and the vectors with `threads`
/// threads. Calls `report` with the outcome of each check: of the checksum; of the padding, which
/// is zero; and of each row's projection and residual, which must follow from its vector and codes,
/// rounded to the safe side and no further than FORMAT.md allows. Does not check that the codes are
/// those that gloved-convert would choose: any codes are valid. Error: interrupted, once `stop` is
/// true.
Status check_planes(const format::Model& model, std::size_t threads, const std::atomic<bool>& stop,
                    const Reporter& report);

}  // namespace gloved::verify
