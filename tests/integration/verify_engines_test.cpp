// gloved-verify engines: engines that agree pass, and one that lies is found, whatever it lies
// about.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/engine.hpp"
#include "kernels/registry.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/verify/check.hpp"
#include "tools/verify/engines.hpp"
#include "tools/verify/questions.hpp"

namespace gloved::tests {
namespace {

using kernels::Answer;
using kernels::Query;
using verify::Check;
using verify::Way;
using Lie = std::function<void(const Query& query, Answer& answer)>;

/// The cpu engine, but for one thing that it says.
class Liar : public kernels::Engine {
  public:
    Liar(std::unique_ptr<kernels::Engine> honest, Lie lie)
        : honest_(std::move(honest)), lie_(std::move(lie)) {}
    kernels::EngineKind kind() const override { return kernels::EngineKind::cpu; }
    std::string description() const override { return "lies"; }
    Result<std::vector<Answer>> run(std::span<const Query> queries,
                                    const std::function<void()>& meanwhile) override {
        auto answers = honest_->run(queries, meanwhile);
        if (!answers) return answers;
        for (std::size_t i = 0; i < queries.size(); ++i) lie_(queries[i], (*answers)[i]);
        return answers;
    }

  private:
    std::unique_ptr<kernels::Engine> honest_;
    Lie lie_;
};

class VerifyEngines : public testing::Test {
  protected:
    Way honest() const { return verify::all_ways(model_, 2).at(0); }
    Way liar(Lie lie) const {
        return {"liar", [this, lie = std::move(lie)]() -> Result<std::unique_ptr<kernels::Engine>> {
                    auto engine = honest().make();
                    if (!engine) return engine;
                    return std::unique_ptr<kernels::Engine>(
                        std::make_unique<Liar>(*std::move(engine), lie));
                }};
    }
    std::vector<Check> check(const std::vector<Way>& ways, std::size_t queries = 1000) const {
        std::vector<Check> checks;
        const Status status =
            verify::check_engines(model_, ways, {queries, 20, 1, 2}, stop_,
                                  [&](const Check& check) { checks.push_back(check); });
        EXPECT_EQ(static_cast<bool>(status), !stop_);
        return checks;
    }
    /// As the first way, where the plain search finds it, and as the second, where the first way
    /// does.
    void expect_found(const Lie& lie, const std::string& fragment) const {
        const auto first = check({liar(lie)}, 20);
        ASSERT_EQ(first.size(), 1U);
        EXPECT_FALSE(first[0].ok) << fragment;
        EXPECT_NE(first[0].detail.find("differ from a plain float64 search: query "),
                  std::string::npos)
            << first[0].detail;
        EXPECT_NE(first[0].detail.find(fragment), std::string::npos) << first[0].detail;
        const auto second = check({honest(), liar(lie)});
        ASSERT_EQ(second.size(), 2U);
        EXPECT_TRUE(second[0].ok) << second[0].detail;
        EXPECT_FALSE(second[1].ok) << fragment;
        EXPECT_NE(second[1].detail.find("differ from cpu "), std::string::npos) << second[1].detail;
        EXPECT_NE(second[1].detail.find(fragment), std::string::npos) << second[1].detail;
    }

    const TempDir dir_;
    const format::Model model_ = make_model(dir_ / "m", random_entries(3000, 20, 1));
    std::atomic<bool> stop_{false};
};

TEST_F(VerifyEngines, AllOfThisMachineAgree) {
    const auto ways = verify::all_ways(model_, 2);
    const auto checks = check(ways);
    ASSERT_EQ(checks.size(), ways.size());
    ASSERT_GE(checks.size(), 2U);  // cpu in one way at least, and what is said of cuda
    EXPECT_EQ(checks[0].name, "engine cpu " + kernels::simd_names()[0]);
    for (const Check& check : checks) EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
    EXPECT_NE(checks[0].detail.find("1000 answers in "), std::string::npos);
    EXPECT_NE(checks[0].detail.find("of 20 the bits of a plain float64 search"), std::string::npos);
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.unavailable.empty()) continue;
        EXPECT_EQ(checks.back().name,
                  "engine " + std::string(to_string(entry.kind)) + " mma plane");
        EXPECT_EQ(checks.back().detail, "not available: " + entry.unavailable);
    }
}

TEST_F(VerifyEngines, EveryKindOfLieIsFound) {
    expect_found(
        [](const Query&, Answer& answer) {
            if (!answer.hits.empty())
                answer.hits.back().score = std::nextafter(answer.hits.back().score, 2.0);
        },
        "place ");
    expect_found(
        [](const Query&, Answer& answer) {
            if (!answer.hits.empty()) answer.hits[0].row = 3000;
        },
        "place 1 is row 3000 (there are 3000) for row ");
    expect_found(
        [](const Query&, Answer& answer) {
            if (answer.hits.size() > 1) std::swap(answer.hits[0], answer.hits[1]);
        },
        "place 1 is row ");
    expect_found(
        [](const Query&, Answer& answer) {
            if (answer.hits.size() == 10) answer.hits.pop_back();
        },
        "9 words for 10");
    expect_found(
        [](const Query& query, Answer& answer) {
            if (std::holds_alternative<kernels::CountBefore>(query.kind)) ++answer.count;
        },
        "rows before row ");
    expect_found(
        [](const Query& query, Answer& answer) {
            if (std::holds_alternative<kernels::CosMul>(query.kind)) answer.hits.clear();
        },
        "3CosMul of ");
}

