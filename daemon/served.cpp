#include "daemon/served.hpp"

#include <algorithm>

namespace gloved::daemon {
namespace {

/// A word's suggestions take less; what takes longer, on a busy machine, ends with those found by
/// then.
constexpr std::chrono::milliseconds kMaxSuggestTime{5};

std::vector<std::unique_ptr<Compute>> computes_of(
    const std::string& name, const std::shared_ptr<const format::Model>& model,
    std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings) {
    std::vector<std::unique_ptr<Compute>> computes;
    computes.reserve(engines.size());
    for (auto& engine : engines) {
        computes.push_back(std::make_unique<Compute>(name, model, std::move(engine), settings));
    }
    return computes;
}

}  // namespace

Served::Served(std::string name, std::shared_ptr<const format::Model> model,
               std::vector<std::unique_ptr<kernels::Engine>> engines, const Settings& settings)
    : name_(std::move(name)),
      model_(std::move(model)),
      computes_(computes_of(name_, model_, std::move(engines), settings)),
      // Rows that are scanned on a GPU are read on the host only where a word is looked up.
      pinning_(model_, computes_.front()->engine().name() == "cpu" ? settings.pin : Pin::off,
               computes_.front()->counts().batches) {}

Compute* Served::find_compute(const std::string& name) const {
    if (name.empty() || name == "auto") return computes_.front().get();
    const auto found = std::find_if(computes_.begin(), computes_.end(), [&](const auto& compute) {
        return compute->engine().name() == name;
    });
    return found == computes_.end() ? nullptr : found->get();
}

std::vector<std::string> Served::suggest(std::string_view word) {
    if (!spelling_) spelling_ = std::make_unique<SpellingIndex>(model_);
    return spelling_->suggest(word, Clock::now() + kMaxSuggestTime);
}

void Served::stop() const {
    for (const auto& compute : computes_) compute->stop();
}

}  // namespace gloved::daemon
