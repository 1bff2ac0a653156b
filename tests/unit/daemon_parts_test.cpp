// The parts of the daemon that need no socket.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/control_groups.hpp"
#include "daemon/answer_poll.hpp"
#include "daemon/cost_model.hpp"
#include "daemon/fair_queue.hpp"
#include "daemon/gathering.hpp"
#include "daemon/histogram.hpp"
#include "daemon/memory_check.hpp"
#include "daemon/rank_cache.hpp"
#include "daemon/settings.hpp"
#include "kernels/thread_pool.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::daemon {
namespace {

std::vector<int> all_of(FairQueue<int>& queue) {
    std::vector<int> order;
    while (const auto value = queue.pop()) order.push_back(*value);
    return order;
}

TEST(FairQueue, TakesFromSourcesInTurnAndKeepsEachOnesOrder) {
    FairQueue<int> queue;
    for (int i = 0; i < 5; ++i) queue.push(1, 10 + i);
    queue.push(2, 20);
    queue.push(3, 30);
    queue.push(2, 21);
    EXPECT_EQ(queue.size(), 8U);
    EXPECT_EQ(all_of(queue), (std::vector<int>{10, 20, 30, 11, 21, 12, 13, 14}));
    EXPECT_EQ(queue.size(), 0U);
}

TEST(FairQueue, IsMixedWhileSomeSourcesHaveOneEntryAndOthersSeveral) {
    FairQueue<int> queue;
    const auto mixed_after_push = [&](std::uint64_t source) {
        queue.push(source, 0);
        return queue.is_mixed();
    };
    EXPECT_FALSE(queue.is_mixed());
    EXPECT_FALSE(mixed_after_push(1));
    EXPECT_FALSE(mixed_after_push(2));
    EXPECT_TRUE(mixed_after_push(1));
    EXPECT_TRUE(mixed_after_push(1));
    EXPECT_FALSE(mixed_after_push(2));
    std::vector<bool> mixed;  // of sources 1 and 2, which had three and two
    while (queue.pop()) mixed.push_back(queue.is_mixed());
    EXPECT_EQ(mixed, (std::vector<bool>{false, true, false, false, false}));
}

TEST(FairQueue, AnUrgentSourceIsNext) {
    FairQueue<int> queue;
    for (int source = 1; source < 5; ++source)
        queue.push(static_cast<std::uint64_t>(source), 10 * source);
    queue.push(0, 1, true);
    EXPECT_EQ(all_of(queue), (std::vector<int>{1, 10, 20, 30, 40}));
}

/// A RANK of row 7 with this vector.
kernels::Query rank_query(std::vector<float> values) {
    kernels::Query query;
    query.kind = kernels::CountBefore{{std::move(values), 1}, 7};
    return query;
}

RankCache::Order order_of(std::size_t rows) {
    RankCache::Order order;
    for (std::size_t i = 0; i < rows; ++i)
        order.push_back({static_cast<kernels::Row>(i), 1 - 0.001 * static_cast<double>(i)});
    return order;
}

TEST(RankCache, KeysAreEqualForRanksInOneOrderAlone) {
    const auto base = rank_query({1, 2});
    const std::string key = RankCache::key_of(base);
    auto same = base;
    std::get<kernels::CountBefore>(same.kind).row = 8;
    same.k = 99;
    EXPECT_EQ(RankCache::key_of(same), key);
    const kernels::RowLists lists;
    const kernels::RowLists other_lists;
    same.filter.lists = &lists;
    EXPECT_EQ(RankCache::key_of(same), key) << "it names none";
    std::vector<kernels::Query> others(9, base);
    for (kernels::Query& other : others) other.filter.lists = &lists;
    std::get<kernels::CountBefore>(others[0].kind).vector.values[1] = 3;
    others[1].filter.rank_below = 10;
    others[2].filter.rows = kernels::RowRange{0, 0};
    others[3].filter.min_score = 0.5;
    others[4].filter.within = 1;
    others[5].filter.without = 1;
    others[6].excluded = {3};
    others[7].filter.rows = kernels::RowRange{0, 5};
    others[8].filter.within = 1;
    others[8].filter.lists = &other_lists;
    std::set<std::string> keys = {key};
    for (const kernels::Query& other : others) keys.insert(RankCache::key_of(other));
    EXPECT_EQ(keys.size(), 1 + others.size());
}

TEST(RankCache, CountsWhatComesBeforeAHit) {
    const RankCache::Order order = {{5, 0.9}, {2, 0.5}, {8, 0.5}, {1, -0.5}};
    const auto before = [&](kernels::Row row, double score) {
        return RankCache::count_before(order, {row, score});
    };
    EXPECT_EQ(before(5, 0.9), 0U);
    EXPECT_EQ(before(2, 0.5), 1U);
    EXPECT_EQ(before(4, 0.5), 2U);  // not in the order, between equal scores
    EXPECT_EQ(before(8, 0.5), 2U);
    EXPECT_EQ(before(9, 0.5), 3U);
    EXPECT_EQ(before(1, -0.5), 3U);
    EXPECT_EQ(before(0, -0.9), 4U);
    EXPECT_EQ(before(0, std::nan("")), 0U);
    EXPECT_EQ(RankCache::count_before({}, {0, 1}), 0U);
}

TEST(RankCache, DropsWhatWasNotUsedForLongest) {
    RankCache cache(10000);
    EXPECT_TRUE(cache.has_room_for("a", 600));
    EXPECT_FALSE(cache.has_room_for("a", 625));
    EXPECT_FALSE(cache.has_room_for(std::string(10001, 'a'), 0));
    for (const char* key : {"a", "b", "c"}) cache.keep(key, order_of(180));
    EXPECT_GT(cache.bytes(), 3U * 180 * 16);
    ASSERT_NE(cache.find("a"), nullptr);
    EXPECT_EQ(*cache.find("a"), order_of(180));
    cache.keep("d", order_of(100));
    EXPECT_NE(cache.find("a"), nullptr);
    EXPECT_EQ(cache.find("b"), nullptr);
    EXPECT_NE(cache.find("c"), nullptr);
    EXPECT_NE(cache.find("d"), nullptr);
    EXPECT_LE(cache.bytes(), 10000U);
    cache.keep("e", order_of(625));
    EXPECT_EQ(cache.find("e"), nullptr);
    EXPECT_NE(cache.find("d"), nullptr);
    const std::size_t bytes = cache.bytes();
    cache.keep("d", order_of(100));
    EXPECT_EQ(cache.bytes(), bytes);
    RankCache off(0);
    EXPECT_FALSE(off.has_room_for("a", 1));
    off.keep("a", {});
    EXPECT_EQ(off.find("a"), nullptr);
}

TEST(RankCache, CountsTheRequestsOfLately) {
    RankCache cache(10000);
    EXPECT_FALSE(cache.reaches("a", 3));
    EXPECT_FALSE(cache.reaches("a", 3));
    for (int i = 0; i < 255; ++i) EXPECT_FALSE(cache.reaches(std::to_string(i), 2));
    EXPECT_TRUE(cache.reaches("a", 3));
    EXPECT_FALSE(cache.reaches("a", 2));  // it begins again
    EXPECT_FALSE(cache.reaches("b", 2));  // in the place of a
    EXPECT_FALSE(cache.reaches("a", 2));
    EXPECT_TRUE(cache.reaches("254", 2));
}

constexpr std::chrono::microseconds kUs{1};

TEST(Gathering, WaitsForTheGainFromTheAnswersOn) {
    Gathering gathering;
    const Clock::time_point begun{std::chrono::hours(1)};
    gathering.begin(8, begun);
    EXPECT_EQ(gathering.expected(), 8U);
    EXPECT_EQ(gathering.until(0.2, begun), begun + 200 * kUs);
    EXPECT_EQ(gathering.until(0.2, begun + 199 * kUs), begun + 200 * kUs);
    EXPECT_EQ(gathering.until(0.2, begun + 200 * kUs), std::nullopt);
    EXPECT_EQ(gathering.until(0, begun), std::nullopt);
    EXPECT_EQ(gathering.until(-1, begun), std::nullopt);
    EXPECT_EQ(gathering.until(std::nan(""), begun), std::nullopt);
    // A gain of seconds is no reason to wait longer than clients usually take.
    EXPECT_EQ(gathering.until(5000, begun), begun + 400 * kUs);
}

TEST(Gathering, LearnsHowLongClientsTake) {
    Gathering gathering;
    const Clock::time_point begun{std::chrono::hours(1)};
    for (int i = 0; i < 100; ++i) {
        gathering.begin(8, begun);
        gathering.end(true, begun + 50 * kUs);
    }
    EXPECT_NEAR(static_cast<double>((*gathering.until(5000, begun) - begun) / kUs), 200, 2);
}

TEST(Gathering, LeavesOutMoreAndMoreWaitsWhereClientsDoNotComeBack) {
    Gathering gathering;
    const Clock::time_point begun{std::chrono::hours(1)};
    gathering.begin(8, begun);
    std::vector<int> left_out;
    for (int wait = 0; wait < 9; ++wait) {
        int before = 0;
        while (!gathering.until(1, begun)) ++before;
        left_out.push_back(before);
        gathering.end(false, begun + 300 * kUs);
        EXPECT_FALSE(gathering.is_due());
    }
    EXPECT_EQ(left_out, (std::vector<int>{0, 1, 3, 7, 15, 31, 63, 127, 127}));
    while (!gathering.until(1, begun)) {
    }
    gathering.end(true, begun + 100 * kUs);
    EXPECT_TRUE(gathering.is_due());
}

TEST(AnswerPoll, SleepsUntilAnswersAreNearlyDue) {
    AnswerPoll poll;
    const Clock::time_point begun{std::chrono::hours(1)};
    EXPECT_FALSE(poll.is_polling(begun));
    const auto due = poll.submitted(begun);
    const std::chrono::nanoseconds sleep{127500};
    EXPECT_EQ(due, begun + sleep);
    EXPECT_EQ(poll.submitted(begun + 5 * kUs), std::nullopt);  // it will wake for the first
    EXPECT_FALSE(poll.is_polling(*due));
    poll.wake(*due);
    EXPECT_TRUE(poll.is_polling(*due + 44 * kUs));
    EXPECT_FALSE(poll.is_polling(*due + 46 * kUs));
    // The other is still to come.
    EXPECT_EQ(poll.returned(1, begun + 150 * kUs), begun + 150 * kUs + sleep);
    EXPECT_FALSE(poll.is_polling(*due + 44 * kUs));
    EXPECT_EQ(poll.returned(1, begun + 300 * kUs), std::nullopt);
    EXPECT_FALSE(poll.is_polling(begun + 300 * kUs));
    EXPECT_EQ(poll.returned(0, begun + 300 * kUs), std::nullopt);
    // A job that is not taken says nothing of waits.
    EXPECT_EQ(poll.submitted(begun), begun + sleep);
    poll.refused();
    EXPECT_EQ(poll.submitted(begun), begun + sleep);
}

TEST(AnswerPoll, LearnsHowLongAnswersTakeAndSleepsThroughLongWaits) {
    AnswerPoll poll;
    Clock::time_point now{std::chrono::hours(1)};
    const auto wait = [&](std::chrono::microseconds time) {
        const auto due = poll.submitted(now);
        poll.returned(1, now + time);
        return due ? std::optional((*due - now) / kUs) : std::nullopt;
    };
    for (int i = 0; i < 50; ++i) wait(300 * kUs);
    EXPECT_NEAR(static_cast<double>(wait(300 * kUs).value()), 255, 2);
    for (int i = 0; i < 50; ++i) wait(5000 * kUs);
    EXPECT_EQ(wait(5000 * kUs), std::nullopt);
    for (int i = 0; i < 50; ++i) wait(100 * kUs);
    EXPECT_NEAR(static_cast<double>(wait(100 * kUs).value()), 85, 2);
}

TEST(AnswerPoll, PollsThroughoutWithManyJobsInFlight) {
    AnswerPoll poll;
    const Clock::time_point begun{std::chrono::hours(1)};
    for (int i = 0; i < 31; ++i) (void)poll.submitted(begun);
    EXPECT_FALSE(poll.is_polling(begun));
    (void)poll.submitted(begun + 10 * kUs);
    EXPECT_TRUE(poll.is_polling(begun + 2009 * kUs));
    EXPECT_FALSE(poll.is_polling(begun + 2010 * kUs));  // the engine hangs
    (void)poll.returned(1, begun + 20 * kUs);
    EXPECT_FALSE(poll.is_polling(begun + 20 * kUs));
}

/// The most vectors whose predicted cost is within the budget, but at least one: what the daemon
/// takes.
std::size_t batch_of(const CostModel& costs, double budget_ms) {
    std::size_t vectors = 1;
    while (vectors < CostModel::kMaxVectors && costs.predict_ms(vectors + 1) <= budget_ms)
        ++vectors;
    return vectors;
}

TEST(CostModel, TakesTheFirstMeasurementForTheGuessAndThenBlends) {
    CostModel costs(100.0);
    EXPECT_EQ(costs.single_ms(), 100.0);
    EXPECT_EQ(costs.predict_ms(0), 0.0);
    costs.learn(1, 10.0);
    EXPECT_EQ(costs.single_ms(), 10.0);
    costs.learn(1, 20.0);
    EXPECT_GT(costs.single_ms(), 10.0);
    EXPECT_LT(costs.single_ms(), 20.0);
    for (std::size_t vectors = 1; vectors < 300; ++vectors) {
        EXPECT_LE(costs.predict_ms(vectors), costs.predict_ms(vectors + 1)) << vectors;
    }
}

TEST(CostModel, FindsTheBatchThatFitsTheBudgetWithoutLeaps) {
    // 60 ms up to 16 vectors, then 3 ms each: what an engine bound first by memory, then by
    // arithmetic, takes.
    const auto truth = [](std::size_t vectors) {
        return std::max(60.0, 3.0 * static_cast<double>(vectors));
    };
    CostModel costs(60.0);
    std::size_t before = 1;
    for (int round = 0; round < 40; ++round) {
        const std::size_t vectors = batch_of(costs, 120.0);
        EXPECT_LE(vectors, 5 * before) << "round " << round;
        before = vectors;
        costs.learn(vectors, truth(vectors));
    }
    EXPECT_GE(before, 32U);
    EXPECT_LE(truth(before), 2 * 120.0);
}

TEST(CostModel, TriesASizeAgainThatOnceWasSlow) {
    CostModel costs(60.0);
    costs.learn(1, 60.0);
    costs.learn(2, 60.0);
    costs.learn(16, 5000.0);
    EXPECT_LT(batch_of(costs, 120.0), 16U);
    std::size_t largest = 0;
    for (int round = 0; round < 2000; ++round) {
        const std::size_t vectors = batch_of(costs, 120.0);
        costs.learn(vectors, 60.0);
        largest = std::max(largest, vectors);
    }
    EXPECT_GE(largest, 16U);
}

TEST(CostModel, OneSlowPassDoesNotMakeBatchesSmall) {
    // 0.16 ms for one query, 0.25 ms for up to 64, and from there 1.5 µs for each.
    const auto truth = [](std::size_t vectors) {
        if (vectors == 1) return 0.16;
        return std::max(0.25, 0.16 + 1.5e-3 * static_cast<double>(vectors));
    };
    CostModel costs(0.2);
    std::size_t best = 0;
    for (int round = 0; round < 200; ++round) {
        best = batch_of(costs, 1.0);
        costs.learn(best, truth(best));
    }
    EXPECT_EQ(best, 512U);
    for (const std::size_t slow : {std::size_t{1}, std::size_t{64}, std::size_t{512}}) {
        costs.learn(slow, 100 * truth(slow));
        EXPECT_GE(batch_of(costs, 1.0), 256U) << "after a slow batch of " << slow;
        for (int round = 0; round < 500; ++round) {
            best = batch_of(costs, 1.0);
            costs.learn(best, truth(best));
        }
        EXPECT_EQ(best, 512U) << "long after a slow batch of " << slow;
    }
}

TEST(CostModel, StaysWithinTheBudgetAfterManySingleQueries) {
    // What a processor takes whose registers carry 16 vectors, by powers of two.
    const auto truth = [](std::size_t vectors) {
        constexpr std::array kMs = {3.35, 3.73, 4.39, 4.67, 5.06, 7.6, 12.3, 24.6, 48.7};
        return kMs.at(static_cast<std::size_t>(std::bit_width(vectors - 1)));
    };
    CostModel costs(30.0);
    for (const int singles : {5, 100, 1500, 20000}) {
        for (int i = 0; i < singles; ++i) costs.learn(1, truth(1));
        int late = 0;
        for (int i = 0; i < 1000; ++i) {
            const std::size_t vectors = batch_of(costs, 2 * truth(1));
            EXPECT_LE(vectors, 32U) << "batch " << i << " after " << singles;
            late += truth(vectors) > 2 * truth(1);
            costs.learn(vectors, truth(vectors));
        }
        EXPECT_LE(late, 250) << "of 1000 batches after " << singles;
    }
}

TEST(Histogram, AddsUpTwo) {
    Histogram all;
    Histogram other;
    all.add(std::chrono::microseconds(3));
    other.add(std::chrono::microseconds(1000));
    other.add(std::chrono::microseconds(5));
    all.add(other);
    EXPECT_EQ(all.count(), 3U);
    EXPECT_EQ(all.sum_us(), 1008.0);
    EXPECT_EQ(all.percentile_us(0.5), 5U);
    EXPECT_EQ(other.count(), 2U);
}

TEST(Histogram, PercentilesAreRightToASixteenth) {
    Histogram histogram;
    EXPECT_EQ(histogram.percentile_us(0.5), 0U);
    std::mt19937 random(3);
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 20000; ++i) {
        const auto us = static_cast<std::uint64_t>(
            std::exp2(std::uniform_real_distribution(0.0, 30.0)(random)));
        all.push_back(us);
        histogram.add(std::chrono::microseconds(us));
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(histogram.count(), all.size());
    for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto place =
            static_cast<std::size_t>(std::ceil(share * static_cast<double>(all.size()))) - 1;
        const auto exact = static_cast<double>(all[place]);
        const auto got = static_cast<double>(histogram.percentile_us(share));
        EXPECT_GE(got, exact) << share;
        EXPECT_LE(got, exact * (1 + 1.0 / 16)) << share;
    }
    for (unsigned power = 0; power <= 31; ++power) {
        const auto below =
            std::lower_bound(all.begin(), all.end(), std::uint64_t{1} << power) - all.begin();
        EXPECT_EQ(histogram.below_power(power), static_cast<std::uint64_t>(below)) << power;
    }
}

