// Linked into a test program of tests/gpu, gives each of its cases a fake device on which work is
// done as late as it may, and checks that the case leaves nothing there.
#include <gtest/gtest.h>

#include <cstddef>

#include "tests/support/fake_cuda/fake_cuda.hpp"

namespace gloved::tests {
namespace {

class LazyDevice final : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo&) override {
        fake_cuda::Settings settings;
        settings.lazy = true;
        // What engines leave to others, and room for the largest cases.
        settings.memory_bytes = std::size_t{1536} << 20;
        fake_cuda::reset(settings);
    }
    void OnTestEnd(const testing::TestInfo&) override {
        EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{}) << fake_cuda::describe(fake_cuda::live());
        EXPECT_EQ(fake_cuda::last_error(), 0);
    }
};

[[maybe_unused]] const bool kAdded = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new LazyDevice);
    return true;
}();

}  // namespace
}  // namespace gloved::tests
