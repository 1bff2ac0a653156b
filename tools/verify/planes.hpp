// Whether a search may believe a model's planes file.
#pragma once

#include <atomic>
#include <cstddef>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {

/// Checks a planes file where there is one, in one pass over it and the vectors, by `threads`
/// threads, and tells `report` each outcome: its checksum; that all is zero that FORMAT.md has
/// zero; and, for each row, that what is stored of it is what its vector and its codes give,
/// rounded to the safe side and no further than FORMAT.md allows. Not that the codes are those
/// which gloved-convert chooses: any are right. Error: interrupted once `stop` is set.
Status check_planes(const format::Model& model, std::size_t threads, const std::atomic<bool>& stop,
                    const Reporter& report);

}  // namespace gloved::verify
