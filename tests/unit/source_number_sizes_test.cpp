#include "tools/source/number_sizes.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gloved::source {
namespace {

constexpr std::size_t kDim = 64;

const char* bytes_of(const std::vector<float>& numbers) {
    return reinterpret_cast<const char*>(numbers.data());
}
bool usual(const NumberSizes& sizes, const std::vector<float>& numbers, std::size_t few = 8) {
    EXPECT_EQ(sizes.some_are_usual(bytes_of(numbers), numbers.size()),
              sizes.all_are_usual(bytes_of(numbers), numbers.size(), few));
    return sizes.all_are_usual(bytes_of(numbers), numbers.size(), few);
}
double bits(const NumberSizes& sizes, const std::vector<float>& numbers) {
    return sizes.bits_over_random(bytes_of(numbers), numbers.size());
}
/// Numbers of all sizes, as bytes in a wrong place are.
std::vector<float> garbage() {
    std::vector<float> numbers;
    for (std::uint32_t i = 0; i < kDim; ++i)
        numbers.push_back(std::bit_cast<float>((2 * i << 24) | 0x0012'3456U));
    return numbers;
}

TEST(NumberSizes, AreUsualNearOneAndZeroAtFirst) {
    const NumberSizes sizes;
    for (const float number : {0.0F, -0.0F, 1e-12F, -0.3F, 1.0F, 1e6F})
        EXPECT_TRUE(usual(sizes, std::vector<float>(kDim, number))) << number;
    for (const float number : {1e-14F, 1e-40F, 1e8F, -1e30F, INFINITY, NAN})
        EXPECT_FALSE(usual(sizes, std::vector<float>(kDim, number))) << number;
    EXPECT_FALSE(usual(sizes, garbage()));
}

TEST(NumberSizes, AreLearned) {
    NumberSizes sizes;
    const std::vector<float> counts(kDim, 3e8F);
    sizes.learn(bytes_of(counts), kDim);
    EXPECT_TRUE(usual(sizes, counts));
    // What is no longer read is forgotten.
    for (int i = 0; i < 1000; ++i) sizes.learn(bytes_of(counts), kDim);
    EXPECT_FALSE(usual(sizes, std::vector<float>(kDim, 0.1F)));
    EXPECT_TRUE(sizes.tell_at_a_glance());
}

TEST(NumberSizes, ThatNoSoundNumberHasAreNeverLearned) {
    NumberSizes sizes;
    for (const float number : {NAN, INFINITY, 1e-40F}) {
        const std::vector<float> numbers(kDim, number);
        for (int i = 0; i < 100; ++i) sizes.learn(bytes_of(numbers), kDim);
        EXPECT_FALSE(usual(sizes, numbers)) << number;
        EXPECT_GT(bits(sizes, numbers), 0) << number;
    }
}

TEST(NumberSizes, MayBeUnusualInFewNumbers) {
    const NumberSizes sizes;
    std::vector<float> numbers(kDim, 0.1F);
    numbers[9] = 1e-14F;
    EXPECT_TRUE(sizes.all_are_usual(bytes_of(numbers), kDim, 64));
    // Zeros are as usual in a wrong place: a share of the others is looked at.
    std::vector<float> zeros(kDim, 0.0F);
    zeros[9] = 1e-14F;
    EXPECT_FALSE(sizes.all_are_usual(bytes_of(zeros), kDim, 8));
    // Its highest byte is a blank.
    numbers[9] = std::bit_cast<float>(0x2000'0001U);
    EXPECT_FALSE(sizes.all_are_usual(bytes_of(numbers), kDim, 8));
}

TEST(NumberSizes, TellNothingAtAGlanceWhereAllOccur) {
    NumberSizes sizes;
    const std::vector<float> all = garbage();
    EXPECT_TRUE(sizes.tell_at_a_glance());
    sizes.learn(bytes_of(all), 16);
    sizes.learn(bytes_of(all) + 16 * sizeof(float), 16);
    sizes.learn(bytes_of(all) + 48 * sizeof(float), 16);
    EXPECT_FALSE(sizes.tell_at_a_glance());
}

TEST(NumberSizes, NeedFewBitsWhereTheyOccurAgain) {
    const NumberSizes sizes;
    EXPECT_LT(bits(sizes, std::vector<float>(kDim, 0.1F)), 0);
    EXPECT_LT(bits(sizes, std::vector<float>(kDim, 1e9F)), 0);  // of its own kind
    EXPECT_GT(bits(sizes, garbage()), 2.0 * kDim);
}

}  // namespace
}  // namespace gloved::source
