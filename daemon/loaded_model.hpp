// LoadedModel: a model that the daemon serves, with the threads of its engines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/result.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/pin.hpp"
#include "daemon/settings.hpp"
#include "daemon/spelling.hpp"
#include "daemon/vocabulary.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// A model with its engines and their threads, which outlasts a reload that reads lists alone.
class RunningModel {
  public:
    /// The first of `engines` answers requests that name no engine. `name` is what requests call
    /// the model. `settings` must outlive the RunningModel.
    RunningModel(const std::string& name, std::shared_ptr<const format::Model> model,
                 std::optional<format::Neighbors> neighbors,
                 std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings);

    const std::shared_ptr<const format::Model>& model() const { return model_; }
    /// The neighbors file; nullptr if there is none or it is not used.
    const format::Neighbors* neighbors() const { return neighbors_ ? &*neighbors_ : nullptr; }
    /// Counts an answer from the neighbors file. Any thread.
    void count_stored_answer() { stored_answers_.fetch_add(1, std::memory_order_relaxed); }
    std::uint64_t stored_answers() const { return stored_answers_.load(std::memory_order_relaxed); }
    /// One per engine; never empty.
    const std::vector<std::unique_ptr<EngineWorker>>& workers() const { return workers_; }
    /// Better engines of this build that cannot run on this machine, with the reasons; empty if the
    /// engine was chosen by name. Set by the loader, before other threads see the model.
    void set_missing_engines(std::string text) { missing_engines_ = std::move(text); }
    const std::string& missing_engines() const { return missing_engines_; }
    /// Whether the model's files are locked in memory (Pinning::state).
    PinState pinned() const { return pinning_.state(); }
    /// Words of the model that are spelt nearly like `word`, which it does not have. The first call
    /// builds the SpellingIndex. Only for the Suggester's thread.
    std::vector<std::string> suggest(std::string_view word);

  private:
    const std::shared_ptr<const format::Model> model_;
    const std::optional<format::Neighbors> neighbors_;
    std::atomic<std::uint64_t> stored_answers_ = 0;
    std::vector<std::unique_ptr<EngineWorker>> workers_;
    std::unique_ptr<SpellingIndex> spelling_;
    std::string missing_engines_;
    Pinning pinning_;
};

/// A model that runs, with its lists of words. A reload makes a new LoadedModel; the old one lives
/// until its last answer is sent, as every unanswered request shares it.
class LoadedModel {
  public:
    /// `name` is what requests call the model. `vocabulary` is of the model of `running`.
    LoadedModel(std::string name, std::shared_ptr<RunningModel> running,
                std::shared_ptr<const Vocabulary> vocabulary)
        : name_(std::move(name)),
          running_(std::move(running)),
          vocabulary_(std::move(vocabulary)) {}

    const std::string& name() const { return name_; }
    const std::shared_ptr<RunningModel>& running() const { return running_; }
    const Vocabulary& vocabulary() const { return *vocabulary_; }

    const format::Model& model() const { return *running_->model(); }
    const std::vector<std::unique_ptr<EngineWorker>>& workers() const {
        return running_->workers();
    }
    EngineWorker& first_worker() const { return *workers().front(); }
    /// The worker of the engine `name`, the first for "" and «auto»; nullptr when there is none.
    EngineWorker* find_worker(const std::string& name) const;
    /// Waits until the engines have answered all waiting requests, and ends their threads.
    void stop() const;

  private:
    const std::string name_;
    const std::shared_ptr<RunningModel> running_;
    const std::shared_ptr<const Vocabulary> vocabulary_;
};

using Models = std::vector<std::shared_ptr<LoadedModel>>;

/// The model, owned through `loaded`.
inline std::shared_ptr<const format::Model> model_of(const std::shared_ptr<LoadedModel>& loaded) {
    return {loaded, &loaded->model()};
}

using Loaded = Result<std::shared_ptr<LoadedModel>>;
/// A function that loads a model and tests its engines with a known query. At a reload `old` is the
/// model that the new one is to replace, and all content of the model's files, if they have
/// changed, is first compared with the checksums in them. At the start `old` is nullptr. Calls come
/// one after another, from any thread.
using Loader = std::function<Loaded(const ModelSetting& setting, const LoadedModel* old)>;

}  // namespace gloved::daemon
