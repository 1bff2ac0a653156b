// A model that is served.
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

/// A model as it was loaded once, with its engines and their threads. Loading it anew makes another
/// one, and this one lives on until its last answer is given.
class LoadedModel {
  public:
    /// `engines`: the first one answers unless a request names another. `settings` outlives it.
    LoadedModel(std::string name, std::shared_ptr<const format::Model> model,
                std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings);

    const std::string& name() const { return name_; }
    const format::Model& model() const { return *model_; }
    /// One an engine; never empty.
    const std::vector<std::unique_ptr<EngineWorker>>& workers() const { return workers_; }
    EngineWorker& first_worker() const { return *workers_.front(); }
    /// The engine that `name` means: empty and «auto» are the first one's. nullptr when there is
    /// none.
    EngineWorker* find_worker(const std::string& name) const;
    /// «on», «off», «pending» or «refused».
    const char* pinned() const { return pinning_.state(); }

    /// Near spellings of a word that the model does not have. Of one thread at a time; its first
    /// call makes the index.
    std::vector<std::string> suggest(std::string_view word);

    /// Ends the threads of the engines, when what waits is answered.
    void stop() const;

  private:
    const std::string name_;
    const std::shared_ptr<const format::Model> model_;
    std::vector<std::unique_ptr<EngineWorker>> workers_;
    std::unique_ptr<SpellingIndex> spelling_;
    Pinning pinning_;
};

using Loaded = Result<std::shared_ptr<LoadedModel>>;
/// Loads one of the models, which has answered a known query then. With `verify` its checksums are
/// compared first. Any thread.
using Loader = std::function<Loaded(const ModelSetting& setting, bool verify)>;

}  // namespace gloved::daemon
