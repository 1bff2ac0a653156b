#include "tools/bench/leak.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cli/signals.hpp"
#include "common/error_with.hpp"
#include "common/process_memory.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/registry.hpp"
#include "tools/bench/device_read.hpp"
#include "tools/bench/engines.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/table.hpp"
#include "tools/bench/words.hpp"

namespace gloved::bench {
namespace {

/// Queries are made once and repeated, since making one can cost more than answering it.
constexpr std::size_t kQueries = 4096;
constexpr std::size_t kBatch = 64;
constexpr std::size_t kBatchEvery = 100;
constexpr std::size_t kWarmUp = 500;

struct Memory {
    std::optional<std::uint64_t> device_bytes;
    ProcessMemory process;
};

Result<Memory> look(bool device, int number) {
    Memory memory;
    if (device) {
        const auto bytes = device_bytes_in_use(number);
        if (!bytes) return bytes.error();
        memory.device_bytes = *bytes;
    }
    const auto process = process_memory("/proc/self/status");
    if (!process) return process.error();
    memory.process = *process;
    return memory;
}

Status ask(kernels::Engine& engine, std::span<const kernels::Query> queries, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        const std::size_t at = i % (kQueries - kBatch);
        const auto answers =
            engine.run(queries.subspan(at, i % kBatchEvery == kBatchEvery - 1 ? kBatch : 1));
        if (!answers) return answers.error();
    }
    return {};
}

}  // namespace

Status print_leaks(const format::Model& model, const Settings& settings) {
    kernels::EngineOptions options;
    options.threads = settings.threads;
    options.simd = settings.simd == "all" ? "" : settings.simd;
    options.devices = settings.devices;
    options.pin = settings.pin;
    auto engine = kernels::make_engine(settings.engine, model, options);
    if (!engine) return engine.error();
    const bool device = (*engine)->kind() == kernels::EngineKind::cuda;
    print_note(settings.format,
               fmt::format("engine   {}: {}", (*engine)->name(), (*engine)->description()));
    fmt::print("\n");

    RandomWords words(model, settings.seed);
    const auto queries = make_queries(model, words, kQueries, settings);
    if (!queries) return queries.error();
    if (Status asked = ask(**engine, *queries, kWarmUp); !asked) return asked;
    const auto before = look(device, settings.device());
    if (!before) return before.error();
    Status asked;
    const double ms = time_ms([&] { asked = ask(**engine, *queries, settings.leak_queries); });
    if (!asked) return asked;
    const auto after = look(device, settings.device());
    if (!after) return after.error();

    Table table({"bytes in use", "before", "after", "more"});
    const auto add = [&](const char* what, std::uint64_t then, std::uint64_t now) {
        table.add(
            {what, fmt::to_string(then), fmt::to_string(now),
             fmt::to_string(static_cast<std::int64_t>(now) - static_cast<std::int64_t>(then))});
    };
    if (device) add("device", *before->device_bytes, *after->device_bytes);
    add("resident", before->process.resident_bytes, after->process.resident_bytes);
    add("resident, its own", before->process.own_bytes, after->process.own_bytes);
    table.print(stdout, settings.format);
    print_note(settings.format,
               fmt::format("{} queries in {:.1f} s, every {}th a batch of {}",
                           grouped(settings.leak_queries), ms / 1000, kBatchEvery, kBatch));
    if (device && *after->device_bytes > *before->device_bytes) {
        return error_with(ErrorCode::internal, "the device has {} bytes more in use than before",
                          *after->device_bytes - *before->device_bytes);
    }
    return {};
}

}  // namespace gloved::bench
