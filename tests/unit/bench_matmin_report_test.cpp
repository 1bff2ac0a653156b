// What was measured of the element-wise minimum, as a table.
#include "tools/bench/matmin_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gloved::tests {
namespace {

using bench::MatminFigures;
using Row = std::vector<std::string>;

TEST(MatminTable, HoldsComputingAgainAgainstAPlainRead) {
    const MatminFigures cuda{"cuda", 500, 30, 1.5, {1, 3}, 1.6};
    const auto rows = bench::matmin_table(std::vector{cuda}, 250'000'000, 3'600'000'000).rows();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0], (Row{"engine", "reading ms", "MB/s", "transfer ms", "computing ms",
                            "again ms", "+-", "GB/s", "x read"}));
    EXPECT_EQ(rows[1],
              (Row{"cuda", "500.0", "500", "30.00", "1.500", "2.000", "1.000", "1800", "1.250"}));
}

TEST(MatminTable, DoesWithoutValuesThatWereNotKept) {
    const MatminFigures large{"cuda", 1000, 30, 4, {}, {}};
    const auto rows = bench::matmin_table(std::vector{large}, 1'000'000, 8'000'000).rows();
    EXPECT_EQ(rows[1], (Row{"cuda", "1000", "1", "30.00", "4.000", "", "", "2.000", ""}));
}

}  // namespace
}  // namespace gloved::tests
