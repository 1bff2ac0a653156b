// Searches near spellings of unknown words on a thread of its own, within a time budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/asio.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Spends at most a fifth of one processor. All functions run on the loop thread.
class Suggester {
  public:
    /// `loop` outlives it.
    explicit Suggester(asio::io_context& loop);
    Suggester(const Suggester&) = delete;
    Suggester& operator=(const Suggester&) = delete;

    /// Builds a model's index of spellings.
    void prepare(const std::shared_ptr<LoadedModel>& loaded);
    /// Looks for words of a model that are spelt nearly like `word`, and calls `done` on the loop.
    /// False, and never, when the budget is spent.
    bool suggest(std::shared_ptr<LoadedModel> loaded, std::string word,
                 std::function<void(std::vector<std::string>)> done);
    /// Ends the thread.
    void stop();

    std::uint64_t searches() const { return searches_; }
    /// Words that the budget left without a search.
    std::uint64_t omitted() const { return omitted_; }

  private:
    asio::io_context& loop_;
    std::size_t in_flight_ = 0;
    Clock::duration budget_;  // grows with time, up to a limit
    Clock::time_point budget_grown_at_ = Clock::now();
    std::uint64_t searches_ = 0;
    std::uint64_t omitted_ = 0;
    asio::thread_pool thread_{1};
};

}  // namespace gloved::daemon
