// A model in memory with its engines.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "daemon/engine_worker.hpp"
#include "daemon/pin.hpp"
#include "daemon/settings.hpp"
#include "daemon/spelling.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// A model with its engines and their threads. A reload makes another one; this one lives until its
/// last answer is sent.
class LoadedModel {
  public:
    /// The first engine answers unless a request names another. `settings` outlives it.
    LoadedModel(std::string name, std::shared_ptr<const format::Model> model,
                std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings);

    const std::string& name() const { return name_; }
    const format::Model& model() const { return *model_; }
    /// One per engine; never empty.
    const std::vector<std::unique_ptr<EngineWorker>>& workers() const { return workers_; }
    EngineWorker& first_worker() const { return *workers_.front(); }
    /// The worker of the engine `name`, the first for "" and «auto»; nullptr when there is none.
    EngineWorker* find_worker(const std::string& name) const;
    PinState pinned() const { return pinning_.state(); }

    /// Near spellings of a word that the model does not have. The first call builds the index. Not
    /// safe for concurrent use.
    std::vector<std::string> suggest(std::string_view word);

    /// Ends the engines' threads after the waiting requests are answered.
    void stop() const;

  private:
    const std::string name_;
    const std::shared_ptr<const format::Model> model_;
    std::vector<std::unique_ptr<EngineWorker>> workers_;
    std::unique_ptr<SpellingIndex> spelling_;
    Pinning pinning_;
};

using Loaded = Result<std::shared_ptr<LoadedModel>>;
/// Loads a model and tests its engine with a known query; with `verify` compares all checksums
/// first. Any thread.
using Loader = std::function<Loaded(const ModelSetting& setting, bool verify)>;

}  // namespace gloved::daemon
