// SIGKILL at any moment of a conversion over a model that is there: its name leads to the old one
// or to the new one, whole.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/format/model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

std::uint64_t generation_of(const std::string& directory) {
    const auto model = format::Model::open(directory);
    EXPECT_TRUE(model) << model.error().message;
    return model ? model->generation() : 0;
}

int strays_in(const std::string& directory) {
    return static_cast<int>(std::count_if(
        fs::directory_iterator(directory), fs::directory_iterator(), [](const auto& entry) {
            return entry.path().filename().string().rfind(".m.gloved-", 0) == 0;
        }));
}

int rounds() {
    const char* wanted = std::getenv("GLOVED_KILL_ROUNDS");
    return wanted == nullptr ? 25 : std::max(1, std::atoi(wanted));
}

TEST(Kill, LeavesTheOldModelOrTheNewOne) {
    const TempDir dir;
    const std::string sample = source_path("data/glove.6B.100d.sample.txt.gz");
    const auto convert = [&](const std::string& limit) {
        return std::vector<std::string>{
            program("gloved-convert"), "--limit", limit, "--threads", "2", sample, dir / "m"};
    };
    // Two models take turns: what is there is the old one, what is being made the new one.
    const std::string limits[] = {"10000", "9000"};
    std::uint64_t generations[2];
    std::chrono::microseconds longest{0};
    for (const int i : {0, 1}) {
        const auto start = std::chrono::steady_clock::now();
        ASSERT_EQ(run(convert(limits[i])).exit_code, 0);
        longest = std::max(longest, std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now() - start));
        generations[i] = generation_of(dir / "m");
    }
    ASSERT_NE(generations[0], generations[1]);

    std::mt19937_64 random(std::random_device{}());
    int old_ones = 0;
    int new_ones = 0;
    int strays = 0;
    for (int round = 0; round < rounds(); ++round) {
        const int making = generation_of(dir / "m") == generations[0] ? 1 : 0;
        {
            Background conversion(convert(limits[making]));
            std::this_thread::sleep_for(longest * static_cast<int>(random() % 1000) / 1000);
            conversion.signal(SIGKILL);
            conversion.wait();
        }
        const Finished verified = run({program("gloved-verify"), dir / "m"});
        ASSERT_EQ(verified.exit_code, 0) << verified.out;
        const std::uint64_t found = generation_of(dir / "m");
        ASSERT_TRUE(found == generations[0] || found == generations[1]);
        ++(found == generations[making] ? new_ones : old_ones);
        const int left = strays_in(dir.path());
        strays += left;
        ASSERT_LE(left, 1) << "the strays of earlier runs were not swept";
    }
    ASSERT_EQ(run(convert("10")).exit_code, 0);
    EXPECT_EQ(strays_in(dir.path()), 0);
    EXPECT_GT(strays, 0) << "no kill came in the middle of a conversion: the test tests nothing";
    std::printf("%d old, %d new, %d strays swept\n", old_ones, new_ones, strays);
}

}  // namespace
}  // namespace gloved::tests
