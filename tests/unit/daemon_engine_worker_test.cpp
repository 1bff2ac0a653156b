// EngineWorker with an engine that only notes what it is asked.
#include "daemon/engine_worker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/vocabulary.hpp"
#include "kernels/query_vector.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::daemon {
namespace {

using namespace std::chrono_literals;

/// Takes `first` for a query, and `more` for each that shares its batch.
class NotingEngine : public kernels::Engine {
  public:
    NotingEngine(std::vector<std::size_t>& batches, std::vector<std::size_t>& largest_k,
                 std::chrono::milliseconds first, std::chrono::milliseconds more)
        : batches_(batches), largest_k_(largest_k), first_(first), more_(more) {}
    kernels::EngineKind kind() const override { return kernels::EngineKind::cpu; }
    std::string description() const override { return "notes"; }
    Result<std::vector<kernels::Answer>> run(std::span<const kernels::Query> queries,
                                             const std::function<void()>&) override {
        batches_.push_back(queries.size());
        largest_k_.push_back(std::ranges::max_element(queries, {}, &kernels::Query::k)->k);
        std::this_thread::sleep_for(first_ + more_ * (queries.size() - 1));
        std::vector<kernels::Answer> answers(queries.size());
        for (kernels::Answer& answer : answers) answer.certificate.pass = kernels::Pass::plane;
        return answers;
    }

  private:
    std::vector<std::size_t>& batches_;
    std::vector<std::size_t>& largest_k_;
    const std::chrono::milliseconds first_;
    const std::chrono::milliseconds more_;
};

/// Waits for jobs.
class Client final : public JobReceiver {
  public:
    void receive(std::vector<std::shared_ptr<Job>> jobs) override {
        const std::lock_guard lock(mutex_);
        answered_ += jobs.size();
        changed_.notify_all();
    }
    /// False if so many are not answered within half a minute.
    bool wait_for(std::size_t answered) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 30s, [&] { return answered_ >= answered; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t answered_ = 0;
};

class EngineWorkerTest : public testing::Test {
  protected:
    EngineWorkerTest() { settings_.io_threads = 2; }
    void start(std::chrono::milliseconds first, std::chrono::milliseconds more) {
        worker_ = nullptr;
        batches_.clear();
        largest_k_.clear();
        worker_ = std::make_unique<EngineWorker>(
            "m", model_, std::make_unique<NotingEngine>(batches_, largest_k_, first, more),
            settings_);
    }
    void ask(Client& client, std::size_t loop, std::size_t k = 10) {
        auto job = std::make_shared<Job>();
        job->connection = loop + 1;
        job->receiver = &client;
        job->times.arrived = Clock::now();
        const kernels::WeightedRow row{1.0, 0};
        job->resolved.query.k = k;
        job->resolved.query.kind =
            kernels::Cosine{*kernels::make_query_vector(*model_, {&row, 1}, false)};
        EXPECT_TRUE(worker_->submit(std::move(job), loop, false));
    }

    tests::TempDir dir_;
    const std::shared_ptr<const format::Model> model_ = std::make_shared<const format::Model>(
        tests::make_model(dir_ / "m", tests::random_entries(300, 8, 1)));
    Settings settings_;
    std::vector<std::size_t> batches_;    // sizes
    std::vector<std::size_t> largest_k_;  // of each batch
    std::unique_ptr<EngineWorker> worker_;
};

/// By turns, all batches but a few by chance have one query. A busy machine may wake a client too
/// late; not in each of ten trials.
TEST_F(EngineWorkerTest, ClientsThatAskAgainAtOnceShareBatches) {
    constexpr std::size_t kRounds = 300;
    std::ptrdiff_t shared = 0;
    for (int trial = 0; trial < 10 && shared < 150; ++trial) {
        start(2ms, 0ms);
        std::vector<Client> clients(2);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < clients.size(); ++i) {
            threads.emplace_back([&, i] {
                for (std::size_t round = 1; round <= kRounds; ++round) {
                    ask(clients[i], i);
                    ASSERT_TRUE(clients[i].wait_for(round));
                    // Longer than a worker takes that does not wait.
                    std::this_thread::sleep_for(i == 0 ? 20us : 100us);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        worker_->stop();
        shared = std::ranges::count(batches_, 2U);
    }
    EXPECT_GE(shared, 150);
}

/// One of four takes two and a half times as long as one of one. A busy machine may teach the
/// worker other times; not in each of ten trials.
TEST_F(EngineWorkerTest, BatchesThatALoneClientWaitsForAreSmaller) {
    constexpr std::size_t kAhead = 150;
    constexpr std::size_t kLoneK = 20;
    double with_lone = 0;
    double without = 0;
    for (int trial = 0; trial < 10 && !(with_lone <= 2.5 && without >= 3); ++trial) {
        start(8ms, 4ms);
        Client ahead;
        Client lone;
        bool came = true;
        for (std::size_t round = 1; came && round <= 20; ++round) {
            // Not before the worker knows what a query costs.
            for (std::size_t i = 0; round == 3 && i < kAhead; ++i) ask(ahead, 0);
            ask(lone, 1, kLoneK);
            came = lone.wait_for(round);
        }
        came = came && ahead.wait_for(kAhead);
        worker_->stop();
        ASSERT_TRUE(came);
        std::array<double, 2> queries{};
        std::array<double, 2> batches{};
        // Those before taught it how long batches take; the last are what was left.
        for (std::size_t i = 8; i + 2 < batches_.size(); ++i) {
            const std::size_t has_lone = largest_k_[i] == kLoneK ? 1 : 0;
            queries.at(has_lone) += static_cast<double>(batches_[i]);
            ++batches.at(has_lone);
        }
        without = queries[0] / batches[0];
        with_lone = queries[1] / batches[1];
    }
    EXPECT_LE(with_lone, 2.5);
    EXPECT_GE(without, 3);
}

}  // namespace
}  // namespace gloved::daemon
