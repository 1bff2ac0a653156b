// The made-up models: whole, the same for the same seed, and like GloVe where it matters.
#include "common/result.hpp"
#include "tools/bench/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "kernels/canonical.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using bench::generate_model;
using bench::GenerateOptions;

format::Model generated(const std::string& directory, const GenerateOptions& options) {
    const auto header = generate_model(directory, options);
    EXPECT_TRUE(header) << (header ? "" : header.error().message);
    auto model = format::Model::open(directory);
    if (!model) throw std::runtime_error(model.error().message);
    return *std::move(model);
}

TEST(Generate, sameSeedSameModelWhateverTheThreads) {
    const TempDir temp;
    const auto one = generated(temp / "one", {3000, 20, 7, 1});
    const auto four = generated(temp / "four", {3000, 20, 7, 4});
    const auto other = generated(temp / "other", {3000, 20, 8, 4});
    EXPECT_EQ(one.generation(), four.generation());
    EXPECT_NE(one.generation(), other.generation());
}

TEST(Generate, modelIsWholeForAnySize) {
    const TempDir temp;
    for (const std::uint64_t rows : {1U, 2U, 3U, 17U, 1000U, 70000U}) {
        SCOPED_TRACE(rows);
        // Opening checks that keys are distinct, sorted and as many as rows.
        const auto model = generated(temp / std::to_string(rows), {rows, 3, rows, 2});
        ASSERT_EQ(model.rows(), rows);
        for (const auto& section : model.header().sections)
            EXPECT_TRUE(model.verify_section(section)) << section.name;
        std::vector<std::uint32_t> ranks(model.ranks().begin(), model.ranks().end());
        std::sort(ranks.begin(), ranks.end());
        for (std::uint32_t rank = 0; rank < rows; ++rank) ASSERT_EQ(ranks[rank], rank);
        for (std::size_t row = 0; row < rows; ++row) {
            ASSERT_EQ(model.norms()[row], kernels::canonical_norm(model.vector(row).data(), 3));
        }
    }
}

TEST(Generate, lengthsNormsAndCosinesAreLikeGloves) {
    const TempDir temp;
    const auto model = generated(temp / "model", {20000, 100, 1, 2});
    double length = 0;
    double cosine = 0;
    double nearest = 0;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        length += static_cast<double>(model.key(row).size()) / static_cast<double>(model.rows());
        EXPECT_TRUE(model.norms()[row] > 1.5 && model.norms()[row] < 15) << model.norms()[row];
        const double score =
            kernels::canonical_score(model.vector(0).data(), model.norms()[0],
                                     model.vector(row).data(), model.norms()[row], model.dim());
        cosine += score / static_cast<double>(model.rows());
        if (row > 0) nearest = std::max(nearest, score);
    }
    EXPECT_TRUE(length > 5 && length < 11) << length;
    EXPECT_TRUE(cosine > 0.05 && cosine < 0.4) << cosine;
    EXPECT_TRUE(nearest > 0.3 && nearest < 0.95) << nearest;
}

TEST(Generate, interruptionLeavesNothing) {
    const TempDir temp;
    const auto made = generate_model(temp / "model", {50000, 3, 1, 1}, [] { return true; });
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::interrupted);
    EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

}  // namespace
}  // namespace gloved::tests
