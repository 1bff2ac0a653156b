// The ladder's tables: every figure from the times, none from anywhere else.
#include "tools/bench/rung_report.hpp"
#include "tools/bench/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace gloved::tests {
namespace {

using bench::RungReport;
using bench::Table;
using bench::TableFormat;

/// Two words: 1,000 rows, 4 GB. The plain read takes 100 ms on the host and 1 ms on the device.
RungReport example() {
    RungReport report;
    report.words = {"ring #3", "key #1"};
    report.rows = 1000;
    report.vector_bytes = 4'000'000'000;
    report.host_read_ms = 100;
    report.device_read_ms = 1;
    // dot product, first merge, botched merge sort, total
    report.rungs.push_back({"v0", "host", false, true, {{{300, 100, 0, 400}, {300, 100, 0, 400}}}});
    report.rungs.push_back({"v1",
                            "first",
                            false,
                            false,
                            {{{5, 1, 2, 10}, {5, 1, 2, 14}}, {{5, 1, 2, 12}, {5, 1, 2, 44}}}});
    report.rungs.push_back({"v1-x", "lost", true, false, {{{8, 1, 1, 40}, {8, 1, 1, 40}}}});
    report.rungs.push_back({"v2", "last", false, false, {{{2, 0, 0, 2}, {2, 0, 0, 2}}}});
    return report;
}

std::string cell(const Table& table, std::size_t row, const std::string& heading) {
    const auto& headings = table.rows()[0];
    const auto found = std::find(headings.begin(), headings.end(), heading);
    if (found == headings.end()) return "no column " + heading;
    return table.rows().at(row)[static_cast<std::size_t>(found - headings.begin())];
}

TEST(RungTables, WordsHaveMeanAndStandardErrorOverTheRounds) {
    const auto table = bench::words_table(example(), TableFormat::text);
    ASSERT_EQ(table.rows().size(), 5U);
    EXPECT_EQ(cell(table, 2, "version"), "v1");
    EXPECT_EQ(cell(table, 2, "rounds"), "2");
    EXPECT_EQ(cell(table, 2, "ring #3"), "11.00 ±1.000");
    EXPECT_EQ(cell(table, 2, "key #1"), "29.00 ±15.000");
    EXPECT_EQ(cell(table, 2, "mean"), "20.00");
    // One round has no standard error.
    EXPECT_EQ(cell(table, 1, "rounds"), "1");
    EXPECT_EQ(cell(table, 1, "ring #3"), "400.0");
    EXPECT_EQ(cell(table, 3, "version"), "v1-x (discarded)");
}

TEST(RungTables, RatesAreHeldAgainstTheReadOfTheSameMemory) {
    for (const Table& table :
         {bench::words_table(example(), TableFormat::text), bench::speedup_table(example())}) {
        EXPECT_EQ(cell(table, 1, "GB/s"), "10.00");  // 4 GB in 400 ms
        EXPECT_EQ(cell(table, 1, "% of read ceiling"), "25.0");
        EXPECT_EQ(cell(table, 4, "GB/s"), "2000");
        EXPECT_EQ(cell(table, 4, "% of read ceiling"), "50.0");
    }
    RungReport no_device = example();
    no_device.device_read_ms.reset();
    const auto table = bench::speedup_table(no_device);
    EXPECT_EQ(cell(table, 4, "GB/s"), "2000");
    EXPECT_EQ(cell(table, 4, "% of read ceiling"), "");
}

TEST(RungTables, SpeedUpsAreAgainstTheProcessorAndTheVersionBefore) {
    const auto table = bench::speedup_table(example());
    EXPECT_EQ(cell(table, 1, "x CPU"), "1.00");
    EXPECT_EQ(cell(table, 1, "x previous"), "");
    EXPECT_EQ(cell(table, 2, "x CPU"), "20.00");
    EXPECT_EQ(cell(table, 2, "x previous"), "20.00");
    EXPECT_EQ(cell(table, 3, "x previous"), "0.50");
    // The discarded variant is not the version before.
    EXPECT_EQ(cell(table, 4, "x CPU"), "200.00");
    EXPECT_EQ(cell(table, 4, "x previous"), "10.00");
    EXPECT_EQ(cell(table, 2, "distances/ms"), "50");
    EXPECT_EQ(cell(table, 4, "distances/ms"), "500");
}

TEST(RungTables, WithoutTheProcessorNothingIsComparedWithIt) {
    RungReport report = example();
    report.rungs.erase(report.rungs.begin());
    const auto table = bench::speedup_table(report);
    EXPECT_EQ(cell(table, 1, "version"), "v1");
    EXPECT_EQ(cell(table, 1, "x CPU"), "");
    EXPECT_EQ(cell(table, 3, "x previous"), "10.00");
}

TEST(RungTables, PartsAndOverheadAddUpToTheTotal) {
    const auto table = bench::parts_table(example());
    EXPECT_EQ(cell(table, 2, "DotProduct"), "5.000");
    EXPECT_EQ(cell(table, 2, "FirstMerge"), "1.000");
    EXPECT_EQ(cell(table, 2, "BotchedMergeSort"), "2.000");
    EXPECT_EQ(cell(table, 2, "overhead"), "12.00");
    EXPECT_EQ(cell(table, 2, "total"), "20.00");
    EXPECT_EQ(cell(table, 2, "DotProduct's GB/s"), "800.0");
    EXPECT_EQ(cell(table, 2, "% of read ceiling"), "20.0");
    EXPECT_EQ(cell(table, 1, "% of read ceiling"), "33.3");
}

TEST(RungTables, TimesThatNobodyTookGiveNoRate) {
    RungReport report = example();
    report.rungs = {{"v0", "host", false, true, {{{0, 0, 0, 1}, {0, 0, 0, 1}}}}};
    EXPECT_EQ(cell(bench::parts_table(report), 1, "DotProduct's GB/s"), "");
    EXPECT_EQ(cell(bench::parts_table(report), 1, "% of read ceiling"), "");
}

}  // namespace
}  // namespace gloved::tests
