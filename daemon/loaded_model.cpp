#include "daemon/loaded_model.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gloved::daemon {
namespace {

/// Time that a search may compute; what it has found by then is the result.
constexpr std::chrono::milliseconds kMaxSuggestTime{5};

std::vector<std::unique_ptr<EngineWorker>> workers_of(
    const std::string& name, const std::shared_ptr<const format::Model>& model,
    std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings) {
    std::vector<std::unique_ptr<EngineWorker>> workers;
    workers.reserve(engines.size());
    for (auto& engine : engines)
        workers.push_back(std::make_unique<EngineWorker>(name, model, std::move(engine), settings));
    return workers;
}

}  // namespace

RunningModel::RunningModel(const std::string& name, std::shared_ptr<const format::Model> model,
                           std::optional<format::Neighbors> neighbors,
                           std::vector<std::unique_ptr<kernels::Engine>> engines,
                           const Settings& settings)
    : model_(std::move(model)),
      neighbors_(std::move(neighbors)),
      workers_(workers_of(name, model_, std::move(engines), settings)),
      // With a GPU, the host reads rows only for look-ups.
      pinning_(
          model_,
          workers_.front()->engine().kind() == kernels::EngineKind::cpu ? settings.pin : Pin::off,
          workers_.front()->counts().batches) {}

EngineWorker* LoadedModel::find_worker(const std::string& name) const {
    if (name.empty()) return workers().front().get();
    const auto kind = kernels::parse_engine(name);
    if (!kind) return nullptr;
    const auto found = std::ranges::find_if(
        workers(), [&](const auto& worker) { return !*kind || worker->engine().kind() == *kind; });
    return found == workers().end() ? nullptr : found->get();
}

std::vector<std::string> RunningModel::suggest(std::string_view word) {
    if (!spelling_) spelling_ = std::make_unique<SpellingIndex>(model_);
    return spelling_->suggest(word, ThreadClock::now() + kMaxSuggestTime);
}

void LoadedModel::stop() const {
    for (const auto& worker : workers()) worker->stop();
}

}  // namespace gloved::daemon
