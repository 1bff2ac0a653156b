// Which GPUs a command line names.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/device_choice.hpp"
#include "common/result.hpp"

namespace gloved::tests {
namespace {

TEST(DeviceChoice, IsGpuZeroWithoutAWord) {
    const DeviceChoice choice;
    EXPECT_FALSE(choice.all);
    EXPECT_EQ(choice.numbers, std::vector<int>{0});
}

TEST(DeviceChoice, IsAllOrNumbers) {
    EXPECT_TRUE(parse_devices("all")->all);
    EXPECT_EQ(parse_devices("7")->numbers, std::vector<int>{7});
    EXPECT_EQ(parse_devices("1,0,0,12")->numbers, (std::vector<int>{1, 0, 0, 12}));
    EXPECT_FALSE(parse_devices("1,0")->all);
}

TEST(DeviceChoice, RefusesWhatIsNeither) {
    for (const char* text : {"", ",", "0,", ",0", "0,,1", "-1", "0 ,1", "0, 1", "1.5", "x", "ALL",
                             "all,0", "99999999999"}) {
        const auto choice = parse_devices(text);
        ASSERT_FALSE(choice) << text;
        EXPECT_EQ(choice.error().code, ErrorCode::bad_request);
        EXPECT_EQ(choice.error().message.rfind("must be 'all' or numbers separated by commas", 0),
                  0U)
            << choice.error().message;
    }
    std::string many = "0";
    for (int i = 1; i < 64; ++i) many += ",0";
    EXPECT_EQ(parse_devices(many)->numbers.size(), 64U);
    EXPECT_EQ(parse_devices(many + ",0").error().message, "takes at most 64 numbers");
}

}  // namespace
}  // namespace gloved::tests
