#include "common/result.hpp"
#include "tools/source/ordered_pipeline.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <thread>
#include <vector>

namespace gloved::source {
namespace {

struct Item {
    int input = 0;
    int output = 0;
};

TEST(OrderedPipeline, KeepsTheOrderWhateverTheThreads) {
    for (const std::size_t threads : {0U, 1U, 2U, 3U, 8U}) {
        int next = 0;
        std::vector<int> results;
        const Status done = run_ordered<Item>(
            threads,
            [&](Item& item) -> Result<bool> {
                item.input = next;
                return next++ < 1000;
            },
            [](Item& item) {
                // Every fifth takes longer, so that later ones overtake it.
                if (item.input % 5 == 0)
                    std::this_thread::sleep_for(std::chrono::microseconds(100));
                item.output = item.input * item.input;
            },
            [&](Item& item) -> Status {
                results.push_back(item.output);
                return {};
            });
        ASSERT_TRUE(done);
        ASSERT_EQ(results.size(), 1000U);
        for (int i = 0; i < 1000; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], i * i);
    }
}

TEST(OrderedPipeline, ReportsTheFirstFaultOfTheStream) {
    // consume fails at 7, produce at 9 and so earlier in time, but not in the stream.
    int next = 0;
    int consumed = 0;
    const Status done = run_ordered<Item>(
        3,
        [&](Item& item) -> Result<bool> {
            if (next == 9) return Error{ErrorCode::io, "producer"};
            item.input = next++;
            return true;
        },
        [](Item&) {},
        [&](Item& item) -> Status {
            if (item.input == 7) return Error{ErrorCode::io, "consumer"};
            ++consumed;
            return {};
        });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "consumer");
    EXPECT_EQ(consumed, 7);
}

TEST(OrderedPipeline, ConsumesWhatCameBeforeAFailingProducer) {
    int next = 0;
    int consumed = 0;
    const Status done = run_ordered<Item>(
        2,
        [&](Item&) -> Result<bool> {
            if (next++ == 5) return Error{ErrorCode::io, "producer"};
            return true;
        },
        [](Item&) {},
        [&](Item&) -> Status {
            ++consumed;
            return {};
        });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "producer");
    EXPECT_EQ(consumed, 5);
}

TEST(OrderedPipeline, PassesExceptionsOn) {
    int next = 0;
    const auto run = [&] {
        (void)run_ordered<Item>(
            2, [&](Item& item) -> Result<bool> { return (item.input = next++) < 100; },
            [](Item& item) {
                if (item.input == 50) throw std::runtime_error("worker");
            },
            [](Item&) -> Status { return {}; });
    };
    EXPECT_THROW(run(), std::runtime_error);
}

}  // namespace
}  // namespace gloved::source
