// No rung is timed that answers wrong: what is wrong is found.
#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "tools/bench/rung_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/canonical.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Hit;

constexpr std::size_t kRows = 100;
constexpr std::size_t kDim = 7;
constexpr std::size_t kHits = 10;
constexpr double kBound = 1e-5;

class RungCheck : public testing::Test {
  protected:
    RungCheck() : model_(make_model(dir_ / "model", random_entries(kRows, kDim, 3))) {
        const auto values = model_.vector(5);
        query_ = {{values.begin(), values.end()}, model_.norms()[5]};
        for (kernels::Row row = 0; row < kRows; ++row) {
            all_.push_back({row, kernels::canonical_score(query_.values.data(), query_.norm,
                                                          model_.vector(row).data(),
                                                          model_.norms()[row], kDim)});
        }
        std::sort(all_.begin(), all_.end(), kernels::comes_before);
        exact_.assign(all_.begin(), all_.begin() + kHits);
        hits_ = exact_;
    }

    Status check(double bound = kBound) {
        return bench::check_hits(model_, query_, hits_, exact_, bound);
    }
    void expect_wrong(const std::string& what) {
        const Status checked = check();
        ASSERT_FALSE(checked);
        EXPECT_NE(checked.error().message.find(what), std::string::npos) << checked.error().message;
    }

    TempDir dir_;
    format::Model model_;
    kernels::QueryVector query_;
    std::vector<Hit> all_;
    std::vector<Hit> exact_;
    std::vector<Hit> hits_;
};

TEST_F(RungCheck, ExactAnswersAndThoseWithinTheBoundAreRight) {
    EXPECT_TRUE(check());
    for (Hit& hit : hits_) hit.score += 0.9 * kBound;
    EXPECT_TRUE(check());
}

TEST_F(RungCheck, ScoreBeyondTheBoundIsWrong) {
    hits_.front().score += 1.5 * kBound;
    expect_wrong("more than");
}

TEST_F(RungCheck, NaNIsWrong) {
    hits_.back().score = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(check());
    hits_ = exact_;
    hits_.front().score = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(check());
    hits_ = exact_;
    EXPECT_FALSE(check(std::numeric_limits<double>::quiet_NaN()));
    // Alone, so that no order gives it away.
    exact_.resize(1);
    hits_ = {{exact_[0].row, std::numeric_limits<double>::quiet_NaN()}};
    expect_wrong("more than");
}

TEST_F(RungCheck, MissingHitsAreWrong) {
    hits_.pop_back();
    expect_wrong("9 hits, not 10");
    hits_.clear();
    expect_wrong("0 hits, not 10");
}

TEST_F(RungCheck, BestRowThatWasOverlookedIsWrong) {
    // What stands in its place has the score that it should have.
    hits_.erase(hits_.begin() + 2);
    hits_.push_back(all_[kHits + 5]);
    expect_wrong("none of the best");
}

TEST_F(RungCheck, RowsThatTheBoundCannotTellApartMayStandForEachOther) {
    // All within twice the bound of each other.
    const double bound = all_[0].score - all_[kHits].score;
    hits_.back() = all_[kHits];
    EXPECT_FALSE(check());
    EXPECT_TRUE(check(bound));
}

TEST_F(RungCheck, RowTwiceAndRowOutsideTheModelAreWrong) {
    hits_[1] = hits_[0];
    expect_wrong("came before");
    hits_ = exact_;
    hits_[3].row = kRows;
    expect_wrong("no row 100");
}

TEST_F(RungCheck, OrderIsChecked) {
    std::swap(hits_[2], hits_[3]);
    expect_wrong("stands behind");
}

}  // namespace
}  // namespace gloved::tests
