#include "daemon/model_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/process_memory.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "daemon/log.hpp"

namespace gloved::daemon {
namespace {

/// How long a new model waits for the one before it to give its last answers.
constexpr std::chrono::seconds kMaxFarewell{10};
/// How long connections that were closed may take to release it.
constexpr std::chrono::seconds kMaxUnwinding{1};
/// So many replaced models that share what runs with those that serve, and so are lists alone, may
/// wait to be freed.
constexpr std::size_t kMaxRetiredLists = 16;

/// `load`, with what it throws as an error: std::system_error where no thread can be started.
Loaded try_to_load(const Loader& load, const ModelSetting& setting, const LoadedModel* old) try {
    return load(setting, old);
} catch (const std::exception& error) {
    return Error{ErrorCode::unavailable, explain(error)};
}

}  // namespace

Result<std::size_t> find_model(const Models& models, const std::string& name) {
    std::string names;
    for (std::size_t i = 0; i < models.size(); ++i) {
        if (models[i]->name() == name) return i;
        names += (i == 0 ? "" : ", ") + models[i]->name();
    }
    return error_with(ErrorCode::unknown_model, "no model {} here: there is {}", printable(name),
                      names);
}

ModelSet::ModelSet(const Settings& settings, Loader load, asio::io_context& loop, Events events)
    : settings_(settings), load_(std::move(load)), loop_(loop), events_(std::move(events)) {}

void ModelSet::load(const ModelSetting& setting, const LoadedModel* old,
                    std::function<void(const Loaded&)> done) {
    is_loading_ = true;
    asio::post(loading_, [this, &setting, old, done = std::move(done)] {
        Loaded loaded = try_to_load(load_, setting, old);
        asio::post(loop_, [this, done, loaded = std::move(loaded)] {
            is_loading_ = false;
            done(loaded);
        });
    });
}

void ModelSet::load_next(std::function<void(const Status&)> done) {
    load(settings_.models[models_.size()], nullptr,
         [this, done = std::move(done)](const Loaded& loaded) {
             if (is_stopped_) return;
             if (!loaded) return done(loaded.error());
             watch_engines(**loaded);
             models_.push_back(*loaded);
             done({});
         });
}

void ModelSet::watch_engines(const LoadedModel& loaded) {
    for (const auto& worker : loaded.workers()) worker->on_fault(events_.on_fault);
}

void ModelSet::reload(std::optional<std::size_t> place, std::function<void(const Status&)> done) {
    const std::size_t begin = place.value_or(0);
    const std::size_t end = place ? *place + 1 : models_.size();
    waiting_reloads_.push_back({begin, end, {}, std::move(done)});
    start_next_reload();
}

void ModelSet::on_tick() {
    free_retired();
    start_next_reload();
}

void ModelSet::stop_loading() {
    is_stopped_ = true;
    start_next_reload();
}

void ModelSet::start_next_reload() {
    if (is_loading_) return;
    if (is_stopped_) {
        for (const Reload& reload : std::exchange(waiting_reloads_, {})) {
            reload.done(Error{ErrorCode::unavailable, "the daemon is stopping; reload cancelled"});
        }
        return;
    }
    if (waiting_reloads_.empty()) return;
    free_retired();
    if (const Models in_the_way = retired_in_the_way(); !in_the_way.empty()) {
        const auto now = Clock::now();
        if (now < close_readers_at_) return;
        // Memory has room for one replaced model. Its readers have had the time to take their
        // answers.
        events_.close_readers(in_the_way);
        if (now < close_readers_at_ + kMaxUnwinding) return;
    }
    const std::size_t place = waiting_reloads_.front().next;
    load(settings_.models[place], models_[place].get(),
         [this](const Loaded& loaded) { take_reloaded(loaded); });
}

Models ModelSet::retired_in_the_way() const {
    if (retired_.size() > kMaxRetiredLists) return retired_;
    Models found;
    for (const auto& retired : retired_) {
        const bool serves = std::ranges::any_of(
            models_, [&](const auto& loaded) { return loaded->running() == retired->running(); });
        if (!serves) found.push_back(retired);
    }
    return found;
}

void ModelSet::take_reloaded(const Loaded& loaded) {
    Reload& reload = waiting_reloads_.front();
    const std::size_t place = reload.next++;
    const std::string& name = settings_.models[place].name;
    if (loaded) {
        replace(place, *loaded);
        const std::string& faults = (*loaded)->vocabulary().lists().faults();
        if (faults.empty()) {
            ++reloads_;
        } else {
            note_failure(reload, name, "reloaded, but the old words stay: " + faults);
        }
    } else {
        note_failure(reload, name,
                     "reload failed, the old model keeps serving: " + loaded.error().message);
        // The CUDA error may be sticky, and the old engines lost too.
        if (loaded.error().code == ErrorCode::device) events_.on_device_error();
    }
    if (reload.next == reload.end) {
        const Reload finished = std::move(reload);
        waiting_reloads_.pop_front();
        finished.done(finished.status);
    }
    on_tick();
}

void ModelSet::note_failure(Reload& reload, const std::string& model, const std::string& what) {
    ++failed_reloads_;
    const Error error{ErrorCode::unavailable, fmt::format("{}: {}", model, what)};
    log_error("{}", error.message);
    failures_[model] = error.message;
    if (reload.status) reload.status = error;
}

void ModelSet::replace(std::size_t place, std::shared_ptr<LoadedModel> loaded) {
    failures_.erase(loaded->name());
    const bool is_running = loaded->running() == models_[place]->running();
    if (is_running) {
        for (const auto& worker : loaded->workers()) worker->forget_ranks();
    } else {
        watch_engines(*loaded);
        replaced_.push_back(models_[place]->running());
    }
    if (fault_) {
        for (const auto& worker : loaded->workers()) worker->refuse_all(*fault_);
    }
    retired_.push_back(std::exchange(models_[place], std::move(loaded)));
    close_readers_at_ = Clock::now() + kMaxFarewell;
    if (is_running) {
        log_info("model {}: its files are as before; {} lists read", models_[place]->name(),
                 models_[place]->vocabulary().lists().facts().size());
    } else {
        log_info("model {}: generation {} replaces {}", models_[place]->name(),
                 format::hex(models_[place]->model().generation()),
                 format::hex(retired_.back()->model().generation()));
    }
    events_.on_replaced(models_[place]);
}

void ModelSet::free_retired() {
    // Once only `retired_` owns a model, no new references appear, except while the thread that
    // prepares suggestions holds it.
    const auto first = std::partition(retired_.begin(), retired_.end(),
                                      [](const auto& loaded) { return loaded.use_count() > 1; });
    for (auto left = retired_.end() - first; left > 0; --left) {
        // On the thread that loads, before it loads the next one: unmapping gigabytes takes its
        // time.
        asio::post(loading_, [last = std::move(retired_.back())]() mutable {
            last.reset();
            trim_heap();
        });
        retired_.pop_back();
    }
    std::erase_if(replaced_, [](const auto& running) { return running.expired(); });
}

std::size_t ModelSet::retired() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(replaced_, [](const auto& running) { return !running.expired(); }));
}

void ModelSet::refuse_all(const Error& error) {
    fault_ = error;
    for (const auto* models : {&models_, &retired_}) {
        for (const auto& loaded : *models) {
            for (const auto& worker : loaded->workers()) worker->refuse_all(error);
        }
    }
}

void ModelSet::stop() {
    loading_.stop();
    loading_.join();
    for (const auto* models : {&models_, &retired_}) {
        for (const auto& loaded : *models) loaded->stop();
    }
}

std::string ModelSet::degraded_reason() const {
    std::string text;
    for (const auto& [name, message] : failures_) text += (text.empty() ? "" : "; ") + message;
    return text;
}

std::size_t ModelSet::waiting() const {
    std::size_t waiting = 0;
    for (const auto& loaded : models_) {
        for (const auto& worker : loaded->workers()) waiting += worker->waiting();
    }
    return waiting;
}

}  // namespace gloved::daemon