TEST_F(VerifyEngines, OneAnswerOfAThousandIsEnough) {
    std::size_t asked = 0;
    const auto checks = check({honest(), liar([&](const Query&, Answer& answer) {
                                   if (++asked > 950 && asked < 960 && !answer.hits.empty())
                                       answer.hits[0].score = -answer.hits[0].score;
                               })});
    EXPECT_EQ(asked, 1000U);
    ASSERT_EQ(checks.size(), 2U);
    EXPECT_TRUE(checks[0].ok);
    EXPECT_FALSE(checks[1].ok);
    EXPECT_NE(checks[1].detail.find(": query 95"), std::string::npos) << checks[1].detail;
}

TEST_F(VerifyEngines, FaultsAreToldApartFromWhatIsNotThere) {
    const auto error = [](ErrorCode code, const char* message) {
        return [=]() -> Result<std::unique_ptr<kernels::Engine>> { return Error{code, message}; };
    };
    const auto checks = check({{"none", error(ErrorCode::unavailable, "no driver")},
                               {"broken", error(ErrorCode::device, "the device fell off the bus")},
                               honest()},
                              50);
    ASSERT_EQ(checks.size(), 3U);
    EXPECT_TRUE(checks[0].ok);
    EXPECT_EQ(checks[0].detail, "not available: no driver");
    EXPECT_FALSE(checks[1].ok);
    EXPECT_EQ(checks[1].detail, "the device fell off the bus");
    // The plain search is never left out.
    EXPECT_TRUE(checks[2].ok);
    EXPECT_NE(checks[2].detail.find("plain float64"), std::string::npos);
}

TEST_F(VerifyEngines, WhatWasNamedMustBeThere) {
    const std::vector<Way> ways = {{"none",
                                    []() -> Result<std::unique_ptr<kernels::Engine>> {
                                        return Error{ErrorCode::unavailable, "no driver"};
                                    }},
                                   honest()};
    verify::EngineChecks wanted;
    wanted.ways = honest().name + ",none";
    const auto chosen = verify::choose_ways(ways, wanted);
    ASSERT_TRUE(chosen);
    const auto checks = check(*chosen, 50);
    ASSERT_EQ(checks.size(), 2U);
    EXPECT_TRUE(checks[0].ok);
    EXPECT_FALSE(checks[1].ok);
    EXPECT_EQ(checks[1].detail, "not available: no driver");
}

TEST_F(VerifyEngines, QuestionsAreOfEveryKindAndDependOnTheirNumberAlone) {
    const kernels::RowLists no_lists;
    const verify::Questions questions(model_, 4, no_lists);
    std::set<std::size_t> ks;
    std::size_t raw = 0;
    std::size_t least = 0;
    std::size_t most = 0;
    std::size_t everything = 0;
    std::set<std::size_t> kinds;
    for (std::size_t number = 5000; number-- > 0;) {
        const verify::Question question = questions.at(number);
        ASSERT_EQ(verify::describe(model_, question),
                  verify::describe(model_, verify::Questions(model_, 4, no_lists).at(number)));
        const Query& query = question.query;
        kinds.insert(query.kind.index());
        ks.insert(std::min(query.k, model_.rows()));
        if (question.sources[0].weights.empty()) ++raw;
        if (query.filter.min_score < -1) ++least;
        if (query.filter.min_score > 1) ++most;
        everything = std::max(everything, query.excluded.size());
        ASSERT_EQ(question.sources.size(), kernels::vectors_of(query));
    }
    EXPECT_EQ(kinds.size(), 3U);
    EXPECT_EQ(ks, (std::set<std::size_t>{1, 2, 10, 100, 1024, 3000}));
    EXPECT_GT(raw, 1000U);
    EXPECT_GT(least, 1000U);
    EXPECT_GT(most, 20U);
    EXPECT_GT(everything, 500U);
    EXPECT_EQ(questions.at(1).query.kind.index(), 1U);
    EXPECT_EQ(questions.at(2).query.kind.index(), 2U);

    const auto sizes = verify::batch_sizes(20000, 4);
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), 20000U);
    EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), 1U);
    EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), 900U);
    EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 1024U);
    EXPECT_EQ(sizes, verify::batch_sizes(20000, 4));
}

TEST_F(VerifyEngines, StopsWhenAsked) {
    stop_ = true;
    EXPECT_TRUE(check(verify::all_ways(model_, 2)).empty());
}

