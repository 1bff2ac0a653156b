// Suggester: looks for words that are spelt nearly like an unknown word, on a thread of its own and
// within a time budget.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/asio.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// Searches use at most a fifth of one processor's time; `prepare` is not counted. Any thread may
/// call all functions.
class Suggester {
  public:
    Suggester();
    Suggester(const Suggester&) = delete;
    Suggester& operator=(const Suggester&) = delete;

    /// Has the thread index a model's words (Model::index_words), so that look-ups are quick, then
    /// build its SpellingIndex, so that the first `suggest` is.
    void prepare(const std::shared_ptr<LoadedModel>& loaded);
    /// Has the thread look for words of a model that are spelt nearly like `word`, and call `done`
    /// with them on `loop`. If the budget is spent or 64 searches wait, returns false and never
    /// calls `done`.
    bool suggest(std::shared_ptr<LoadedModel> loaded, std::string word, asio::io_context& loop,
                 std::function<void(std::vector<std::string>)> done);
    /// Drops the waiting searches, without a call of `done`, and ends the thread.
    void stop();

    /// Words that were looked for.
    std::uint64_t searches() const { return searches_; }
    /// Words that were not looked for because the budget was spent.
    std::uint64_t omitted() const { return omitted_; }

  private:
    std::mutex mutex_;  // for the next three
    std::size_t in_flight_ = 0;
    Clock::duration budget_;  // grows with time, up to a limit
    Clock::time_point budget_grown_at_ = Clock::now();
    std::atomic<std::uint64_t> searches_ = 0;
    std::atomic<std::uint64_t> omitted_ = 0;
    asio::thread_pool thread_{1};
};

}  // namespace gloved::daemon
