// plane_multiply's shared memory, by its launch's own arithmetic: whatever a kernel reads lies in
// it.
#include "kernels/cuda/plane_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace gloved::tests {
namespace {

using namespace kernels::cuda;

constexpr std::uint32_t kMaxDim = kMaxProducts * kDigitStep;
constexpr std::uint32_t kWarp = 32;

/// The byte behind the last that a warp reads of a group whose first byte is `group`. Its lane l
/// reads two words of row l / 4 and the row 8 behind it, in each instruction's step l % 4.
std::uint32_t end_of_reading(std::uint32_t group, std::uint32_t products) {
    std::uint32_t end = 0;
    for (std::uint32_t m = 0; m < products; ++m) {
        for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
            const std::uint32_t step = m * kStepsOfProduct + lane % 4;
            const std::uint32_t row = lane / 4 + 8;
            end = std::max(end, group + step * 64 + row * 4 + 4);
        }
    }
    return end;
}

TEST(PlaneTiles, HoldWhateverIsReadOfThemForEveryDim) {
    for (std::uint32_t dim = 1; dim <= kMaxDim; ++dim) {
        const std::uint32_t steps = (dim + 7) / 8;
        const std::uint32_t products = products_for(steps);
        ASSERT_GE(products * 32, dim);
        for (const std::uint32_t groups : {4U, 8U, 16U}) {
            const std::uint32_t bytes = tile_bytes(steps, products, groups);
            ASSERT_EQ(bytes % 16, 0U) << "the second tile is aligned as the first";
            // No tile's reading ends in the other: a copy may be under way there.
            for (std::uint32_t g = 0; g < groups; ++g) {
                const std::uint32_t group = g * tile_group_bytes(steps);
                ASSERT_LE(end_of_reading(group, products), bytes)
                    << "dim " << dim << ", group " << g;
                ASSERT_LE(group + (steps + 1) * 64, bytes) << "dim " << dim << ", group " << g;
            }
        }
    }
}

TEST(PlaneTiles, HaveTheNextLargerKernel) {
    std::set<std::uint32_t> used;
    for (std::uint32_t dim = 1; dim <= kMaxDim; ++dim) {
        const std::uint32_t products = products_for((dim + 7) / 8);
        used.insert(products);
        for (const std::uint32_t other : kProductCounts) {
            if (other < products) {
                EXPECT_LT(other * 32, dim);
            }
        }
    }
    EXPECT_EQ(std::vector<std::uint32_t>(used.begin(), used.end()),
              std::vector<std::uint32_t>(std::begin(kProductCounts), std::end(kProductCounts)));
    EXPECT_EQ(products_for(kMaxDim / 8), kMaxProducts);
    EXPECT_EQ(products_for(kMaxDim / 8 + 1), 0U);
}

}  // namespace
}  // namespace gloved::tests
