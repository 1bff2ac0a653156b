// Every double has the float32 that a processor rounds it to.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "kernels/nearest_float.hpp"

namespace gloved::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

static_assert(nearest_float(1e300) == kInfinity);
static_assert(nearest_float(-1e300) == -kInfinity);
static_assert(nearest_float(std::numeric_limits<double>::infinity()) == kInfinity);
static_assert(nearest_float(0x1.ffffffp127) == kInfinity);
static_assert(nearest_float(0x1.fffffefffffffp127) == kLargest);
static_assert(nearest_float(-0x1.fffffefffffffp127) == -kLargest);
static_assert(nearest_float(double{kLargest}) == kLargest);
static_assert(nearest_float(0.1) == 0.1F);

TEST(NearestFloat, IsWhatTheProcessorRoundsTo) {
    EXPECT_TRUE(std::isnan(nearest_float(std::nan(""))));
    EXPECT_TRUE(std::signbit(nearest_float(-0.0)));
    std::mt19937_64 random(5);
    for (int i = 0; i < 100000; ++i) {
        // Of every size, more of them near the limit.
        const double value = i % 2 == 0
                                 ? std::bit_cast<double>(random())
                                 : std::ldexp(1 + 0x1p-12 * static_cast<double>(random() % 4096),
                                              126 + static_cast<int>(random() % 3));
        if (std::isnan(value)) continue;
        volatile double asked = value;
        const float rounded = static_cast<float>(asked);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(nearest_float(value)),
                  std::bit_cast<std::uint32_t>(rounded))
            << value;
    }
}

}  // namespace
}  // namespace gloved::kernels
