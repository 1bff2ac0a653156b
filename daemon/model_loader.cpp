#include "daemon/model_loader.hpp"

#include <fmt/format.h>

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "daemon/known_answer.hpp"
#include "daemon/log.hpp"
#include "daemon/memory_check.hpp"
#include "daemon/pin.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/vocabulary.hpp"
#include "daemon/word_lists.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/registry.hpp"

namespace gloved::daemon {
namespace {

using kernels::EngineKind;

kernels::EngineOptions engine_options(const ModelSetting& setting, const Settings& settings) {
    kernels::EngineOptions options;
    options.threads = settings.threads;
    options.simd = settings.simd;
    options.devices = settings.devices;
    options.spread = settings.spread;
    options.pin = settings.pin != Pin::off;
    options.planes = settings.planes;
    if (settings.fine_plane != FinePlane::off) options.fine_plane = kernels::FinePlane::when_needed;
    if (settings.fine_plane == FinePlane::automatic) {
        options.has_room = [setting, planes = settings.planes,
                            warns = true](std::size_t bytes) mutable {
            const Status fits = check_memory_for_fine_plane(setting, planes, bytes);
            if (!fits && std::exchange(warns, false)) {
                log_warning(
                    "model {}: no 7-bit plane for batches: {}; it is made once there is room, or "
                    "with --fine-plane on",
                    setting.name, fits.error().message);
            }
            return static_cast<bool>(fits);
        };
    }
    options.gpu_memory_bytes = settings.gpu_memory_bytes;
    options.lists = !setting.lists.empty() || !settings.lists_directory.empty();
    options.log = [name = setting.name](const std::string& line) {
        write_log_always(spdlog::level::info, fmt::format("model {}: {}", name, line));
    };
    return options;
}

Status verify_checksums(const format::Model& model) {
    for (const format::Section& section : model.header().sections) {
        if (Status verified = model.verify_section(section); !verified) return verified;
    }
    return model.verify_planes();
}

struct OpenedModel {
    std::shared_ptr<const format::Model> model;
    std::unique_ptr<kernels::Engine> engine;  ///< has answered a known query
    std::optional<format::Neighbors> neighbors;
    std::shared_ptr<const Vocabulary> vocabulary;
};

Result<std::optional<format::Neighbors>> open_neighbors(const format::Model& model,
                                                        const Settings& settings, bool verify) {
    if (!settings.neighbors) return std::optional<format::Neighbors>();
    const auto with_remedy = [](const Error& error) {
        return Error{error.code, error.message + ", or start gloved with --neighbors off"};
    };
    auto opened = format::Neighbors::open(model);
    if (!opened) return with_remedy(opened.error());
    if (*opened && verify) {
        if (Status verified = (*opened)->verify(); !verified) return with_remedy(verified.error());
    }
    return opened;
}

/// `before`: what the lists were before a reload; nullptr at the start.
Result<OpenedModel> open_model(const ModelSetting& setting, std::span<const ListSetting> lists,
                               const Settings& settings, bool verify, PipeTexts& pipes,
                               const WordLists::Before* before) {
    // A GPU's driver takes longer to start than a model to open. (Even if that fails, this waits
    // for the driver.)
    auto choice = std::async(std::launch::async, kernels::choose_engine, settings.engine);
    auto opened = format::Model::open(setting.path);
    if (!opened) return opened.error();
    auto model = std::make_shared<const format::Model>(*std::move(opened));
    if (verify) {
        if (Status verified = verify_checksums(*model); !verified) return verified.error();
    }
    auto neighbors = open_neighbors(*model, settings, verify);
    if (!neighbors) return neighbors.error();
    const auto chosen = choice.get();
    if (!chosen) return chosen.error();
    // Making an engine takes longer, and lists need the index only where case is ignored.
    auto made_cases = std::async(
        std::launch::async, [&model] { return std::make_shared<const format::CaseIndex>(*model); });
    std::shared_ptr<const format::CaseIndex> cases;
    if (!lists.empty() && settings.look_up.word_case == wire::WordCase::ignore)
        cases = made_cases.get();
    auto read = WordLists::read(lists, *model, cases.get(), pipes, before);
    if (!read) return read.error();
    auto engine = kernels::make_engine(*chosen, *model, engine_options(setting, settings));
    if (!engine) return engine.error();
    // Scanning all rows of a model that is not in memory yet takes as long as reading it. Under a
    // watchdog that time is taken now: in service, a first query that waits for a slow disk would
    // look like an engine that hangs.
    const bool of_all_rows =
        verify || (*engine)->kind() != EngineKind::cpu || watchdog_interval().has_value();
    if (Status answered = KnownAnswer(model).ask(**engine, of_all_rows); !answered)
        return answered.error();
    if (!cases) {
        cases = made_cases.get();
        read->log_other_cases(*cases);
    }
    auto vocabulary = std::make_shared<const Vocabulary>(model, *std::move(read), std::move(cases),
                                                         settings.look_up);
    return OpenedModel{std::move(model), *std::move(engine), *std::move(neighbors),
                       std::move(vocabulary)};
}

/// Whether the directory of a model that runs has the files that were opened, and no others.
bool is_unchanged(const RunningModel& running, const std::string& path, const Settings& settings) {
    if (!running.model()->is_still_at(path)) return false;
    if (!settings.neighbors) return true;
    const auto directory = open_directory(path);
    if (!directory) return false;
    const format::Neighbors* const neighbors = running.neighbors();
    return neighbors != nullptr ? neighbors->is_still_at(directory->get())
                                : lacks_file(directory->get(), format::kNeighborsFile);
}

/// A model that differs from `old` in its lists alone.
Loaded load_lists(const ModelSetting& setting, std::span<const ListSetting> lists,
                  const Settings& settings, PipeTexts& pipes, const LoadedModel& old) {
    const auto& model = old.running()->model();
    if (Status fits = check_memory_for_lists(setting, lists, model->rows()); !fits)
        return fits.error();
    const auto& cases = old.vocabulary().shared_cases();
    const bool ignores_case = settings.look_up.word_case == wire::WordCase::ignore;
    const WordLists::Before before{old.vocabulary().lists(), *model};
    auto read =
        WordLists::read(lists, *model, ignores_case ? cases.get() : nullptr, pipes, &before);
    if (!read) return read.error();
    if (!ignores_case) read->log_other_cases(*cases);
    return std::make_shared<LoadedModel>(
        setting.name, old.running(),
        std::make_shared<const Vocabulary>(model, *std::move(read), cases, settings.look_up));
}

/// The engines of this build that cannot run on this machine, with the reasons, as one line; logs
/// it too. Empty if all can run.
std::string missing_engines() {
    std::string text;
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.unavailable.empty()) continue;
        const std::string line = fmt::format("{}: {}", to_string(entry.kind), entry.unavailable);
        log_info("engine {}", line);
        // Nothing is wrong with a machine for which this build was chosen.
        if (!entry.is_built) continue;
        text += (text.empty() ? "" : ", ") + line;
    }
    return text;
}

}  // namespace