TEST(VerifyEnginesProgram, AsksOnlyWhereTheValuesAreSound) {
    const TempDir dir;
    make_model(dir / "m", random_entries(300, 7, 1));
    const Finished sound = run({program("gloved-verify"), "engines", dir / "m"});
    EXPECT_EQ(sound.exit_code, 0) << sound.out;
    for (const std::string& simd : kernels::simd_names()) {
        EXPECT_NE(sound.out.find("ok      engine cpu " + simd + ": 1000 answers"),
                  std::string::npos)
            << sound.out;
    }
    EXPECT_NE(sound.out.find("engine cuda: "), std::string::npos) << sound.out;
    // Rows that are all zero have no direction; vectors can be asked all the same.
    make_model(dir / "z", {{"a", {0}}, {"b", {0}}});
    const Finished zeros = run({program("gloved-verify"), "engines", dir / "z"});
    EXPECT_EQ(zeros.exit_code, 0) << zeros.out;
    make_model(dir / "one", {{"a", {2}}});
    const Finished one = run({program("gloved-verify"), "engines", dir / "one"});
    EXPECT_EQ(one.exit_code, 0) << one.out;

    EXPECT_EQ(run({program("gloved-verify"), "engines", "--quick", dir / "m"}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "engines"}).exit_code, 2);
    EXPECT_EQ(run({program("gloved-verify"), "engines", "--answers", "0", dir / "m"}).exit_code, 2);
    EXPECT_EQ(
        run({program("gloved-verify"), "engines", "--answers", "5", "--oracle", "6", dir / "m"})
            .exit_code,
        2);
    const std::string with_plane = "cpu " + kernels::simd_names().front() + " plane";
    const Finished chosen =
        run({program("gloved-verify"), "engines", "--answers", "50", "--oracle", "7", "--seed", "3",
             "--ways", "cpu baseline", "--reference", with_plane, dir / "m"});
    EXPECT_EQ(chosen.exit_code, 0) << chosen.out;
    const auto plane = chosen.out.find("ok      engine " + with_plane + ": 50 answers in ");
    const auto without = chosen.out.find("ok      engine cpu baseline: 50 answers in ");
    ASSERT_NE(without, std::string::npos) << chosen.out;
    EXPECT_LT(plane, without) << chosen.out;
    EXPECT_NE(chosen.out.find("of 7 the bits of a plain float64 search"), std::string::npos)
        << chosen.out;
    EXPECT_NE(chosen.out.find(", the bits of " + with_plane + "\n"), std::string::npos)
        << chosen.out;
    const Finished unknown =
        run({program("gloved-verify"), "engines", "--ways", "cpu mmx", dir / "m"});
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_NE(unknown.out.find("FAILED  engines: no way 'cpu mmx': there are cpu "),
              std::string::npos)
        << unknown.out;
    std::string values = read_file(dir / "m/values");
    values[values.size() / 2] ^= 1;
    ASSERT_EQ(::unlink((dir / "m/values").c_str()), 0);
    write_file(dir / "m/values", values);
    const Finished damaged = run({program("gloved-verify"), "engines", dir / "m"});
    EXPECT_EQ(damaged.exit_code, 1);
    EXPECT_NE(damaged.out.find("FAILED  engines: not asked"), std::string::npos) << damaged.out;
}

TEST(VerifyEnginesProgram, TakesTheOptionsOfBeforeTheSubcommandWithAWarning) {
    const TempDir dir;
    make_model(dir / "m", random_entries(300, 7, 1));
    const std::string verify = program("gloved-verify");
    const std::vector<std::string> options = {"--answers", "50",     "--oracle",
                                              "7",         "--ways", "cpu baseline"};
    std::vector<std::string> before = {verify, "--engines", "--json", dir / "m"};
    std::vector<std::string> now = {verify, "engines", "--json", dir / "m"};
    before.insert(before.end(), options.begin(), options.end());
    now.insert(now.end(), options.begin(), options.end());
    const Finished old = run(before);
    EXPECT_EQ(old.exit_code, 0) << old.out;
    EXPECT_EQ(old.err,
              "gloved-verify: --engines and its options are accepted for one more release: use "
              "gloved-verify engines\n");
    const Finished current = run(now);
    EXPECT_EQ(current.err, "");
    // The time of the answers differs.
    const auto checks = [](const Finished& done) {
        std::vector<std::string> names;
        const auto report = nlohmann::json::parse(done.out);
        for (const auto& check : report["checks"]) names.push_back(check["name"]);
        return names;
    };
    EXPECT_EQ(checks(old), checks(current));
    EXPECT_EQ(checks(current).back(), "engine cpu baseline");
    EXPECT_EQ(run({verify, "--engines", "--quick", dir / "m"}).exit_code, 2);
    EXPECT_EQ(run({verify, "--answers", "5", dir / "m"}).exit_code, 2);
}

}  // namespace
}  // namespace gloved::tests
