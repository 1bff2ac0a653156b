#include "kernels/cuda/ladder/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include "kernels/cuda/ladder/rungs.hpp"

namespace gloved::kernels::ladder {
namespace {

using Make = Result<std::unique_ptr<Rung>> (*)(const RungParts&);

/// The order of the table.
constexpr std::size_t kRungs = 9;
constexpr std::array<std::pair<const RungInfo*, Make>, kRungs> kList = {
    {{&kV0, make_v0},
     {&kV1, make_v1},
     {&kV2, make_v2},
     {&kV3, make_v3<8>},
     {&kV3With16Bytes, make_v3<4>},
     {&kV3With64Bytes, make_v3<16>},
     {&kV3With128Bytes, make_v3<32>},
     {&kV4, make_v4},
     {&kV5, make_v5}}};

}  // namespace

std::span<const RungInfo> list_rungs() {
    static const std::array<RungInfo, kRungs> infos = [] {
        std::array<RungInfo, kRungs> copied;
        std::transform(kList.begin(), kList.end(), copied.begin(),
                       [](const auto& listed) { return *listed.first; });
        return copied;
    }();
    return infos;
}

Result<std::unique_ptr<Rung>> make_rung(std::string_view name, const format::Model& model,
                                        std::shared_ptr<const ResidentModel> resident, int device) {
    std::string names;
    for (const auto& [info, make] : kList) {
        if (info->name == name) {
            assert(!info->resident || resident != nullptr);
            return make({model, std::move(resident), device});
        }
        names += fmt::format("{}{}", names.empty() ? "" : ", ", info->name);
    }
    return Error{ErrorCode::unavailable, fmt::format("no rung '{}': there are {}", name, names)};
}

}  // namespace gloved::kernels::ladder
