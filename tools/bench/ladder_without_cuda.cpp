// The ladder in a build without CUDA: only its first rung, which runs on the CPU.
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/cuda/ladder/rungs.hpp"

namespace gloved::kernels::ladder {

std::span<const RungInfo> list_rungs() { return {&kV0, 1}; }

class ResidentModel {};

Result<std::shared_ptr<const ResidentModel>> make_resident_model(const format::Model&, int) {
    return Error{ErrorCode::unavailable, "this build has no CUDA"};
}

Result<std::unique_ptr<Rung>> make_rung(std::string_view name, const format::Model& model,
                                        std::shared_ptr<const ResidentModel> resident, int device) {
    if (name == kV0.name) return make_v0({model, std::move(resident), device});
    return error_with(ErrorCode::unavailable, "rung {} needs a build with CUDA", name);
}

}  // namespace gloved::kernels::ladder
