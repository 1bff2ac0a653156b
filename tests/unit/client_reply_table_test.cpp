#include "client/reply_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/table_text.hpp"

namespace gloved::client {
namespace {

/// The table of `reply`, whose bytes come one by one.
std::string table_of(std::string_view request, std::string_view reply, std::string_view first = {},
                     RowStyle style = kCsv) {
    auto table = ReplyTable::create(request, style);
    if (!table) return table.error().message;
    std::string out;
    for (const char& byte : first) table->take_first({&byte, 1});
    for (const char& byte : reply) table->take({&byte, 1}, out);
    table->finish(out);
    return out;
}

TEST(ReplyTable, HasTheColumnsOfTheRequest) {
    EXPECT_EQ(table_of("king", "a,b\t0.5\n\"\t0.25\n"), "word,score\n\"a,b\",0.5\n\"\"\"\",0.25\n");
    EXPECT_EQ(table_of("NEAR fields=rank,row king", "a\t0.5\t1\t2\n", {}, kTsv),
              "word\tscore\trank\trow\na\t0.5\t1\t2\n");
    EXPECT_EQ(table_of("NEARVEC fields=norm 1 2", ""), "word,score,norm\n");
    EXPECT_EQ(table_of("ANALOGY a b c", "d\t0.5\n"), "word,score\nd,0.5\n");
    EXPECT_EQ(table_of("ODD a b ( c d )", "( c d )\t0.5\n"), "word,score\n( c d ),0.5\n");
    EXPECT_EQ(table_of("PREFIX fields=rank a", "a\t7\n"), "word,rank\na,7\n");
}

TEST(ReplyTable, NamesWhatWasCompared) {
    EXPECT_EQ(table_of("SIM king ( a , b )", "0.5\n"), "a,b,score\nking,\"( a , b )\",0.5\n");
    EXPECT_EQ(table_of("DIST a b", "4\n"), "a,b,distance\na,b,4\n");
    EXPECT_EQ(table_of("RANK fields=score,eligible a b", "1\t0.5\t0\n"),
              "a,b,rank,score,eligible\na,b,1,0.5,0\n");
}

TEST(ReplyTable, FillsShortRowsOfHas) {
    EXPECT_EQ(table_of("HAS within=x fields=rank a \"\\\"\" \"b\\x09\"",
                       "a\t1\t0\t5\n\"\\\"\"\t0\t0\n\"b\\x09\"\t0\t0\n"),
              "word,known,within,rank\na,1,0,5\n\"\"\"\",0,0,\n\"b\t\",0,0,\n");
}

TEST(ReplyTable, LabelsMatricesAndLeavesRoomForWordsThatAreNotThere) {
    EXPECT_EQ(table_of("MATRIX a \",\"", "1\t2\n3\t4\n", "a\t1\n,\t1\n"),
              "word,a,\",\"\na,1,2\n\",\",3,4\n");
    EXPECT_EQ(
        table_of("MATRIX unknown=skip x a y b z", "1\t2\n3\t4\n", "x\t0\na\t1\ny\t0\nb\t1\nz\t0\n"),
        "word,x,a,y,b,z\nx,,,,,\na,,1,,2,\ny,,,,,\nb,,3,,4,\nz,,,,,\n");
    EXPECT_EQ(table_of("VEC unknown=skip x a", "1\t2\n", "x\t0\na\t1\n", kTsv),
              "word\tv0\tv1\nx\t\t\na\t1\t2\n");
    EXPECT_EQ(table_of("VEC encoding=base64 a", "AAAA\n", "a\t1\n"),
              "word,vector_base64\na,AAAA\n");
}

TEST(ReplyTable, AsksFirstWhichWordsAreThere) {
    const auto first = [](std::string_view request) {
        return ReplyTable::create(request, kCsv)->first_request();
    };
    EXPECT_EQ(first("MATRIX a b"), "HAS a b");
    EXPECT_EQ(first("MATRIX metric=sqeuclidean model=m case=ignore unknown=skip \"x=1\" + b"),
              "HAS model=\"m\" case=ignore \"x=1\" + b");
    EXPECT_EQ(first("VEC a"), "HAS a");
    EXPECT_EQ(first("NEAR unknown=skip a"), "");
}

TEST(ReplyTable, RefusesWhatIsNoTable) {
    EXPECT_EQ(table_of("STATS", ""), "the answer to STATS is no table; leave --format out");
    EXPECT_FALSE(ReplyTable::create("PING", kCsv));
    EXPECT_EQ(ReplyTable::create("NEAR k=0 a", kCsv).error().code, ErrorCode::bad_request);
}

}  // namespace
}  // namespace gloved::client
