// Every rung of the ladder against the float64 oracle, within the bound that the rung states.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/bounds.hpp"
#include "kernels/cuda/ladder/ladder.hpp"
#include "kernels/engine.hpp"
#include "kernels/query_vector.hpp"
#include "tests/gpu/device.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Hit;
using kernels::ladder::kMaxLadderHits;
using kernels::ladder::Rung;
using kernels::ladder::RungInfo;
using kernels::ladder::RungTimes;

constexpr int kDevice = 0;
constexpr std::array<std::size_t, 4> kWanted = {1, 10, 31, 32};

struct Shape {
    std::size_t rows;
    std::size_t dim;
};

/// The one rung that runs without a device.
bool runs_here(const RungInfo& info) { return info.name == "v0" || !no_device(); }

std::unique_ptr<Rung> rung_of(const RungInfo& info, const format::Model& model) {
    std::shared_ptr<const kernels::ladder::ResidentModel> resident;
    if (info.resident) {
        auto made = kernels::ladder::make_resident_model(model, kDevice);
        if (!made) throw std::runtime_error(made.error().message);
        resident = *std::move(made);
    }
    auto rung = kernels::ladder::make_rung(info.name, model, resident, kDevice);
    if (!rung) throw std::runtime_error(rung.error().message);
    return *std::move(rung);
}

std::vector<Hit> search(Rung& rung, const std::vector<float>& values, std::size_t k,
                        RungTimes* times) {
    auto query = kernels::make_query_vector(values);
    if (!query) throw std::runtime_error(query.error().message);
    auto hits = rung.search(*query, k, times);
    if (!hits) throw std::runtime_error(hits.error().message);
    return *std::move(hits);
}

/// Rows that are hard to rank, from the first on, so that small models have some too: duplicates, a
/// near-duplicate, an opposite, zeros, one-hot, constant, scaled to both ends of what the bound
/// covers; with `uncovered`, tiny and huge ones.
std::vector<Entry> awkward_entries(const Shape& shape, bool uncovered) {
    auto entries = random_entries(shape.rows, shape.dim, shape.rows * 31 + shape.dim);
    for (std::size_t i = 0; i < shape.rows; ++i) {
        const std::vector<float>& base = entries[i / 16 * 16].second;
        std::vector<float>& row = entries[i].second;
        const auto scaled_base = [&](float factor) {
            row = base;
            for (float& value : row) value *= factor;
        };
        switch (i % 16) {
            case 1:
                row = base;
                break;
            case 2:
                row.assign(shape.dim, 0.0F);
                break;
            case 3:
                row = base;
                row[i % shape.dim] = std::nextafter(row[i % shape.dim], 9.0F);
                break;
            case 4:
                scaled_base(-1.0F);
                break;
            case 5:
                scaled_base(4.0F);
                break;
            case 6:
                row.assign(shape.dim, 0.0F);
                row[i % shape.dim] = 1.0F;
                break;
            case 7:
                row.assign(shape.dim, 0.25F);
                break;
            case 8:
                scaled_base(0x1p-45F);
                break;
            case 9:
                scaled_base(0x1p45F);
                break;
            case 10:
                row.assign(shape.dim, 0.0F);
                break;
            case 11:
                if (uncovered) row.assign(shape.dim, 1e-42F);
                break;
            case 12:
                if (uncovered) row.assign(shape.dim, 3e38F);
                break;
            case 13:
                if (uncovered) scaled_base(1e-30F);
                break;
            default:
                break;
        }
    }
    return entries;
}

/// Query vectors of many kinds: rows themselves and their opposites, random ones, near-zero and
/// huge ones. Each differs from the one before it, so that an answer left over from the last search
/// is a wrong one.
std::vector<std::vector<float>> query_vectors(const format::Model& model) {
    std::vector<std::vector<float>> list;
    for (std::size_t row = 0; row < model.rows() && list.size() < 10;
         row += 1 + model.rows() / 12) {
        if (!kernels::bound_covers(model.norms()[row])) continue;
        list.emplace_back(model.vector(row).begin(), model.vector(row).end());
        list.push_back(list.back());
        for (float& value : list.back()) value = -value;
    }
    std::mt19937_64 random(7);
    std::normal_distribution<float> component;
    for (const float scale : {1.0F, 1e-38F, 1e37F}) {
        std::vector<float> vector(model.dim());
        for (float& value : vector) value = component(random) * scale;
        list.push_back(vector);
    }
    return list;
}

std::vector<Hit> best_of(const std::vector<double>& scores) {
    return oracle_top(scores, kMaxLadderHits, [](std::uint32_t, double) { return true; });
}

