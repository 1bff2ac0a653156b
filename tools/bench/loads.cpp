#include "tools/bench/loads.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/table.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/input.hpp"
#include "tools/source/source.hpp"

namespace gloved::bench {
namespace {

/// Enough to hide the time of starting threads and detecting the format.
constexpr std::size_t kSampleBytes = 64 << 20;
constexpr std::size_t kRounds = 3;

struct Sample {
    std::string path;
    std::size_t rows = 0;
    std::size_t bytes = 0;
};

/// Writes rows as GloVe text until the sample is large enough.
Result<Sample> write_sample(const format::Model& model, const std::string& path) {
    Sample sample{path};
    std::ofstream file(path, std::ios::binary);
    std::string line;
    for (; sample.rows < model.rows() && sample.bytes < kSampleBytes; ++sample.rows) {
        line = model.key(sample.rows);
        for (const float value : model.vector(sample.rows))
            fmt::format_to(std::back_inserter(line), " {:.5f}", value);
        line += '\n';
        file << line;
        sample.bytes += line.size();
    }
    file.close();
    if (!file) return system_error(path, "cannot write", errno);
    return sample;
}

Status read_sample(const Sample& sample, const Settings& settings, std::size_t dim) {
    auto input = source::Input::open(sample.path, cli::stop_flag());
    if (!input) return input.error();
    source::SourceOptions options;
    // Detection is off, since a made-up word may look like a header.
    options.format = source::SourceFormat::glove;
    options.on_error = source::OnError::skip;
    options.dim = dim;
    options.threads = settings.threads;
    const auto summary = source::read_source(*input, options, {});
    if (!summary) return summary.error();
    if (summary->rows < summary->lines / 2) {
        return error_with(ErrorCode::internal, "{} of {} lines of the sample were read",
                          summary->rows, summary->lines);
    }
    return {};
}

/// Opens the model again for each measurement, since a mapping that was read is in the page tables.
class Fresh {
  public:
    Fresh(const format::Model& model, const Settings& settings)
        : path_(model.path()), settings_(settings) {}
    Fresh(const Fresh&) = delete;
    Fresh& operator=(const Fresh&) = delete;

    void close() {
        engine_.reset();
        model_.reset();
    }
    Status open() {
        close();
        auto opened = format::Model::open(path_);
        if (!opened) return opened.error();
        model_.emplace(*std::move(opened));
        return {};
    }
    std::span<const std::byte> bytes() const { return model_->mapped_values(); }
    /// Appends the engine's messages to `messages`. The engine lives until the next `open` or
    /// `close`.
    Status make_cuda_engine(bool pin, std::vector<std::string>& messages) {
        messages.clear();
        kernels::EngineOptions options;
        options.devices = settings_.devices;
        options.pin = pin;
        options.log = [&](const std::string& line) { messages.push_back(line); };
        auto made = kernels::make_engine(kernels::EngineKind::cuda, *model_, options);
        if (!made) return made.error();
        engine_ = *std::move(made);
        return {};
    }

  private:
    std::string path_;
    const Settings& settings_;
    std::optional<format::Model> model_;
    std::unique_ptr<kernels::Engine> engine_;  // destroyed before the model
};

/// Why the cuda engine cannot run here; empty if it can.
std::string why_no_cuda() {
    for (const kernels::EngineEntry& entry : kernels::list_engines()) {
        if (entry.kind == kernels::EngineKind::cuda) return entry.unavailable;
    }
    return "no cuda engine";
}

}  // namespace

Status print_loads(const format::Model& model, const Settings& settings,
                   const std::string& scratch) {
    const auto sample = write_sample(model, scratch + "/sample.txt");
    if (!sample) return sample.error();
    const bool whole = sample->rows == model.rows();
    const double text_whole = static_cast<double>(sample->bytes) *
                              static_cast<double>(model.rows()) / static_cast<double>(sample->rows);
    const auto binary_bytes = static_cast<double>(model.mapped_values().size());
    const std::string no_cuda = why_no_cuda();

    kernels::ThreadPool pool(settings.threads);
    Fresh fresh(model, settings);
    Status opened;
    std::vector<std::string> messages_locked;
    std::vector<std::string> messages_pageable;
    std::vector<Contender> ways = {
        {fmt::format("text: parse {} rows", grouped(sample->rows)),
         0,
         {},
         [&] { return read_sample(*sample, settings, model.dim()); }},
        {"binary: open and read all", 0, [&](std::size_t) { fresh.close(); },
         [&]() -> Status {
             if (Status done = fresh.open(); !done) return done;
             read_all(pool, fresh.bytes());
             return {};
         }}};
    const auto add_upload = [&](const char* what, bool pin, std::vector<std::string>& messages) {
        ways.push_back(
            {what, 0, [&](std::size_t) { opened = fresh.open(); },
             [&, pin] { return opened ? fresh.make_cuda_engine(pin, messages) : opened; }});
    };
    if (no_cuda.empty()) {
        add_upload("cuda engine ready, page-locked", true, messages_locked);
        add_upload("cuda engine ready, pageable", false, messages_pageable);
    }
    const auto all = measure(ways, kRounds, cli::stop_requested);
    if (!all) return all.error();

    Table table(
        {"loading", "ms median", "ms min", "GB", "GB/s", "s a GB", "s for the whole model"});
    for (const Series& series : *all) {
        const bool text = &series == all->data();
        const double seconds = series.median() / 1000;
        const double bytes = text ? static_cast<double>(sample->bytes) : binary_bytes;
        table.add({series.what, figure(series.median()), figure(series.min()),
                   fmt::format("{:.3f}", bytes / 1e9), figure(bytes / 1e9 / seconds),
                   figure(seconds / bytes * 1e9),
                   figure(seconds * (text ? text_whole : binary_bytes) / bytes)});
    }
    fmt::print("\n");
    table.print(stdout, settings.format);
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    note(fmt::format(
        "files in the page cache; text has five decimals per number, {:.2f} GB for all rows{}",
        text_whole / 1e9, whole ? "" : ": the last column of text is extrapolated from a sample"));
    if (!no_cuda.empty()) {
        note("left out: upload to a device: " + no_cuda);
        return {};
    }
    note("cuda engine ready: from a fresh mapping, including page-locking and unlocking");
    for (const std::string& line : messages_locked) note("  page-locked: " + line);
    for (const std::string& line : messages_pageable) note("  pageable: " + line);
    return {};
}

}  // namespace gloved::bench
