// gloved-convert: command line, signals, summary. The work is in convert.cpp.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "common/version.hpp"
#include "tools/convert/convert.hpp"

namespace {

using namespace gloved;
namespace po = boost::program_options;

constexpr int kDone = 0;
constexpr int kFault = 1;
constexpr int kUsage = 2;
constexpr std::int64_t kMaxThreads = 256;
constexpr unsigned kDefaultThreads = 8;  // more wait for the thread that reads, and cost a batch of memory each

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void watch_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
    // A reader of our messages that goes away must not take us with it, before the staging directory is removed.
    ::signal(SIGPIPE, SIG_IGN);
}

void say(const std::string& message) { std::fputs(("gloved-convert: " + message + "\n").c_str(), stderr); }

constexpr const char* kHelpHead =
    "Usage: gloved-convert [options] INPUT|- MODEL_DIR\n"
    "Converts a GloVe download (text, or gzip of it; - reads stdin) to a model that gloved serves.\n"
    "An existing model of that name is replaced at once, when the new one is whole.\n\n";
constexpr const char* kHelpTail =
    "\nExamples:\n"
    "  gloved-convert glove.6B.100d.txt.gz models/glove\n"
    "  unzip -p glove.840B.300d.zip | gloved-convert - models/glove840\n\n"
    "Exit status: 0 done, 1 the data or the system is at fault, 2 wrong usage.\n";

int wrong_usage(const std::string& what) {
    say(what + "; gloved-convert --help explains");
    return kUsage;
}

/// Options from the command line, or the exit status to end with.
int parse(int argc, char** argv, std::optional<convert::ConvertOptions>& parsed) {
    std::string format;
    std::string duplicates;
    std::string on_error;
    std::int64_t dim = 0;
    std::int64_t limit = 0;
    std::int64_t threads = 0;
    convert::ConvertOptions options;

    po::options_description visible("Options");
    visible.add_options()                                                                                //
        ("format", po::value(&format)->default_value("auto")->value_name("auto|glove"),                  //
         "glove: take line 1 as a word, even if it looks like another format's header")                  //
        ("dim", po::value(&dim)->value_name("D"), "numbers a line (default: found in the first lines)")  //
        ("limit", po::value(&limit)->value_name("N"), "read only the first N lines")                     //
        ("duplicates", po::value(&duplicates)->default_value("first")->value_name("first|last|error"),
         "which line of a word that stands there twice is kept")  //
        ("on-error", po::value(&on_error)->default_value("stop")->value_name("stop|skip"),
         "what to do at a line that cannot be read")                                                              //
        ("threads", po::value(&threads)->value_name("T"), "threads that parse (default: one a core, at most 8)")  //
        ("help", "show this")("version", "show the version");
    po::options_description all;
    all.add(visible).add_options()("input", po::value(&options.input))("model-dir", po::value(&options.model_dir));
    po::positional_options_description positional;
    positional.add("input", 1).add("model-dir", 1);

    po::variables_map values;
    try {
        constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(kStyle).run(), values);
        po::notify(values);
    } catch (const po::error& error) {
        return wrong_usage(error.what());
    }
    if (values.count("help") != 0) {
        std::cout << kHelpHead << visible << kHelpTail;
        return kDone;
    }
    if (values.count("version") != 0) {
        std::cout << "gloved-convert " << kProgramVersion << "\n";
        return kDone;
    }
    if (options.input.empty() || options.model_dir.empty()) return wrong_usage("INPUT and MODEL_DIR are needed");

    if (format != "auto" && format != "glove") return wrong_usage("--format is auto or glove");
    if (format == "glove") options.source.format = convert::SourceFormat::glove;
    const auto in_range = [&](const char* name, std::int64_t value, std::int64_t most) {
        return values.count(name) == 0 || (value >= 1 && value <= most);
    };
    if (!in_range("dim", dim, format::kMaxDim)) return wrong_usage(fmt::format("--dim is 1 to {}", format::kMaxDim));
    if (!in_range("limit", limit, INT64_MAX)) return wrong_usage("--limit is 1 or more");
    if (!in_range("threads", threads, kMaxThreads))
        return wrong_usage(fmt::format("--threads is 1 to {}", kMaxThreads));
    const auto duplicates_rule = convert::duplicates_from(duplicates);
    if (!duplicates_rule) return wrong_usage("--duplicates is first, last or error");
    const auto on_error_rule = convert::on_error_from(on_error);
    if (!on_error_rule) return wrong_usage("--on-error is stop or skip");

    options.duplicates = *duplicates_rule;
    options.source.on_error = *on_error_rule;
    options.source.dim = static_cast<std::size_t>(dim);
    options.source.limit = static_cast<std::uint64_t>(limit);
    options.source.threads = threads != 0 ? static_cast<std::size_t>(threads)
                                          : std::clamp(std::thread::hardware_concurrency(), 1U, kDefaultThreads);
    parsed = std::move(options);
    return kDone;
}

void summarize(const convert::ConvertOptions& options, const convert::Report& report) {
    const auto& source = report.source;
    for (const std::string& skipped : source.skipped_examples)
        say(fmt::format("skipped: {}: {}", options.input, skipped));
    if (source.skipped_lines() != 0) {
        std::string reasons;
        for (std::size_t i = 0; i < convert::kLineFaults; ++i) {
            if (source.skipped[i] == 0) continue;
            reasons +=
                fmt::format("{}{} {}", reasons.empty() ? "" : ", ", source.skipped[i], convert::kLineFaultNames[i]);
        }
        say(fmt::format("{}: {} line(s) skipped: {}", options.input, source.skipped_lines(), reasons));
    }
    const std::size_t shown = std::min(report.duplicate_examples.size(), convert::kShownProblems);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& [kept, dropped, key] = report.duplicate_examples[i];
        say(fmt::format("{}: line {}: the word {} stands on line {} too, which is kept", options.input, dropped,
                        printable(key), kept));
    }
    if (report.duplicates > shown) say(fmt::format("{}: … {} duplicates in all", options.input, report.duplicates));
    double seconds = 0;
    for (const auto& [stage, value] : report.seconds) seconds += value;
    say(fmt::format(
        "{}: {} words of {} numbers from {} lines, {} duplicate(s), {} skipped; {:.1f} s, {:.0f} MB/s; "
        "generation {}",
        options.model_dir, report.rows_kept, source.dim, source.lines, report.duplicates, source.skipped_lines(),
        seconds, static_cast<double>(source.text_bytes) / 1e6 / std::max(seconds, 1e-3),
        format::hex(report.generation)));
}

}  // namespace

int main(int argc, char** argv) try {
    std::optional<convert::ConvertOptions> options;
    if (const int status = parse(argc, argv, options); !options) return status;
    watch_signals();
    const auto report = convert::convert(*options, stop, say);
    if (!report) {
        const auto& error = report.error();
        say(error.code == ErrorCode::interrupted ? fmt::format("interrupted; {} is as it was", options->model_dir)
                                                 : error.message);
        return kFault;
    }
    summarize(*options, *report);
    return kDone;
} catch (const std::exception& error) {
    // Out of memory or threads. All destructors have run: nothing is left behind.
    say(error.what());
    return kFault;
}