/// `scores`: the oracle's, in row order; `best`: the same in descending order. Only rows that the
/// bound covers.
void expect_within_bound(const std::vector<Hit>& hits, const format::Model& model,
                         const std::vector<double>& scores, const std::vector<Hit>& best,
                         std::size_t k, double bound, const std::string& what) {
    ASSERT_EQ(hits.size(), std::min(k, model.rows())) << what;
    std::set<kernels::Row> rows;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        const std::string where = what + ", place " + std::to_string(i);
        ASSERT_LT(hits[i].row, model.rows()) << where;
        EXPECT_TRUE(rows.insert(hits[i].row).second)
            << where << ": row " << hits[i].row << " again";
        const double score = hits[i].score;
        if (!(std::abs(score - best[i].score) <= bound)) {
            ADD_FAILURE() << where << ": " << score << " for " << best[i].score;
        }
        if (!(std::abs(score - scores[hits[i].row]) <= bound)) {
            ADD_FAILURE() << where << ": " << score << ", but row " << hits[i].row << " has "
                          << scores[hits[i].row];
        }
        if (i > 0 && !(score <= hits[i - 1].score))
            ADD_FAILURE() << where << ": " << score << " after less";
        if (model.norms()[hits[i].row] == 0.0) {
            EXPECT_EQ(score, 0.0) << where;
        }
    }
}

// Beside tails of every kind: the dimensions that v5 has instances for (25, 50, 100, 200, 300), and
// its loops for any width.
constexpr std::array kShapes = {Shape{1, 1},     Shape{1, 300},     Shape{5, 3},
                                Shape{33, 25},   Shape{1000, 50},   Shape{4099, 100},
                                Shape{515, 200}, Shape{10007, 300}, Shape{777, 301},
                                Shape{258, 302}, Shape{64, 1025},   Shape{47, 4096}};

std::string text_of(const Shape& shape) {
    return std::to_string(shape.rows) + "x" + std::to_string(shape.dim);
}

/// All shapes in one case: a case is a process, and a process on the device takes longer to start
/// than all of its searches.
class EveryRung : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        if (!runs_here(info())) GTEST_SKIP() << kNoDevice;
    }
    const RungInfo& info() const {
        const auto rungs = kernels::ladder::list_rungs();
        return *std::find_if(rungs.begin(), rungs.end(),
                             [](const RungInfo& rung) { return rung.name == GetParam(); });
    }
};

TEST_P(EveryRung, FindsTheBestWithinItsBound) {
    for (const Shape& shape : kShapes) {
        SCOPED_TRACE(text_of(shape));
        const TempDir dir;
        const format::Model model = make_model(dir / "model", awkward_entries(shape, false));
        for (const double norm : model.norms())
            ASSERT_TRUE(norm == 0.0 || kernels::bound_covers(norm)) << norm;
        const auto rung = rung_of(info(), model);
        EXPECT_EQ(rung->info().name, info().name);
        const double bound = info().score_bound(shape.dim);
        const auto vectors = query_vectors(model);
        std::vector<std::vector<double>> scores;
        scores.reserve(vectors.size());
        for (const auto& vector : vectors) scores.push_back(oracle_scores(model, vector));
        for (const std::size_t k : kWanted) {
            // With times and without: those are two paths.
            for (const bool timed : {false, true}) {
                for (std::size_t i = 0; i < vectors.size(); ++i) {
                    RungTimes times{-1, -1, -1, -1};
                    const auto hits = search(*rung, vectors[i], k, timed ? &times : nullptr);
                    expect_within_bound(hits, model, scores[i], best_of(scores[i]), k, bound,
                                        "query " + std::to_string(i) + ", k=" + std::to_string(k));
                    if (!timed) continue;
                    EXPECT_GT(times.total, 0);
                    EXPECT_GT(times.dot_product, 0);
                    EXPECT_GE(times.first_merge, 0);
                    EXPECT_GE(times.botched_merge_sort, 0);
                }
            }
        }
    }
}

TEST_P(EveryRung, ScoresZeroRowsZero) {
    for (const Shape& shape : kShapes) {
        SCOPED_TRACE(text_of(shape));
        const TempDir dir;
        auto entries = random_entries(shape.rows, shape.dim, 1);
        for (auto& [word, vector] : entries) vector.assign(shape.dim, 0.0F);
        const format::Model model = make_model(dir / "model", entries);
        const auto rung = rung_of(info(), model);
        const std::vector<double> scores(model.rows(), 0.0);
        for (const float value : {1.0F, -1.0F}) {
            const auto hits = search(*rung, std::vector<float>(shape.dim, value), 32, nullptr);
            expect_within_bound(hits, model, scores, best_of(scores), 32, 0.0,
                                "query of " + std::to_string(value));
        }
    }
}