TEST(Histogram, TakesWhatIsNegativeOrBeyondAllBounds) {
    Histogram histogram;
    histogram.add(std::chrono::nanoseconds(-5));
    histogram.add(std::chrono::hours(100));
    EXPECT_EQ(histogram.count(), 2U);
    EXPECT_EQ(histogram.percentile_us(0.5), 0U);
    EXPECT_EQ(histogram.percentile_us(1), (std::uint64_t{1} << Histogram::kMaxPower) - 1);
    EXPECT_EQ(histogram.below_power(31), 1U);
}

TEST(ThreadPool, RunsEveryWorkerAndEveryRangeOnce) {
    for (const unsigned threads : {1U, 2U, 5U}) {
        kernels::ThreadPool pool(threads);
        EXPECT_EQ(pool.size(), threads);
        for (int round = 0; round < 50; ++round) {
            std::vector<std::atomic<int>> calls(threads);
            pool.run([&](unsigned worker) { ++calls[worker]; });
            for (const auto& count : calls) EXPECT_EQ(count, 1);
            std::vector<std::atomic<int>> items(1003);
            pool.for_ranges(items.size(), 10, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) ++items[i];
            });
            for (const auto& count : items) ASSERT_EQ(count, 1);
        }
    }
}

TEST(ThreadPool, PassesAnExceptionOnAndStaysUsable) {
    kernels::ThreadPool pool(3);
    EXPECT_THROW(pool.run([](unsigned worker) {
        if (worker == 2) throw std::bad_alloc();
    }),
                 std::bad_alloc);
    std::atomic<int> calls = 0;
    pool.run([&](unsigned) { ++calls; });
    EXPECT_EQ(calls, 3);
}

