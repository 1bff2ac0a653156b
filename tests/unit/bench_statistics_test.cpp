// What the tables call median, mean and standard error.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/result.hpp"
#include "tools/bench/measure.hpp"

namespace gloved::tests {
namespace {

using bench::Contender;
using bench::Series;

TEST(Statistics, MeanAndStandardErrorAreThoseOfTheTextbook) {
    // Variance with n - 1: 32 / 7. Its root over the root of 8.
    const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
    EXPECT_DOUBLE_EQ(bench::mean(values), 5);
    ASSERT_TRUE(bench::standard_error(values));
    EXPECT_DOUBLE_EQ(*bench::standard_error(values), std::sqrt(32.0 / 7.0 / 8.0));
    const std::vector<double> same(10, 3.25);
    EXPECT_EQ(bench::standard_error(same), 0.0);
}

TEST(Statistics, OneValueHasNoStandardError) {
    const std::vector<double> one = {7};
    EXPECT_DOUBLE_EQ(bench::mean(one), 7);
    EXPECT_FALSE(bench::standard_error(one));
}

TEST(Statistics, MedianIsTheMiddleWhateverTheOrder) {
    const std::vector<double> odd = {9, 1, 5};
    const std::vector<double> even = {9, 1, 5, 7};
    EXPECT_DOUBLE_EQ(bench::median(odd), 5);
    EXPECT_DOUBLE_EQ(bench::median(even), 6);
}

TEST(Statistics, PercentileIsATimeThatWasMeasured) {
    Series series{"what", 1, {}, {}};
    for (int i = 100; i >= 1; --i) series.ms.push_back(i);
    EXPECT_DOUBLE_EQ(series.percentile(0.99), 99);
    EXPECT_DOUBLE_EQ(series.percentile(1.0), 100);
    EXPECT_DOUBLE_EQ(series.percentile(0.5), 50);
}

TEST(Statistics, WaitIsTheMedianOfDifferencesAndNotTheDifferenceOfMedians) {
    const Series series{"what", 1, {10, 20, 30}, {9, 10, 29}};
    EXPECT_DOUBLE_EQ(series.median_wait_ms(), 1);
}

TEST(Measure, FirstRoundDoesNotCountAndDeviceTimesBelongToTheirRuns) {
    int runs = 0;
    int finished = 0;
    int others = 0;
    const std::vector<Contender> contenders = {
        {"with a device",
         1,
         {},
         [&]() -> Status { return ++runs, Status(); },
         [&] { return finished * 10.0; },
         [&] { finished = runs; }},
        {"without", 1, {}, [&]() -> Status { return ++others, Status(); }, {}}};
    const auto all = bench::measure(contenders, 3, [] { return false; });
    ASSERT_TRUE(all);
    EXPECT_EQ(runs, 4);
    EXPECT_EQ(others, 4);
    EXPECT_EQ((*all)[0].ms.size(), 3U);
    EXPECT_EQ((*all)[0].device_ms, (std::vector<double>{20, 30, 40}));
    EXPECT_EQ((*all)[1].ms.size(), 3U);
    EXPECT_TRUE((*all)[1].device_ms.empty());
}

}  // namespace
}  // namespace gloved::tests