Loaded load_model(const ModelSetting& setting, const Settings& settings, PipeTexts& pipes,
                  const LoadedModel* old) {
    const auto lists = find_lists(setting.lists, settings.lists_directory);
    if (!lists) return lists.error();
    std::optional<WordLists::Before> before;
    if (old != nullptr) {
        if (is_unchanged(*old->running(), setting.path, settings))
            return load_lists(setting, *lists, settings, pipes, *old);
        const bool locks_files = old->running()->pinned() == PinState::on;
        Status fits = check_memory_for(setting, *lists, settings.planes, locks_files);
        if (!fits) return fits.error();
        before.emplace(WordLists::Before{old->vocabulary().lists(), old->model()});
    }
    auto opened = open_model(setting, *lists, settings, before.has_value(), pipes,
                             before ? &*before : nullptr);
    if (!opened) return opened.error();
    auto& [model, engine, neighbors, vocabulary] = *opened;
    const bool on_cpu = engine->kind() == EngineKind::cpu;
    if (settings.pin == Pin::on && on_cpu) {
        if (Status locked = lock_values(*model); !locked) return locked.error();
    }
    log_info("model {}: {} words × {}, generation {}", setting.name, model->rows(), model->dim(),
             format::hex(model->generation()));
    log_info("engine {}: {}", engine->name(), engine->description());
    if (neighbors) {
        log_info("neighbors: {} of each word, which answer NEAR of a word; {:.1f} MB",
                 neighbors->k(), static_cast<double>(neighbors->mapped().size()) / 1e6);
    }
    std::vector<std::unique_ptr<kernels::Engine>> engines;
    engines.push_back(std::move(engine));
    if (!on_cpu) {
        auto cpu = kernels::make_engine(EngineKind::cpu, *model, engine_options(setting, settings));
        if (!cpu) return cpu.error();
        log_info("engine cpu, for requests with engine=cpu: {}", (*cpu)->description());
        engines.push_back(*std::move(cpu));
    }
    auto running = std::make_shared<RunningModel>(
        setting.name, std::move(model), std::move(neighbors), std::move(engines), settings);
    if (!settings.engine) running->set_missing_engines(missing_engines());
    return std::make_shared<LoadedModel>(setting.name, std::move(running), std::move(vocabulary));
}

Result<std::string> check_model(const ModelSetting& setting, const Settings& settings,
                                PipeTexts& pipes) {
    const auto lists = find_lists(setting.lists, settings.lists_directory);
    if (!lists) return lists.error();
    const auto opened = open_model(setting, *lists, settings, true, pipes, nullptr);
    if (!opened) return opened.error();
    const auto& [model, engine, neighbors, vocabulary] = *opened;
    return fmt::format("{}: {} words x {}, generation {}, checksums hold, engine {} ({}) answers",
                       setting.path, model->rows(), model->dim(), format::hex(model->generation()),
                       engine->name(), engine->description());
}

}  // namespace gloved::daemon