TEST_P(EveryRung, OrdersNormsBeyondTheBoundWithoutNaN) {
    for (const Shape& shape : kShapes) {
        SCOPED_TRACE(text_of(shape));
        const TempDir dir;
        const format::Model model = make_model(dir / "model", awkward_entries(shape, true));
        const auto rung = rung_of(info(), model);
        for (const auto& vector : query_vectors(model)) {
            const auto hits = search(*rung, vector, 32, nullptr);
            ASSERT_EQ(hits.size(), std::min<std::size_t>(32, model.rows()));
            std::set<kernels::Row> rows;
            double above = 1.0;
            for (const Hit& hit : hits) {
                EXPECT_LT(hit.row, model.rows());
                EXPECT_TRUE(rows.insert(hit.row).second) << "row " << hit.row << " again";
                EXPECT_TRUE(hit.score <= above && hit.score >= -1.0)
                    << hit.score << " after " << above;
                above = hit.score;
            }
        }
    }
}

// More rows than a large device scores at once, so that v5's warps meet rows when their lists are
// full.

TEST_P(EveryRung, KeepsTheBestOfManyRows) {
    constexpr Shape kShape = {300000, 25};
    const TempDir dir;
    const format::Model model = make_model(dir / "model", awkward_entries(kShape, false));
    const auto rung = rung_of(info(), model);
    for (const std::size_t row : {std::size_t{0}, kShape.rows / 2, kShape.rows - 1}) {
        const std::vector<float> vector(model.vector(row).begin(), model.vector(row).end());
        const auto scores = oracle_scores(model, vector);
        const auto best = best_of(scores);
        for (const std::size_t k : kWanted) {
            expect_within_bound(search(*rung, vector, k, nullptr), model, scores, best, k,
                                info().score_bound(kShape.dim),
                                "row " + std::to_string(row) + ", k=" + std::to_string(k));
        }
    }
}

TEST_P(EveryRung, KeepsTheBestWhereEveryRowIsBetterThanTheLast) {
    constexpr Shape kShape = {250000, 4};
    std::vector<Entry> entries(kShape.rows);
    for (std::size_t i = 0; i < kShape.rows; ++i) {
        // Keys in the order of rows.
        const std::string digits = std::to_string(i);
        entries[i].first = std::string(8 - digits.size(), '0') + digits;
        entries[i].second = {static_cast<float>(i + 1), static_cast<float>(kShape.rows), 0.0F,
                             0.0F};
    }
    const TempDir dir;
    const auto model = make_model(dir / "model", entries);
    const auto rung = rung_of(info(), model);
    const std::vector<float> vector = {1.0F, 0.0F, 0.0F, 0.0F};
    const auto scores = oracle_scores(model, vector);
    const auto best = best_of(scores);
    for (const std::size_t k : kWanted) {
        expect_within_bound(search(*rung, vector, k, nullptr), model, scores, best, k,
                            info().score_bound(kShape.dim), "k=" + std::to_string(k));
    }
}

std::vector<std::string> rung_names() {
    std::vector<std::string> names;
    for (const RungInfo& info : kernels::ladder::list_rungs()) names.emplace_back(info.name);
    return names;
}

std::string name_of(const testing::TestParamInfo<std::string>& rung) {
    std::string name = rung.param;
    // GoogleTest takes letters, digits and underscores alone.
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Ladder, EveryRung, testing::ValuesIn(rung_names()), name_of);

TEST(Ladder, ListsEachRungOnceAndKnowsNoOther) {
    const TempDir dir;
    const auto model = make_model(dir / "model", random_entries(3, 2, 1));
    std::set<std::string_view> names;
    for (const RungInfo& info : kernels::ladder::list_rungs()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_FALSE(info.idea.empty());
        EXPECT_FALSE(info.limit.empty());
        EXPECT_GT(info.score_bound(300), 0);
    }
    for (const char* name : {"v0", "v1", "v2", "v3", "v4", "v5"})
        EXPECT_EQ(names.count(name), 1U) << name;
    const auto rung = kernels::ladder::make_rung("v6", model, nullptr, kDevice);
    ASSERT_FALSE(rung);
    EXPECT_EQ(rung.error().code, ErrorCode::unavailable);
}

TEST(Ladder, TwoRungsOfAKindDoNotMixTheirModels) {
    const TempDir dir;
    const auto one = make_model(dir / "one", random_entries(300, 20, 1));
    const auto two = make_model(dir / "two", random_entries(500, 12, 2));
    for (const RungInfo& info : kernels::ladder::list_rungs()) {
        if (!runs_here(info)) continue;
        const auto rung_one = rung_of(info, one);
        const auto rung_two = rung_of(info, two);
        for (int round = 0; round < 2; ++round) {
            for (const auto& [rung, model] :
                 {std::pair{rung_one.get(), &one}, std::pair{rung_two.get(), &two}}) {
                const std::vector<float> vector(model->vector(7).begin(), model->vector(7).end());
                const auto scores = oracle_scores(*model, vector);
                const auto best = best_of(scores);
                expect_within_bound(search(*rung, vector, 10, nullptr), *model, scores, best, 10,
                                    info.score_bound(model->dim()), std::string(info.name));
            }
        }
    }
}

}  // namespace
}  // namespace gloved::tests
