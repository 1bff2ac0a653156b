#include <gtest/gtest.h>

#include "common/progress.hpp"

namespace gloved {
namespace {

TEST(Progress, ShowsPercentSpeedAndTimeLeft) {
    EXPECT_EQ(progress_line("reading", 250'000'000, 1'000'000'000, 2.5),
              "reading  25 %  100 MB/s  ETA 0:08");
    EXPECT_EQ(progress_line("reading", 10'000'000, 10'000'000'000, 1),
              "reading  0 %  10 MB/s  ETA 16:39");
}

TEST(Progress, DoesWithoutATotal) {
    EXPECT_EQ(progress_line("reading", 5'000'000, 0, 0.5), "reading  5 MB  10 MB/s");
}

TEST(Progress, CountsWhatItIsToldTo) {
    EXPECT_EQ(progress_line("asking", 250, 1000, 2.5, {"questions", 1}),
              "asking  25 %  100 questions/s  ETA 0:08");
    EXPECT_EQ(progress_line("asking", 5, 0, 0.5, {"questions", 1}),
              "asking  5 questions  10 questions/s");
}

TEST(Progress, StaysSaneAtTheEdges) {
    EXPECT_EQ(progress_line("x", 0, 100, 0), "x  0 %");
    EXPECT_EQ(progress_line("x", 0, 0, 0), "x  0 MB  0 MB/s");
    EXPECT_EQ(progress_line("x", 300, 100, 1), "x  100 %  0 MB/s  ETA 0:00");  // the file has grown
}

}  // namespace
}  // namespace gloved
