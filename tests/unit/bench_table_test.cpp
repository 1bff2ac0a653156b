// Tables for people and for programs.
#include "tools/bench/table.hpp"

#include <gtest/gtest.h>

namespace gloved::tests {
namespace {

using bench::Table;
using bench::TableFormat;

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
    EXPECT_EQ(bench::grouped(2196016), "2,196,016");
    EXPECT_EQ(bench::grouped(999), "999");
}

}  // namespace
}  // namespace gloved::tests
