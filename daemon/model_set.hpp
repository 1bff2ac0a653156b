// The models that the daemon serves: loads them, replaces them on reload, frees the old ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "daemon/asio.hpp"
#include "daemon/loaded_model.hpp"
#include "daemon/settings.hpp"

namespace gloved::daemon {

/// The models in the order of the settings; the first is the default. Loads one at a time, on a
/// thread of its own. A reload waits until the last replaced model is freed, since memory has room
/// for one more. All functions run on the loop thread.
class ModelSet {
  public:
    using Models = std::vector<std::shared_ptr<LoadedModel>>;

    /// What happens to models; called on the loop thread.
    struct Events {
        /// A model took the place of another.
        std::function<void(const std::shared_ptr<LoadedModel>&)> on_replaced;
        /// An engine or a model's files failed.
        std::function<void(const Error&)> on_fault;
        /// A device failed while a model was loaded on it.
        std::function<void()> on_device_error;
        /// Closes the connections that wait for answers of replaced models: a reload needs the
        /// memory.
        std::function<void(const Models&)> close_readers;
    };

    /// `settings` and `loop` outlive it.
    ModelSet(const Settings& settings, Loader load, asio::io_context& loop, Events events);
    ModelSet(const ModelSet&) = delete;
    ModelSet& operator=(const ModelSet&) = delete;

    /// The models that serve; all that the settings name, once `is_complete`.
    const Models& all() const { return models_; }
    bool is_complete() const { return models_.size() == settings_.models.size(); }
    /// The places of all models.
    std::vector<std::size_t> all_places() const;
    /// The place of a name. Error: unknown_model.
    Result<std::size_t> find(const std::string& name) const;

    /// Loads the next model for the first time, then calls `done` on the loop, unless
    /// `stop_loading` was called meanwhile.
    void load_next(std::function<void(const Status&)> done);
    /// Reloads models one after another. If one cannot be loaded, the old one serves on. At the end
    /// calls `done` on the loop with the first error.
    void reload(std::vector<std::size_t> places, std::function<void(const Status&)> done);
    /// Frees replaced models without references, and starts the next reload when it is due. Call it
    /// a few times a second.
    void on_tick();
    /// Refuses all waiting and further reloads.
    void stop_loading();
    /// Answers every request with an ERR line about `error`, at models loaded later too.
    void refuse_all(const Error& error);
    /// Ends all threads after the engines have answered the waiting requests.
    void stop();

    /// Whether a model is being loaded: `stop` would wait for it.
    bool is_loading() const { return is_loading_; }
    /// Models that were replaced and are not freed yet.
    std::size_t retired() const { return retired_.size() + freeing_; }
    std::uint64_t reloads() const { return reloads_; }
    std::uint64_t failed_reloads() const { return failed_reloads_; }
    /// Why the last reloads of some models failed; empty while all is well.
    std::string degraded_reason() const;
    /// Requests that wait at all engines.
    std::size_t waiting() const;

  private:
    /// Models to be reloaded, and who waits for that.
    struct Reload {
        std::vector<std::size_t> places;
        std::size_t next = 0;
        Status status;  // the first fault
        std::function<void(const Status&)> done;
    };

    /// Loads a model on the other thread, in place of `old` if there is one, and calls `take` on
    /// the loop.
    void load(const ModelSetting& setting, const LoadedModel* old,
              std::function<void(const Loaded&)> take);
    void start_next_reload();
    void take_reloaded(const Loaded& loaded);
    void replace(std::size_t place, std::shared_ptr<LoadedModel> loaded);
    void watch_engines(const LoadedModel& loaded);
    void free_retired();

    const Settings& settings_;
    const Loader load_;
    asio::io_context& loop_;
    const Events events_;
    Models models_;
    Models retired_;  // replaced, but with answers still to give
    std::deque<Reload> waiting_reloads_;
    std::map<std::string, std::string> failures_;  // model to message, until a reload succeeds
    std::optional<Error> fault_;
    bool is_loading_ = false;
    bool is_stopped_ = false;
    std::size_t freeing_ = 0;  // models that the other thread frees
    Clock::time_point load_anyway_at_ = Clock::time_point::min();  // when close_readers is due
    std::uint64_t reloads_ = 0;
    std::uint64_t failed_reloads_ = 0;
    asio::thread_pool loading_{1};  // loads and frees models
};

}  // namespace gloved::daemon
