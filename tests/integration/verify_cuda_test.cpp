// gloved-verify engines with the cuda engine's host code on a fake runtime: present, absent, and
// failing.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/engines.hpp"

namespace gloved::tests {
namespace {

using verify::Check;

class VerifyCuda : public testing::Test {
  protected:
    /// What is said of cuda: without planes, with them, without wgmma, and on several devices of
    /// rows that they divide, and of the first alone.
    std::vector<Check> cuda(int devices = 1) const {
        std::vector<Check> checks;
        const Status status =
            verify::check_engines(model_, verify::all_ways(model_, 2), {200, 5, 1, 2}, stop_,
                                  [&](const Check& check) { checks.push_back(check); });
        EXPECT_TRUE(status);
        EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{}) << fake_cuda::describe(fake_cuda::live());
        checks.erase(checks.begin(), checks.end() - (devices > 1 ? 5 : 3));
        EXPECT_EQ(checks[0].name, "engine cuda");
        EXPECT_EQ(checks[1].name, "engine cuda plane");
        EXPECT_EQ(checks[2].name, "engine cuda mma plane");
        if (devices > 1) {
            EXPECT_EQ(checks[3].name, "engine cuda rows plane");
            EXPECT_EQ(checks[4].name, "engine cuda one plane");
        }
        return checks;
    }

    const TempDir dir_;
    const format::Model model_ = make_model(dir_ / "m", random_entries(2000, 20, 1));
    const std::atomic<bool> stop_{false};
};

TEST_F(VerifyCuda, AgreesOnAllDevices) {
    for (const int devices : {1, 3}) {
        fake_cuda::Settings settings;
        settings.devices = devices;
        fake_cuda::reset(settings);
        for (const Check& check : cuda(devices)) {
            EXPECT_TRUE(check.ok) << check.detail;
            EXPECT_NE(check.detail.find("the bits of cpu "), std::string::npos) << check.detail;
        }
    }
}

TEST_F(VerifyCuda, IsNoFaultWhereThereIsNoDevice) {
    fake_cuda::Settings settings;
    settings.devices = 0;
    fake_cuda::reset(settings);
    for (const Check& check : cuda()) {
        EXPECT_TRUE(check.ok);
        EXPECT_EQ(check.detail.rfind("not available: ", 0), 0U) << check.detail;
    }
}

TEST_F(VerifyCuda, FailsWhereTheDeviceDoes) {
    fake_cuda::Settings settings;
    settings.launch = {40, 719};  // cudaErrorLaunchFailure, in the middle of the queries
    fake_cuda::reset(settings);
    const Check check = cuda()[0];
    EXPECT_FALSE(check.ok) << check.detail;
}

}  // namespace
}  // namespace gloved::tests
