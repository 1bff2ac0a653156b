// What memory the kernel says is there, read from files as it writes them.
#include "common/process_memory.hpp"
#include "common/result.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/files.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class AvailableMemory : public testing::Test {
  protected:
    void write(const std::string& path, const std::string& text) {
        const std::filesystem::path file = root_ / path;
        std::filesystem::create_directories(file.parent_path());
        tests::write_file(file, text);
    }
    void write_group(const std::string& name, const std::string& max, std::uint64_t current,
                     std::uint64_t files) {
        const std::string directory = "sys/fs/cgroup/" + name;
        write(directory + "memory.max", max + "\n");
        write(directory + "memory.current", std::to_string(current) + "\n");
        write(directory + "memory.stat",
              "anon 5\nfile 7\ninactive_file " + std::to_string(files) + "\nactive_file 0\n");
    }
    void write_machine(std::uint64_t available) {
        write("proc/meminfo", "MemTotal:       999999 kB\nMemFree: 1 kB\nMemAvailable:   " +
                                  std::to_string(available / 1024) + " kB\nBuffers: 3 kB\n");
        write("proc/self/cgroup", "0::/system.slice/gloved.service\n");
    }
    std::uint64_t available() { return *available_memory(root_.path()); }

    tests::TempDir root_;
};

TEST_F(AvailableMemory, IsTheMachinesWithoutControlGroups) {
    write_machine(100 * kMiB);
    EXPECT_EQ(available(), 100 * kMiB);
    write_group("system.slice/gloved.service/", "max", 5, 0);
    EXPECT_EQ(available(), 100 * kMiB);
}

TEST_F(AvailableMemory, IsTheLeastThatAGroupLeavesFilesAside) {
    write_machine(100 * kMiB);
    write_group("system.slice/gloved.service/", std::to_string(60 * kMiB), 50 * kMiB, 30 * kMiB);
    EXPECT_EQ(available(), 40 * kMiB);
    write_group("system.slice/", std::to_string(64 * kMiB), 61 * kMiB, 30 * kMiB);
    EXPECT_EQ(available(), 33 * kMiB);
    write_group("", std::to_string(8 * kMiB), 9 * kMiB, 0);
    EXPECT_EQ(available(), 0U);
}

TEST_F(AvailableMemory, IsUnknownWithoutMeminfo) {
    EXPECT_EQ(available_memory(root_.path()).error().code, ErrorCode::unavailable);
}

TEST(MappedPath, IsThatOfAMappedFile) {
    const tests::TempDir dir;
    tests::write_file(dir / "a\nb", std::string(5000, 'x'));
    auto mapped = MappedFile::open_at(AT_FDCWD, (dir / "a\nb").c_str(), dir / "a\nb");
    ASSERT_TRUE(mapped);
    const char* const begin = mapped->text().data();
    MappedFile moved = *std::move(mapped);
    EXPECT_EQ(mapped_path(begin), dir / "a\\012b");
    EXPECT_EQ(mapped_path(begin + 4999), dir / "a\\012b");
    EXPECT_EQ(mapped_path(&moved), "");
    std::filesystem::rename(dir / "a\nb", dir / "c");
    EXPECT_EQ(mapped_path(begin), dir / "c");
    moved = {};
    EXPECT_NE(mapped_path(begin), dir / "c");
}

}  // namespace
}  // namespace gloved
