// ModelSet: all models that the daemon serves. Loads them, replaces them on reload, frees the old
// ones.
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

/// The place of the model called `name` among `models`. Error: unknown_model.
Result<std::size_t> find_model(const Models& models, const std::string& name);

/// The models in the order of the settings; the first is the default. Each has a place, its index
/// in that order. One model at a time is loaded, on a thread of its own. Memory has room for one
/// model besides those that serve. So a reload starts only when the model that the last reload
/// replaced is freed. Call all functions on the main thread.
class ModelSet {
  public:
    /// Functions that ModelSet calls, on the main thread but for one.
    struct Events {
        /// A reload has put this model in the place of an old one.
        std::function<void(const std::shared_ptr<LoadedModel>&)> on_replaced;
        /// An engine that serves has failed, or a model's files have changed. Called on the thread
        /// that notices.
        std::function<void(const Error&)> on_fault;
        /// A reload failed because of a GPU; other models on the GPU may not work any more.
        std::function<void()> on_device_error;
        /// These replaced models cannot be freed, because clients have not taken all their answers,
        /// and a reload needs the memory: close the connections of these clients.
        std::function<void(const Models&)> close_readers;
    };

    /// Call load_next to load the models with `load`. `settings` and `loop` must outlive the
    /// ModelSet.
    ModelSet(const Settings& settings, Loader load, asio::io_context& loop, Events events);
    ModelSet(const ModelSet&) = delete;
    ModelSet& operator=(const ModelSet&) = delete;

    /// The models that serve. During the start these are the first ones of the settings; all of
    /// them once `is_complete`.
    const Models& all() const { return models_; }
    bool is_complete() const { return models_.size() == settings_.models.size(); }
    /// Loads the next model of the settings, at the start, and then calls `done` on the loop. Does
    /// not call `done` if `stop_loading` was called meanwhile. Call it again until `is_complete`.
    void load_next(std::function<void(const Status&)> done);
    /// Reloads the model at `place`, or, nullopt, all, one after another. If one cannot be loaded,
    /// its old one serves on; if one of its lists cannot be read, that list stays as it was. At the
    /// end calls `done` on the loop with the first error, or success.
    void reload(std::optional<std::size_t> place, std::function<void(const Status&)> done);
    /// Frees replaced models that no request refers to any more, and starts the next reload if it
    /// can. Call it a few times a second.
    void on_tick();
    /// Refuses reloads that wait, and all later ones. A model that is being loaded is loaded to its
    /// end, but a first load is then dropped.
    void stop_loading();
    /// From now on all engines answer every request with an ERR line about `error`, those of models
    /// loaded later too.
    void refuse_all(const Error& error);
    /// Waits until the engines have answered all waiting requests, and ends all threads.
    void stop();

    /// Whether a model is being loaded now; `stop` would wait for that.
    bool is_loading() const { return is_loading_; }
    /// Number of models that a reload of changed files replaced, and that are not freed yet.
    std::size_t retired() const;
    std::uint64_t reloads() const { return reloads_; }
    std::uint64_t failed_reloads() const { return failed_reloads_; }
    /// The messages of all models whose last reload failed, in whole or for a list; empty if there
    /// is none.
    std::string degraded_reason() const;
    /// Number of requests in the queues of all engines together.
    std::size_t waiting() const;

  private:
    /// A call of `reload` that is not finished.
    struct Reload {
        std::size_t next;  // place of the next model to load
        std::size_t end;   // after the place of the last one
        Status status;     // the first fault
        std::function<void(const Status&)> done;
    };

    /// Loads a model on the other thread and calls `done` on the loop. `old`: the model that it is
    /// to replace; at the start nullptr.
    void load(const ModelSetting& setting, const LoadedModel* old,
              std::function<void(const Loaded&)> done);
    void start_next_reload();
    /// Replaced models for whose memory the next reload has to wait: those of which more than lists
    /// was replaced, and all where there are many.
    Models retired_in_the_way() const;
    void take_reloaded(const Loaded& loaded);
    /// Notes that a reload of `model` has failed, in whole or for a list.
    void note_failure(Reload& reload, const std::string& model, const std::string& what);
    void replace(std::size_t place, std::shared_ptr<LoadedModel> loaded);
    void watch_engines(const LoadedModel& loaded);
    void free_retired();

    const Settings& settings_;
    const Loader load_;
    asio::io_context& loop_;
    const Events events_;
    Models models_;
    Models retired_;  // replaced, or their lists alone; somebody may still hold them
    std::vector<std::weak_ptr<const RunningModel>> replaced_;  // what `retired` counts
    std::deque<Reload> waiting_reloads_;
    std::map<std::string, std::string> failures_;  // model to message, until a reload succeeds
    std::optional<Error> fault_;
    bool is_loading_ = false;
    bool is_stopped_ = false;
    // When close_readers is due if retired_ is not empty.
    Clock::time_point close_readers_at_ = Clock::time_point::min();
    std::uint64_t reloads_ = 0;
    std::uint64_t failed_reloads_ = 0;
    asio::thread_pool loading_{1};  // loads and frees models
};

}  // namespace gloved::daemon
