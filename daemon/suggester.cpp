#include "daemon/suggester.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/process_memory.hpp"

namespace gloved::daemon {
namespace {

/// The budget grows by a fifth of the time that passes, up to a quarter of a second.
constexpr int kBudgetDivisor = 5;
constexpr std::chrono::milliseconds kMaxBudget{250};
constexpr std::size_t kMaxInFlight = 64;

}  // namespace

Suggester::Suggester() : budget_(kMaxBudget) {}

void Suggester::prepare(const std::shared_ptr<LoadedModel>& loaded) {
    asio::post(thread_, [weak = std::weak_ptr(loaded)] {
        if (const auto alive = weak.lock()) {
            // First: until it is built, each look-up is a binary search.
            alive->model().index_words();
            (void)alive->running()->suggest({});
        }
        trim_heap();
    });
}

bool Suggester::suggest(std::shared_ptr<LoadedModel> loaded, std::string word,
                        asio::io_context& loop,
                        std::function<void(std::vector<std::string>)> done) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    budget_ =
        std::min<Clock::duration>(kMaxBudget, budget_ + (now - budget_grown_at_) / kBudgetDivisor);
    budget_grown_at_ = now;
    if (in_flight_ >= kMaxInFlight || budget_ <= Clock::duration::zero()) {
        ++omitted_;
        return false;
    }
    asio::post(thread_, [this, &loop, loaded = std::move(loaded), word = std::move(word),
                         done = std::move(done)]() mutable {
        const auto begun = Clock::now();
        auto found = loaded->running()->suggest(word);
        loaded.reset();
        {
            const std::lock_guard charging(mutex_);
            --in_flight_;
            budget_ -= Clock::now() - begun;
        }
        // `done` moves along: what it refers to belongs to the loop's thread.
        asio::post(loop, [found = std::move(found), done = std::move(done)]() mutable {
            done(std::move(found));
        });
    });
    ++in_flight_;
    ++searches_;
    return true;
}

void Suggester::stop() {
    thread_.stop();
    thread_.join();
}

}  // namespace gloved::daemon
