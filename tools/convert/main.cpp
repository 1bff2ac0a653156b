// gloved-convert: command line, signals, summary. The work is in convert.cpp.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "common/byte_count.hpp"
#include "common/format/layout.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "tools/bus_error.hpp"
#include "tools/convert/convert.hpp"
#include "tools/convert/export.hpp"
#include "tools/convert/planes.hpp"
#include "tools/program.hpp"

namespace {

using namespace gloved;
namespace po = boost::program_options;
using tools::kDone;
using tools::kFault;

constexpr std::int64_t kMaxThreads = 256;
constexpr unsigned kDefaultThreads = 8;  // more wait for the thread that reads, and cost a batch of
                                         // memory each

constexpr const char* kHelpHead =
    "Usage: gloved-convert [options] INPUT|- MODEL_DIR\n"
    "       gloved-convert --planes-only MODEL_DIR\n"
    "       gloved-convert --export FORMAT MODEL_DIR OUT\n"
    "Converts a download (text of GloVe, word2vec or fastText, or word2vec's binary format; plain, "
    "gzip, or a member\n"
    "of a zip archive; - reads stdin) to a model that gloved serves. What it is, its content "
    "tells, not its name.\n"
    "An existing model of that name is replaced at once, when the new one is whole.\n"
    "With --planes-only, gives a model that is there its planes file, which a search reads first.\n"
    "With --export, writes a model in another program's format instead.\n\n";
constexpr const char* kHelpTail =
    "\nExamples:\n"
    "  gloved-convert glove.6B.100d.txt.gz models/glove\n"
    "  gloved-convert glove.840B.300d.zip models/glove840\n"
    "  gloved-convert --member glove.6B.300d.txt glove.6B.zip models/glove\n"
    "  gloved-convert GoogleNews-vectors-negative300.bin.gz models/news\n"
    "  curl -L URL | gloved-convert - models/glove\n"
    "  gloved-convert --planes-only models/glove\n"
    "  gloved-convert --export word2vec-bin models/glove glove.bin\n\n"
    "Exit status: 0 done, 1 the data or the system is at fault, 2 wrong usage.\n";
constexpr tools::Program kProgram = {"gloved-convert", kHelpHead, kHelpTail};

/// What the command line asks for: a conversion, planes for a model, or an export.
struct Task {
    convert::ConvertOptions conversion;
    std::optional<std::string> planes_of;
    std::optional<convert::ExportOptions> exporting;
};

std::optional<convert::ExportFormat> export_format_from(std::string_view name) {
    using convert::ExportFormat;
    if (name == "glove") return ExportFormat::glove;
    if (name == "word2vec") return ExportFormat::word2vec;
    if (name == "word2vec-bin") return ExportFormat::word2vec_bin;
    if (name == "npy") return ExportFormat::npy;
    return std::nullopt;
}

/// The task of the command line, or the exit status to end with.
int parse(int argc, char** argv, std::optional<Task>& parsed) {
    std::string format;
    std::string duplicates;
    std::string on_error;
    std::string memory;
    std::string exporting;
    std::string planes;
    std::string planes_of;
    std::string first;
    std::string second;
    std::int64_t dim = 0;
    std::int64_t limit = 0;
    std::int64_t threads = 0;
    Task task;
    convert::ConvertOptions& options = task.conversion;

    po::options_description visible("Options");
    visible.add_options()  //
        ("format",
         po::value(&format)->default_value("auto")->value_name(
             "auto|glove|norms|word2vec|word2vec-bin|fasttext"),
         "what INPUT is; any but auto is believed: say glove where line 1 looks like a header and "
         "is none")  //
        ("dim", po::value(&dim)->value_name("D"),
         "numbers a word (default: by the header or the first lines)")  //
        ("member", po::value(&options.member)->value_name("NAME"),
         "the file to take from a zip archive of several")                            //
        ("limit", po::value(&limit)->value_name("N"), "read only the first N words")  //
        ("duplicates",
         po::value(&duplicates)->default_value("first")->value_name("first|last|error"),
         "which line of a word that stands there twice is kept")  //
        ("on-error", po::value(&on_error)->default_value("stop")->value_name("stop|skip"),
         "what to do at a line that cannot be read")  //
        ("threads", po::value(&threads)->value_name("T"),
         "threads that parse (default: one a core, at most 8)")  //
        ("memory", po::value(&memory)->value_name("BYTES"),
         "memory that it may take, 256M at least; K, M and G are binary (default: a quarter of the "
         "machine's)")  //
        ("planes", po::value(&planes)->default_value("4")->value_name("4|none"),
         "bits a component of the planes file, or none: every start makes it anew then, in "
         "memory")  //
        ("planes-only", po::value(&planes_of)->value_name("MODEL_DIR"),
         "give this model its planes file, and change nothing else")  //
        ("export", po::value(&exporting)->value_name("glove|word2vec|word2vec-bin|npy"),
         "write the model MODEL_DIR to OUT in this format")  //
        ("help", "show this")("version", "show the version");
    po::options_description all;
    // The last one is for tests, which have no source that is large enough to need the spool's
    // file.
    all.add(visible).add_options()("first", po::value(&first))("second", po::value(&second))(
        "spool-memory", po::value<std::uint64_t>());
    po::positional_options_description positional;
    positional.add("first", 1).add("second", 1);

    po::variables_map values;
    if (const auto status = kProgram.read(argc, argv, visible, all, positional, values))
        return *status;
    const auto given = [&](const char* name) {
        return values.count(name) != 0 && !values[name].defaulted();
    };
    const auto in_range = [&](const char* name, std::int64_t value, std::int64_t most) {
        return values.count(name) == 0 || (value >= 1 && value <= most);
    };
    if (!in_range("threads", threads, kMaxThreads))
        return kProgram.wrong_usage(fmt::format("--threads is 1 to {}", kMaxThreads));
    options.source.threads =
        threads != 0 ? static_cast<std::size_t>(threads)
                     : std::clamp(std::thread::hardware_concurrency(), 1U, kDefaultThreads);
    if (given("planes-only")) {
        for (const char* name : {"format", "dim", "member", "limit", "duplicates", "on-error",
                                 "memory", "planes", "export"}) {
            if (given(name))
                return kProgram.wrong_usage(
                    fmt::format("--{} does not go with --planes-only", name));
        }
        if (planes_of.empty() || !first.empty())
            return kProgram.wrong_usage("--planes-only needs one MODEL_DIR");
        task.planes_of = planes_of;
        parsed = std::move(task);
        return kDone;
    }
    if (given("export")) {
        for (const char* name : {"format", "dim", "member", "limit", "duplicates", "on-error",
                                 "threads", "memory", "planes"}) {
            if (given(name))
                return kProgram.wrong_usage(
                    fmt::format("--{} is for a conversion, not for --export", name));
        }
        if (first.empty() || second.empty())
            return kProgram.wrong_usage("--export needs MODEL_DIR and OUT");
        const auto export_format = export_format_from(exporting);
        if (!export_format)
            return kProgram.wrong_usage("--export is glove, word2vec, word2vec-bin or npy");
        task.exporting = convert::ExportOptions{*export_format, first, second};
        parsed = std::move(task);
        return kDone;
    }
    if (first.empty() || second.empty())
        return kProgram.wrong_usage("INPUT and MODEL_DIR are needed");
    options.input = first;
    options.model_dir = second;

    const auto source_format = source::source_format_from(format);
    if (!source_format)
        return kProgram.wrong_usage(
            "--format is auto, glove, norms, word2vec, word2vec-bin or fasttext");
    if (!in_range("dim", dim, format::kMaxDim))
        return kProgram.wrong_usage(fmt::format("--dim is 1 to {}", format::kMaxDim));
    if (!in_range("limit", limit, INT64_MAX)) return kProgram.wrong_usage("--limit is 1 or more");
    if (given("member") && options.member.empty())
        return kProgram.wrong_usage("--member is the name of a file in the archive");
    if (given("spool-memory")) options.spool_bytes = values["spool-memory"].as<std::uint64_t>();
    if (given("memory")) {
        const auto bytes = byte_count_from(memory);
        if (!bytes || *bytes < convert::kMinMemory)
            return kProgram.wrong_usage("--memory is 256M or more: 300000000, 512M, 4G");
        options.memory_bytes = *bytes;
    }
    const auto duplicates_rule = source::duplicates_from(duplicates);
    if (!duplicates_rule) return kProgram.wrong_usage("--duplicates is first, last or error");
    const auto on_error_rule = source::on_error_from(on_error);
    if (!on_error_rule) return kProgram.wrong_usage("--on-error is stop or skip");
    if (planes != "4" && planes != "none") return kProgram.wrong_usage("--planes is 4 or none");

    options.planes = planes == "4";
    options.duplicates = *duplicates_rule;
    options.source.format = *source_format;
    options.source.on_error = *on_error_rule;
    options.source.dim = static_cast<std::size_t>(dim);
    options.source.limit = static_cast<std::uint64_t>(limit);
    parsed = std::move(task);
    return kDone;
}

void summarize(const convert::ConvertOptions& options, const source::Report& report) {
    const auto& source = report.source;
    const std::string_view unit = source::unit_of(source.format);
    for (const std::string& skipped : source.skipped_examples)
        kProgram.say(fmt::format("skipped: {}: {}", options.input, skipped));
    if (source.skipped_lines() != 0) {
        std::string reasons;
        for (std::size_t i = 0; i < source::kLineFaults; ++i) {
            if (source.skipped[i] == 0) continue;
            reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", source.skipped[i],
                                   source::kLineFaultNames[i]);
        }
        kProgram.say(fmt::format("{}: {} {}(s) skipped: {}", options.input, source.skipped_lines(),
                                 unit, reasons));
    }
    const std::size_t shown = std::min(report.duplicate_examples.size(), source::kShownProblems);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& [kept, dropped, key] = report.duplicate_examples[i];
        kProgram.say(fmt::format("{}: {} {}: the word {} stands on {} {} too, which is kept",
                                 options.input, unit, dropped, printable(key), unit, kept));
    }
    if (report.duplicates > shown)
        kProgram.say(fmt::format("{}: … {} duplicates in all", options.input, report.duplicates));
    double seconds = 0;
    for (const auto& [stage, value] : report.seconds) seconds += value;
    kProgram.say(
        fmt::format("{}: {} words of {} numbers from {} {}s, {} duplicate(s), {} skipped; {:.1f} "
                    "s, {:.0f} MB/s; "
                    "generation {}",
                    options.model_dir, report.rows_kept, source.dim, source.lines, unit,
                    report.duplicates, source.skipped_lines(), seconds,
                    static_cast<double>(source.text_bytes) / 1e6 / std::max(seconds, 1e-3),
                    format::hex(report.generation)));
}

