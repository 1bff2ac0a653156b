// The figures in the tables of gloved-bench, the tables, and lists of the command line.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "common/byte_count.hpp"
#include "common/result.hpp"
#include "tools/bench/matrix_report.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/settings.hpp"

namespace gloved::tests {
namespace {

using bench::Contender;
using bench::DistmatFigures;
using bench::DistmatSize;
using bench::MatminFigures;
using bench::Series;
using bench::Table;
using bench::TableFormat;
using Names = std::vector<std::string>;
using Row = std::vector<std::string>;

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

TEST(Table, CsvQuotesWhatHasCommasOrQuotes) {
    Table table({"what", "a,b"});
    table.add({"say \"hi\"", "plain"});
    EXPECT_EQ(table.to_string(TableFormat::csv), "what,\"a,b\"\n\"say \"\"hi\"\"\",plain\n");
}

TEST(Table, ACellIsOneLineWhateverIsInIt) {
    Table table({"what", "ms"});
    table.add({"two\nlines\x1B[31m", "1"});
    EXPECT_EQ(table.to_string(TableFormat::csv), "what,ms\ntwo\\x0Alines\\x1B[31m,1\n");
}

TEST(Figures, HaveFourDigitsThatCount) {
    EXPECT_EQ(bench::figure(2425.94), "2426");
    EXPECT_EQ(bench::figure(999.96), "1000");
    EXPECT_EQ(bench::figure(261.44), "261.4");
    EXPECT_EQ(bench::figure(99.996), "100.0");
    EXPECT_EQ(bench::figure(17.004), "17.00");
    EXPECT_EQ(bench::figure(9.9996), "10.00");
    EXPECT_EQ(bench::figure(0.8634), "0.863");
    EXPECT_EQ(bench::figure(0), "0.000");
    EXPECT_EQ(bench::figure(-0.5), "-0.500");
}

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

/// The message with which `parse` refuses its text; empty if it does not.
template <class Parse>
std::string refusal(const Parse& parse) {
    try {
        parse();
    } catch (const cli::WrongUsage& wrong) {
        return wrong.what();
    }
    return "";
}

TEST(NameList, IsInTheOrderOfWhatIsKnownAndOnce) {
    constexpr std::array<std::string_view, 3> kNames = {"slow", "fast", "faster"};
    EXPECT_EQ(bench::parse_names("--ways", "faster,slow,faster", kNames),
              (Names{"slow", "faster"}));
    for (const char* text : {"", "fas", "slow,", "slow,,fast", "all"}) {
        const std::string refused = refusal([&] { bench::parse_names("--ways", text, kNames); });
        EXPECT_NE(refused.find("--ways"), std::string::npos) << text;
        EXPECT_NE(refused.find("slow, fast, faster"), std::string::npos) << text;
    }
}

TEST(Batches, AreSortedOnceAndNeverWithoutSingleQueries) {
    EXPECT_EQ(bench::parse_batches("64,8,64"), (std::vector<std::size_t>{1, 8, 64}));
    for (const char* text : {"", "0", "-1", "8,", "8;9", "1048577", "99999999999999999999"}) {
        EXPECT_THROW(bench::parse_batches(text), cli::WrongUsage) << text;
    }
}

}  // namespace
}  // namespace gloved::tests
