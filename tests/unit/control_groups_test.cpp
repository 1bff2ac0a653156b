// What control groups limit, read from files as the kernel writes them.
#include "common/control_groups.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace gloved {
namespace {

class ProcessorQuota : public testing::Test {
  protected:
    void write(const std::string& path, const std::string& text) {
        const std::filesystem::path whole = root_.path() + path;
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream(whole) << text;
    }
    double quota() const { return processor_quota(root_.path()); }

    tests::TempDir root_;
};

TEST_F(ProcessorQuota, IsNoneWithoutGroups) { EXPECT_TRUE(std::isinf(quota())); }

TEST_F(ProcessorQuota, IsThatOfTheGroup) {
    write("/proc/self/cgroup", "0::/a/b\n");
    write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    EXPECT_TRUE(std::isinf(quota()));
    write("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    EXPECT_EQ(quota(), 2.5);
}

TEST_F(ProcessorQuota, IsTheSmallestOfAllGroupsAbove) {
    write("/proc/self/cgroup", "0::/a/b\n");
    write("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    write("/sys/fs/cgroup/a/cpu.max", "50000 50000\n");
    EXPECT_EQ(quota(), 1);
    write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    EXPECT_EQ(quota(), 4);
}

TEST_F(ProcessorQuota, OfAContainerIsThatOfItsRoot) {
    write("/proc/self/cgroup", "0::/\n");
    write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    EXPECT_EQ(quota(), 2);
    // The path is the host's, where the container sees only its own group.
    write("/proc/self/cgroup", "0::/docker/0123\n");
    EXPECT_EQ(quota(), 2);
}

TEST_F(ProcessorQuota, OfVersionOneIsFoundToo) {
    write("/proc/self/cgroup", "9:cpuset:/\n4:cpu,cpuacct:/a\n0::/\n");
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    EXPECT_TRUE(std::isinf(quota()));
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    EXPECT_EQ(quota(), 3);
}

TEST_F(ProcessorQuota, OddFilesAreNone) {
    write("/proc/self/cgroup", "\n:\n0:\n0::\n0::/../x\nx:cpu\n");
    write("/sys/fs/cgroup/cpu.max", "-5 0\n");
    EXPECT_TRUE(std::isinf(quota()));
}

}  // namespace
}  // namespace gloved
