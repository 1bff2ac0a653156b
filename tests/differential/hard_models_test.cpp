// Every instruction set, with planes and without, on models on which bounds are worth little.
// HACKING.md, «Measuring», has the long version.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <ostream>
#include <string>

#include "common/result.hpp"
#include "kernels/bounds.hpp"
#include "tests/support/hard_model.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/engines.hpp"

namespace gloved::tests {
namespace {

struct HardShape {
    std::size_t rows = 0;
    std::size_t dim = 0;
};
void PrintTo(const HardShape& shape, std::ostream* out) {
    *out << shape.rows << " x " << shape.dim;
}

class HardModels : public testing::TestWithParam<HardShape> {};

TEST_P(HardModels, AnswersAreTheSameInEveryWay) {
    const auto [rows, dim] = GetParam();
    const TempDir dir;
    const auto model = make_model(dir / "model", hard_entries(rows, dim, rows + dim));
    verify::EngineChecks checks;
    checks.answers = 3000;
    checks.plain = 300;
    checks.threads = 2;
    const std::atomic<bool> stop{false};
    bool by_plane = false;
    const Status status = verify::check_engines(
        model, verify::all_ways(model, checks.threads), checks, stop,
        [&](const verify::Check& check) {
            EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
            by_plane = by_plane || check.detail.find("plane ") != std::string::npos;
        });
    EXPECT_TRUE(status);
    EXPECT_TRUE(by_plane);
}

std::string shape_name(const testing::TestParamInfo<HardShape>& of) {
    return std::to_string(of.param.rows) + "x" + std::to_string(of.param.dim);
}

INSTANTIATE_TEST_SUITE_P(Cpu, HardModels,
                         testing::Values(HardShape{5000, 1}, HardShape{3001, 7},
                                         HardShape{4000, 37}, HardShape{2017, 100},
                                         HardShape{1500, 301}, HardShape{40, 20}),
                         shape_name);

TEST(HardEntries, DependOnTheSeedAndHoldRowsBeyondTheBounds) {
    EXPECT_EQ(hard_entries(500, 9, 3), hard_entries(500, 9, 3));
    EXPECT_NE(hard_entries(500, 9, 3), hard_entries(500, 9, 4));
    const TempDir dir;
    const auto model = make_model(dir / "model", hard_entries(3000, 30, 1));
    std::size_t zeros = 0;
    std::size_t beyond = 0;
    for (const double norm : model.norms()) {
        if (norm == 0) ++zeros;
        if (norm != 0 && !kernels::bound_covers(norm)) ++beyond;
    }
    EXPECT_GT(zeros, 0U);
    EXPECT_GT(beyond, 0U);
    EXPECT_LT(zeros + beyond, model.rows() / 2);
}

}  // namespace
}  // namespace gloved::tests
