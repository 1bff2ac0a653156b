// Which lists a row is in, and which of some lists is the shortest, where a search begins.
#include <gtest/gtest.h>

#include <vector>

#include "common/format/model.hpp"
#include "kernels/row_lists.hpp"

namespace gloved::kernels {
namespace {

TEST(RowLists, TheShortestOfThoseAskedFor) {
    const RowLists lists(10, {{1, 2, 3}, {4}, {5, 6}, {7}});
    EXPECT_EQ(lists.shortest(0b0001), 0U);
    EXPECT_EQ(lists.shortest(0b0101), 2U);
    EXPECT_EQ(lists.shortest(0b0110), 1U);
    EXPECT_EQ(lists.shortest(0b1010), 1U) << "the first of two";
    EXPECT_EQ(lists.count(2), 2U);
}

}  // namespace
}  // namespace gloved::kernels
