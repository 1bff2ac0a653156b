// Strays of a dead process, found by the next one.
#include "common/format/publish.hpp"
#include "common/result.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "common/format/model.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::format {
namespace {

namespace fs = std::filesystem;

std::size_t entries_in(const std::string& path) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

TEST(Publish, SweepsStraysButNotOfTheLiving) {
    const tests::TempDir dir;
    fs::create_directory(dir / ".m.gloved-1-0");
    tests::write_file(dir / ".m.gloved-1-0/spool", "");
    fs::create_directory(dir / ".m.gloved-backup");  // nobody's stray
    const auto living = Staging::create(dir / "m");
    ASSERT_TRUE(living);
    EXPECT_FALSE(fs::exists(dir / ".m.gloved-1-0"));
    {
        const auto second = Staging::create(dir / "m");
        ASSERT_TRUE(second);
        EXPECT_TRUE(fs::exists(living->path()));
        EXPECT_NE(second->path(), living->path());
        EXPECT_EQ(entries_in(dir.path()), 3U);
    }
    EXPECT_EQ(entries_in(dir.path()), 2U);
}

// Where directories cannot be exchanged the old model is moved aside first. A crash right then
// leaves it as the only one.
TEST(Publish, GivesAnOldModelThatWasMovedAsideItsNameBack) {
    const tests::TempDir dir;
    tests::make_model(dir / "m", {{"a", {1.0F}}});
    fs::rename(dir / "m", dir / ".m.gloved-1-0-0");
    { ASSERT_TRUE(Staging::create(dir / "m")); }
    EXPECT_TRUE(Model::open(dir / "m"));
    EXPECT_EQ(entries_in(dir.path()), 1U);
}

TEST(Publish, RemovesAnOldModelThatWasMovedAsideOnceThereIsANewOne) {
    const tests::TempDir dir;
    tests::make_model(dir / "m", {{"a", {1.0F}}});
    fs::rename(dir / "m", dir / ".m.gloved-1-0-0");
    tests::make_model(dir / "n", {{"b", {1.0F}}});
    fs::rename(dir / "n", dir / "m");
    { ASSERT_TRUE(Staging::create(dir / "m")); }
    const auto model = Model::open(dir / "m");
    ASSERT_TRUE(model);
    EXPECT_EQ(model->key(0), "b");
    EXPECT_EQ(entries_in(dir.path()), 1U);
}

}  // namespace
}  // namespace gloved::format
