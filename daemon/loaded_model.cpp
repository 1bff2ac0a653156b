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
    const std::shared_ptr<const Vocabulary>& vocabulary,
    std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings) {
    std::vector<std::unique_ptr<EngineWorker>> workers;
    workers.reserve(engines.size());
    for (auto& engine : engines)
        workers.push_back(
            std::make_unique<EngineWorker>(name, model, vocabulary, std::move(engine), settings));
    return workers;
}

}  // namespace

LoadedModel::LoadedModel(std::string name, std::shared_ptr<const format::Model> model,
                         std::optional<format::Neighbors> neighbors,
                         std::shared_ptr<const Vocabulary> vocabulary,
                         std::vector<std::unique_ptr<kernels::Engine>> engines,
                         const Settings& settings)
    : name_(std::move(name)),
      model_(std::move(model)),
      neighbors_(std::move(neighbors)),
      vocabulary_(std::move(vocabulary)),
      workers_(workers_of(name_, model_, vocabulary_, std::move(engines), settings)),
      // With a GPU, the host reads rows only for look-ups.
      pinning_(
          model_,
          workers_.front()->engine().kind() == kernels::EngineKind::cpu ? settings.pin : Pin::off,
          workers_.front()->counts().batches) {}

EngineWorker* LoadedModel::find_worker(const std::string& name) const {
    if (name.empty()) return workers_.front().get();
    const auto kind = kernels::parse_engine(name);
    if (!kind) return nullptr;
    const auto found = std::ranges::find_if(
        workers_, [&](const auto& worker) { return !*kind || worker->engine().kind() == *kind; });
    return found == workers_.end() ? nullptr : found->get();
}

std::vector<std::string> LoadedModel::suggest(std::string_view word) {
    if (!spelling_) spelling_ = std::make_unique<SpellingIndex>(model_);
    return spelling_->suggest(word, ThreadClock::now() + kMaxSuggestTime);
}

void LoadedModel::stop() const {
    for (const auto& worker : workers_) worker->stop();
}

}  // namespace gloved::daemon
