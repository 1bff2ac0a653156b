// What was measured of the distances, as a table.
#include "tools/bench/distmat_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gloved::tests {
namespace {

using bench::DistmatFigures;
using bench::DistmatSize;
using Row = std::vector<std::string>;

std::vector<DistmatSize> two_sizes() {
    const DistmatFigures base{"cpu", true, {300, 500}, {}};
    const DistmatFigures fast{"cuda", false, {2}, 9.5};
    return {{1000, 100, {base, fast}}, {2000, 100, {fast}}};
}

TEST(DistmatTable, HasALineForEverySizeAndRung) {
    const auto rows = bench::distmat_table(two_sizes()).rows();
    ASSERT_EQ(rows.size(), 4U);
    EXPECT_EQ(rows[0], (Row{"rows", "dim", "engine", "runs", "ms mean", "+-", "GFLOP/s", "x cpu",
                            "ms to host"}));
    // 3 * 1000 * 1000 * 100 operations; the standard error of 300 and 500 is 100.
    EXPECT_EQ(rows[1], (Row{"1000", "100", "cpu", "2", "400.0", "100.0", "0.750", "1.000", ""}));
    EXPECT_EQ(rows[2], (Row{"1000", "100", "cuda", "1", "2.000", "", "150.0", "200.0", "9.500"}));
    // Another size's cpu is nothing to compare with.
    EXPECT_EQ(rows[3], (Row{"2000", "100", "cuda", "1", "2.000", "", "600.0", "", "9.500"}));
}

}  // namespace
}  // namespace gloved::tests