TEST(ThreadPool, LooksForWorkAndThenSleeps) {
    if (usable_processors() < 2) GTEST_SKIP() << "skipped: there are no two processors";
    const auto becomes = [](bool awake, const kernels::ThreadPool& pool) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (pool.awake() != awake && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return pool.awake() == awake;
    };
    kernels::ThreadPool pool(2, std::chrono::milliseconds(200));
    for (int round = 0; round < 3; ++round) {
        EXPECT_TRUE(becomes(true, pool)) << round;
        EXPECT_TRUE(becomes(false, pool)) << round;
        pool.wake();
    }
    std::atomic<int> calls = 0;
    pool.run([&](unsigned) { ++calls; });
    EXPECT_EQ(calls, 2);
}

TEST(Memory, HasRoomForAFinePlaneThatFits) {
    const tests::TempDir dir;
    tests::make_model(dir / "model", tests::random_entries(10, 3, 1));
    const ModelSetting model{"m", dir / "model"};
    EXPECT_TRUE(check_memory_for_fine_plane(model, true, 1));
    EXPECT_FALSE(check_memory_for_fine_plane(model, true, std::size_t{1} << 60));
}

TEST(ThreadPool, MoreThreadsThanProcessorsSleepAtOnce) {
    const auto begun = std::chrono::steady_clock::now();
    {
        // Its end waits for threads that look for work.
        kernels::ThreadPool pool(usable_processors() + 1, std::chrono::minutes(1));
        pool.run([](unsigned) {});
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(50));
}

}  // namespace
}  // namespace gloved::daemon
