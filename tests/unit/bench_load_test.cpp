// The parts of gloved-bench load: the mix, its requests, the latencies, the schedule and the
// report.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "common/wire/request.hpp"
#include "tools/bench/load_report.hpp"
#include "tools/bench/load_requests.hpp"
#include "tools/bench/load_worker.hpp"

namespace gloved::tests {
namespace {

using bench::MixPart;
using wire::Verb;

/// The message with which --mix refuses a text; empty if it does not.
std::string refusal(std::string_view mix) {
    try {
        bench::parse_mix(mix);
    } catch (const cli::WrongUsage& wrong) {
        return wrong.what();
    }
    return "";
}

TEST(Mix, HasKindsOfRequestsWithWeights) {
    const auto mix = bench::parse_mix("ping=3,cosmul,near=1000000");
    ASSERT_EQ(mix.size(), 3U);
    const std::vector<std::pair<std::string_view, std::uint64_t>> wanted = {
        {"ping", 3}, {"cosmul", 1}, {"near", 1000000}};
    for (std::size_t i = 0; i < mix.size(); ++i) {
        EXPECT_EQ(mix[i].kind->name, wanted[i].first);
        EXPECT_EQ(mix[i].weight, wanted[i].second);
    }
}

TEST(Mix, RefusesWhatItCannotAsk) {
    for (const char* text : {"", ",", "near,", "NEAR", "reload", "stats=1", " near"})
        EXPECT_NE(refusal(text).find("there is no '"), std::string::npos) << text;
    EXPECT_NE(refusal("stats").find("near, nearvec, analogy"), std::string::npos);
    for (const char* text : {"near=", "near=0", "near=-1", "near=1.5", "near=1000001", "near=1=2"})
        EXPECT_NE(refusal(text).find("--mix, near takes"), std::string::npos) << text;
    EXPECT_EQ(refusal("near,sim,near=2"), "--mix has 'near' twice");
}

TEST(Mix, KnowsWhatItsRequestsNeed) {
    EXPECT_FALSE(bench::needs_words(bench::parse_mix("ping")));
    EXPECT_TRUE(bench::needs_words(bench::parse_mix("ping,has")));
    EXPECT_TRUE(bench::needs_words(bench::parse_mix("nearvec")));
    EXPECT_FALSE(bench::needs_vectors(bench::parse_mix("near,vec")));
    EXPECT_TRUE(bench::needs_vectors(bench::parse_mix("nearvec")));
}

/// Requests of every kind for words that must be quoted.
bench::RequestPool odd_requests(std::size_t count, std::uint64_t seed) {
    bench::RequestOptions options;
    options.mix = bench::parse_mix(
        "near=8,nearvec,analogy,cosmul,rank,sim,dist,vec,odd,matrix,prefix,has,ping");
    options.k = 7;
    options.count = count;
    options.seed = seed;
    options.words = {"king", "k=3", "+", "new york", "a\"b\\c", "\xc3\xa9", "\xff"};
    options.vectors = {"-1.5\t2e-05\t3"};
    return bench::RequestPool(options);
}

TEST(RequestPool, HasRequestsThatTheDaemonUnderstands) {
    const bench::RequestPool pool = odd_requests(500, 1);
    ASSERT_EQ(pool.size(), 500U);
    for (std::size_t i = 0; i < pool.size(); ++i) {
        std::string line(pool.lines(i, i + 1));
        ASSERT_TRUE(line.ends_with('\n'));
        line.pop_back();
        const auto request = wire::parse_request(line);
        ASSERT_TRUE(request) << line << ": " << request.error().message;
    }
    // A part's requests have its verb, and neighbours are one text.
    const auto first = std::string(pool.lines(0, 1));
    EXPECT_EQ(std::string(pool.lines(0, 2)), first + std::string(pool.lines(1, 2)));
    EXPECT_EQ(pool.lines(500, 500), "");
}

TEST(RequestPool, IsTheSameForTheSameSeed) {
    const auto text = [](const bench::RequestPool& pool) {
        return std::string(pool.lines(0, pool.size()));
    };
    EXPECT_EQ(text(odd_requests(100, 1)), text(odd_requests(100, 1)));
    EXPECT_NE(text(odd_requests(100, 1)), text(odd_requests(100, 2)));
}

TEST(RequestPool, FollowsTheWeights) {
    const bench::RequestPool pool = odd_requests(20000, 3);
    std::vector<std::size_t> counts(13);
    for (std::size_t i = 0; i < pool.size(); ++i) ++counts[pool.part(i)];
    EXPECT_NEAR(static_cast<double>(counts[0]), 8000, 400);
    for (std::size_t part = 1; part < 13; ++part)
        EXPECT_NEAR(static_cast<double>(counts[part]), 1000, 150);
}

TEST(RequestPool, HasAShareOfEveryPartChecked) {
    const bench::RequestPool pool = odd_requests(20000, 3);
    EXPECT_TRUE(bench::choose_checked(pool, 13, 0).empty());
    EXPECT_EQ(bench::choose_checked(pool, 13, 1).size(), pool.size());
    // The first of each part, however small the share.
    EXPECT_EQ(bench::choose_checked(pool, 13, 1e-6).size(), 13U);
    const auto tenth = bench::choose_checked(pool, 13, 0.1);
    EXPECT_NEAR(static_cast<double>(tenth.size()), 2006, 13);
    EXPECT_TRUE(std::ranges::is_sorted(tenth));
    std::vector<std::size_t> counts(13);
    for (const std::size_t i : tenth) ++counts[pool.part(i)];
    EXPECT_NEAR(static_cast<double>(counts[0]), 800, 40);
    EXPECT_NEAR(static_cast<double>(counts[12]), 100, 15);
}

TEST(LatencyHistogram, IsRightToItsBuckets) {
    bench::LatencyHistogram latencies;
    EXPECT_EQ(latencies.percentile_ns(0.5), 0U);
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 100'000; ++i) all.push_back(i * i / 7);
    for (const std::int64_t ns : all) latencies.add(ns);
    EXPECT_EQ(latencies.count(), all.size());
    for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto exact = static_cast<double>(
            all[static_cast<std::size_t>(share * static_cast<double>(all.size())) - 1]);
        const auto found = static_cast<double>(latencies.percentile_ns(share));
        EXPECT_GE(found, exact) << share;
        EXPECT_LE(found, exact * (1 + 1.0 / 64) + 1) << share;
    }
    EXPECT_EQ(latencies.percentile_ns(1), static_cast<std::uint64_t>(all.back()));
}

TEST(LatencyHistogram, CountsShortOnesExactlyAndLongOnesToo) {
    bench::LatencyHistogram latencies;
    for (std::int64_t ns = 1; ns <= 100; ++ns) latencies.add(ns);
    EXPECT_EQ(latencies.percentile_ns(0.5), 50U);
    EXPECT_EQ(latencies.percentile_ns(0.01), 1U);
    bench::LatencyHistogram others;
    others.add(-5);
    others.add(std::int64_t{1} << 60);
    EXPECT_EQ(others.percentile_ns(0.5), 0U);
    EXPECT_EQ(others.percentile_ns(0.51), std::uint64_t{1} << 60);
    latencies.add(others);
    EXPECT_EQ(latencies.count(), 102U);
    EXPECT_EQ(latencies.max_ns(), std::uint64_t{1} << 60);
    EXPECT_EQ(latencies.percentile_ns(0.5), 50U);
}

TEST(OpenLoop, SpreadsRequestsEvenlyOverConnections) {
    const bench::OpenLoop schedule(1000, 4);
    EXPECT_EQ(schedule.due_ns(0, 0), 0);
    EXPECT_EQ(schedule.due_ns(3, 0), 3'000'000);
    EXPECT_EQ(schedule.due_ns(1, 2), 9'000'000);
    EXPECT_EQ(schedule.count_due(0, -1), 0U);
    EXPECT_EQ(schedule.count_due(0, 0), 1U);
    EXPECT_EQ(schedule.count_due(1, 999'999), 0U);
    EXPECT_EQ(schedule.count_due(1, 1'000'000), 1U);
    EXPECT_EQ(schedule.count_due(1, 8'999'999), 2U);
    EXPECT_EQ(schedule.count_due(1, 9'000'000), 3U);
}

TEST(OpenLoop, CountsWhatIsDueAtAnyRate) {
    for (const double rate : {1.0, 3.0, 7777.0, 999'983.0, 1e9}) {
        for (const std::uint64_t connections : {1U, 3U, 1000U}) {
            const bench::OpenLoop schedule(rate, connections);
            std::uint64_t sum = 0;
            for (std::uint64_t one = 0; one < connections; ++one) {
                const std::uint64_t count = schedule.count_due(one, 4'999'999'999);
                sum += count;
                if (count > 0) {
                    EXPECT_LE(schedule.due_ns(one, count - 1), 4'999'999'999);
                }
                EXPECT_GT(schedule.due_ns(one, count), 4'999'999'999);
            }
            EXPECT_NEAR(static_cast<double>(sum), rate * 5, 1) << rate << ' ' << connections;
        }
    }
}

TEST(OpenLoop, CountsARequestFromTheNanosecondInWhichItIsDue) {
    // Slow enough for at most one request in a nanosecond. Intervals are not whole nanoseconds.
    for (const double rate : {3.0, 7777.0, 999'983.0}) {
        const bench::OpenLoop schedule(rate, 7);
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            const std::int64_t due_ns = schedule.due_ns(5, i);
            ASSERT_EQ(schedule.count_due(5, due_ns), i + 1) << rate;
            ASSERT_EQ(schedule.count_due(5, due_ns - 1), i) << rate;
        }
    }
}

bench::LoadFigures two_parts() {
    bench::LoadFigures figures{.counts = bench::LoadCounts(2)};
    figures.parts = {"near", "ping"};
    figures.seconds = 2;
    figures.wall_seconds = 4;
    figures.own_cpu_seconds = 1;
    for (int i = 0; i < 4; ++i) figures.counts.latencies[0].add(2'000'000);
    figures.counts.latencies[1].add(5'000);
    figures.counts.answers_in_time = {3, 1};
    figures.counts.add_error(1, "busy");
    figures.counts.add_error(1, "busy");
    figures.counts.checked = 1234;
    return figures;
}

TEST(LoadReport, HasARowForEachPartForAllAndForTheLoneClient) {
    bench::LoadFigures figures = two_parts();
    figures.lone = figures.counts;
    const auto rows = bench::answers_table(figures).rows();
    ASSERT_EQ(rows.size(), 5U);
    EXPECT_EQ(rows[1], (std::vector<std::string>{"near", "4", "1.500", "2000", "2000", "2000",
                                                 "2000", "0"}));
    EXPECT_EQ(rows[2], (std::vector<std::string>{"ping", "1", "0.500", "5.000", "5.000", "5.000",
                                                 "5.000", "2"}));
    EXPECT_EQ(rows[3][0], "all");
    EXPECT_EQ(rows[3][1], "5");
    EXPECT_EQ(rows[3][7], "2");
    EXPECT_EQ(rows[4][0], "lone client");
}

TEST(LoadReport, DividesProcessorTimeByAllAnswers) {
    bench::LoadFigures figures = two_parts();
    EXPECT_EQ(bench::processor_table(figures).rows().size(), 2U);
    figures.daemon_cpu_seconds = 8;
    const auto rows = bench::processor_table(figures).rows();
    EXPECT_EQ(rows[1], (std::vector<std::string>{"gloved-bench", "1.000", "200000", "0.250"}));
    EXPECT_EQ(rows[2], (std::vector<std::string>{"daemon", "8.000", "1600000", "2.000"}));
}

TEST(LoadReport, NamesErrorsAndWhatWasNotAnswered) {
    bench::LoadFigures figures = two_parts();
    EXPECT_EQ(
        bench::load_notes(figures),
        (std::vector<std::string>{"checked    1,234 answers, 0 wrong", "ERR        busy: 2"}));
    figures.lone = figures.counts;
    figures.lone->add_error(0, "timeout");
    figures.counts.unsent = 5;
    figures.counts.unanswered = 6;
    const auto notes = bench::load_notes(figures);
    ASSERT_EQ(notes.size(), 5U);
    EXPECT_EQ(notes[0], "checked    2,468 answers, 0 wrong");
    EXPECT_EQ(notes[1], "ERR        busy: 4");
    EXPECT_EQ(notes[2], "ERR        timeout: 1");
    EXPECT_EQ(notes[3], "unsent     5 requests were due, but the daemon did not take them");
    EXPECT_EQ(notes[4], "unanswered 6 requests, when it stopped waiting");
}

TEST(LoadReport, ShowsAWrongAnswerFromTheLineThatDiffers) {
    const bench::WrongAnswer wrong = {"SIM a b\n", "OK 3 us=1\nsame\nright\nend\n",
                                      "OK 3 us=9\nsame\nwrong\nend\n"};
    EXPECT_EQ(bench::wrong_answer_text(wrong),
              (std::vector<std::string>{
                  "request: SIM a b", "right reply: OK 3 us=1", "  line 2: right", "  line 3: end",
                  "wrong reply: OK 3 us=9", "  line 2: wrong", "  line 3: end"}));
    const bench::WrongAnswer refused = {"PING\n", "ERR busy no\n",
                                        "OK 8\n1\n2\n3\n4\n5\n6\n7\n8\n"};
    EXPECT_EQ(bench::wrong_answer_text(refused).back(), "  … 3 more lines");
}

}  // namespace
}  // namespace gloved::tests
