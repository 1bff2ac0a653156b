// What each rung's file gives to the list in ladder.cpp: what it is, and how it is made.
#pragma once

#include <memory>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/ladder/ladder.hpp"

namespace gloved::kernels::ladder {

/// What a rung is made from.
struct RungParts {
    const format::Model& model;
    std::shared_ptr<const ResidentModel> resident;  ///< may be null for rungs whose info says that
                                                    ///< nothing is resident
    int device = 0;
};

extern const RungInfo kV0;
extern const RungInfo kV1;
extern const RungInfo kV2;
extern const RungInfo kV3;
extern const RungInfo kV3With16Bytes;
extern const RungInfo kV3With64Bytes;
extern const RungInfo kV3With128Bytes;
extern const RungInfo kV4;
extern const RungInfo kV5;

Result<std::unique_ptr<Rung>> make_v0(const RungParts& parts);
Result<std::unique_ptr<Rung>> make_v1(const RungParts& parts);
Result<std::unique_ptr<Rung>> make_v2(const RungParts& parts);
/// v3 and its discarded variants, by the threads that share a row: 4, 8, 16 or 32.
template <unsigned kThreadsARow>
Result<std::unique_ptr<Rung>> make_v3(const RungParts& parts);
Result<std::unique_ptr<Rung>> make_v4(const RungParts& parts);
Result<std::unique_ptr<Rung>> make_v5(const RungParts& parts);

}  // namespace gloved::kernels::ladder