int run_program(int argc, char** argv) {
    std::optional<Task> task;
    if (const int status = parse(argc, argv, task); !task) return status;
    const auto& stop = tools::stop_on_signals(tools::SecondSignal::waits_too);
    tools::let_writes_fail();
    const auto say = [](const std::string& message) { kProgram.say(message); };
    const auto failed = [&](const Error& error, const std::string& target) {
        kProgram.say(error.code == ErrorCode::interrupted
                         ? fmt::format("interrupted; {} is as it was", target)
                         : error.message);
        return kFault;
    };
    if (task->exporting) {
        tools::explain_bus_errors(
            "gloved-convert: the model was truncated while it was read, or its disk fails\n");
        const Status exported = convert::export_model(*task->exporting, stop, say);
        return exported ? kDone : failed(exported.error(), task->exporting->output);
    }
    if (task->planes_of) {
        tools::explain_bus_errors(
            "gloved-convert: the model was truncated while it was read, or its disk fails\n");
        const auto added =
            convert::add_planes(*task->planes_of, task->conversion.source.threads, stop);
        if (!added) return failed(added.error(), *task->planes_of);
        kProgram.say(
            fmt::format("{}: planes of {} words of {} numbers, {} bytes; {:.1f} s; generation {}",
                        *task->planes_of, added->rows, added->dim, added->file_bytes,
                        added->seconds, format::hex(added->generation)));
        return kDone;
    }
    const auto report = convert::convert(task->conversion, stop, say);
    if (!report) return failed(report.error(), task->conversion.model_dir);
    try {
        summarize(task->conversion, *report);
    } catch (const std::bad_alloc&) {
        say_on_stderr(kProgram.name, "the model is there, but there was no memory for a summary");
    }
    return kDone;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-convert", run_program, argc, argv);
}
