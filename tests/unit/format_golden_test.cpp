// The golden example of FORMAT.md, read from the page, against what the writer and gloved-convert
// write.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

/// The content of the page's fenced block «```NAME».
std::string block(const std::string& name) {
    const std::string page = read_file(source_path("common/format/FORMAT.md"));
    const std::string fence = "```" + name + "\n";
    const std::size_t start = page.find(fence);
    EXPECT_NE(start, std::string::npos) << "FORMAT.md has no block " << name;
    if (start == std::string::npos) return {};
    const std::size_t first = start + fence.size();
    return page.substr(first, page.find("```", first) - first);
}

/// The bytes that a `hexdump -C` shows: «OFFSET  16 bytes in hex  |text|», «*» for lines like the
/// one before.
std::string undump(const std::string& dump) {
    std::string bytes;
    std::istringstream lines(dump);
    bool repeat = false;
    for (std::string line; std::getline(lines, line);) {
        if (line == "*") {
            repeat = true;
            continue;
        }
        const auto offset = static_cast<std::size_t>(std::stoull(line, nullptr, 16));
        const std::string last =
            bytes.size() >= 16 ? bytes.substr(bytes.size() - 16) : std::string();
        while (repeat && bytes.size() < offset) bytes += last;
        repeat = false;
        EXPECT_EQ(bytes.size(), offset) << line;
        std::istringstream fields(line.substr(8, line.find('|') - 8));
        for (std::string field; fields >> field;)
            bytes += static_cast<char>(std::stoi(field, nullptr, 16));
    }
    return bytes;
}

TEST(Golden, WriterWritesTheBytesOfThePage) {
    std::vector<Entry> entries;
    std::istringstream lines(block("golden-source"));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string word;
        std::string a;
        std::string b;
        fields >> word >> a >> b;
        entries.push_back(
            {word, {std::strtof(a.c_str(), nullptr), std::strtof(b.c_str(), nullptr)}});
    }
    ASSERT_EQ(entries.size(), 3U);
    const TempDir dir;
    make_model(dir / "m", entries);
    EXPECT_TRUE(read_file(dir / "m/keys") == undump(block("golden-keys")));
    EXPECT_TRUE(read_file(dir / "m/values") == undump(block("golden-values")));
    store_planes(dir / "m");
    EXPECT_TRUE(read_file(dir / "m/planes") == undump(block("golden-planes")));
}

TEST(Golden, ProgramsWriteTheBytesOfThePage) {
    const TempDir dir;
    const Finished finished =
        run({program("gloved-convert"), "-", dir / "m"}, block("golden-source"));
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_TRUE(read_file(dir / "m/keys") == undump(block("golden-keys")));
    EXPECT_TRUE(read_file(dir / "m/values") == undump(block("golden-values")));
    EXPECT_TRUE(read_file(dir / "m/planes") == undump(block("golden-planes")));
    const Finished found = run({program("gloved-neighbors"), "--k", "3", dir / "m"});
    ASSERT_EQ(found.exit_code, 0) << found.err;
    EXPECT_TRUE(read_file(dir / "m/neighbors") == undump(block("golden-neighbors")));
}

TEST(Golden, ReaderReadsTheBytesOfThePage) {
    const TempDir dir;
    make_model(dir / "m", {{"other", {1.0F}}});
    for (const std::string file : {"keys", "values", "planes", "neighbors"}) {
        std::remove((dir / ("m/" + file)).c_str());
        write_file(dir / ("m/" + file), undump(block("golden-" + file)));
    }
    const auto model = format::Model::open(dir / "m");
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_EQ(model->rows(), 3U);
    ASSERT_EQ(model->dim(), 2U);
    EXPECT_EQ(model->key(0), "café");
    EXPECT_EQ(model->vector(0)[0], -0.1F);
    EXPECT_EQ(model->norms()[1], 5.0);
    EXPECT_EQ(model->ranks()[2], 0U);
    for (const auto& section : model->header().sections)
        EXPECT_TRUE(model->verify_section(section));
    ASSERT_TRUE(model->planes());
    EXPECT_TRUE(model->verify_planes());
    ASSERT_EQ(model->planes()->size(), 128U);
    EXPECT_EQ(model->planes()->data()[4 * 2], std::byte{0x0B});  // row 2, component 0: the level 7
    EXPECT_EQ(model->planes()->data()[4], std::byte{0x0E});
    const auto neighbors = format::Neighbors::open(*model);
    ASSERT_TRUE(neighbors) << neighbors.error().message;
    ASSERT_TRUE(*neighbors);
    EXPECT_TRUE((*neighbors)->verify());
    EXPECT_TRUE(std::ranges::equal((*neighbors)->of(0), std::vector<format::Row>{2, 1}));
}

}  // namespace
}  // namespace gloved::tests
