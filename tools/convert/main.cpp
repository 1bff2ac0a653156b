// gloved-convert: its command line, signals and summary. The work is in convert.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/format/layout.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "tools/bus_error.hpp"
#include "tools/convert/convert.hpp"
#include "tools/convert/export.hpp"
#include "tools/convert/planes.hpp"
#include "tools/source/batch.hpp"
#include "tools/source/detect.hpp"
#include "tools/source/line.hpp"
#include "tools/source/oddity.hpp"
#include "tools/source/report.hpp"
#include "tools/source/source.hpp"

namespace {

using namespace gloved;
using cli::kDone;
using cli::kFault;
using cli::WrongUsage;

constexpr cli::Program kProgram = {"gloved-convert",
                                   R"(Usage: gloved-convert [options] INPUT... MODEL_DIR
       gloved-convert [--threads T] --planes-only MODEL_DIR
       gloved-convert --export FORMAT MODEL_DIR OUT

Converts a download of word vectors to a model, a directory that gloved can
serve. INPUT is text of GloVe, word2vec or fastText, word2vec's binary format,
or an array (.npy, .npz, safetensors) whose words --words names. It may be
plain, compressed by gzip, bzip2, xz or zstd, or a file in a zip or tar archive;
- is stdin. Several inputs of the same width become one model: they are read in
turn, and words of a later one have later ranks. A new model replaces an old one
of that name once it is complete.

)",
                                   R"(
Examples:
  gloved-convert glove.6B.100d.txt.gz models/glove
  gloved-convert glove.840B.300d.zip models/glove840
  gloved-convert --member glove.6B.300d.txt glove.6B.zip models/glove
  gloved-convert --duplicates last glove.6B.300d.txt own.txt models/own
  gloved-convert GoogleNews-vectors-negative300.bin.gz models/news
  gloved-convert --words words.txt vectors.npy models/own
  gloved-convert --words tokenizer.json model.safetensors models/potion
  curl -L URL | gloved-convert - models/glove
  gloved-convert --planes-only models/glove
  gloved-convert --export word2vec-bin models/glove glove.bin

Exit status:
  0  success
  1  the input is malformed, a file cannot be read or written, or a signal came;
     MODEL_DIR or OUT is unchanged
  2  wrong usage
)"};

/// What the command line asks for: a conversion, planes for a model, or an export.
struct Task {
    convert::ConvertOptions conversion;
    std::optional<std::string> planes_of;
    std::optional<convert::ExportOptions> exporting;
};

cli::Options describe_options() {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("format",
        cli::value("auto|glove|norms|word2vec|word2vec-bin|fasttext|npy|safetensors", "auto"),
        "format of each INPUT; auto finds out from its first 4 MiB. norms is GloVe's text with "
        "each vector's norm (Euclidean length) before its numbers; it is checked, then dropped");
    add("dim", cli::value("D"), "numbers per word (default: as many as the first lines have)");
    add("member", cli::value("NAME"), "file to read from each archive, if it has several");
    add("words", cli::value("FILE"),
        "the words of an array: a text with a word a line, or a tokenizer.json of Hugging Face "
        "(default: tokenizer.json beside a safetensors file)");
    add("tensor", cli::value("NAME"), "tensor to read from a safetensors file, if it has several");
    add("limit", cli::value("N"),
        "read only the first N words of all inputs together; repeated and skipped ones count "
        "(default: all)");
    add("duplicates", cli::value("first|last|error", "first"),
        "if a word occurs twice, in one input or in two, keep the first or the last vector, or "
        "stop with an error");
    add("on-error", cli::value("stop|skip", "stop"),
        "at a malformed line, stop with an error, or skip the line and count it");
    add("threads", cli::value("T"), "threads that parse (default: one per core, at most 8)");
    add("memory", cli::value("BYTES"),
        "limit on memory, at least 256M, e.g. 512M or 4G, where 1G is 1024M (default: a quarter "
        "of the machine's memory)");
    add("planes", cli::value("4|none", "4"),
        "4 writes the file planes, with 4 bits per number, which gloved searches first; with none "
        "gloved computes it at every start");
    add("planes-only", cli::value("MODEL_DIR"),
        "only write the file planes of an existing model, so that gloved starts faster");
    add("export", cli::value("glove|word2vec|word2vec-bin|npy|safetensors"),
        "only write an existing model to the file OUT in this format; of npy and safetensors the "
        "words go to OUT.words");
    // For tests, whose inputs are too small to spill the spool to its file, or for two batches.
    options.hidden.add_options()("spool-memory", cli::value("BYTES"));
    options.hidden.add_options()("batch-bytes", cli::value("BYTES"));
    options.more_operands = "operand";
    return options;
}

convert::ExportFormat export_format(const cli::CommandLine& line) {
    using convert::ExportFormat;
    return line.choice<ExportFormat>("export", {{"glove", ExportFormat::glove},
                                                {"word2vec", ExportFormat::word2vec},
                                                {"word2vec-bin", ExportFormat::word2vec_bin},
                                                {"npy", ExportFormat::npy},
                                                {"safetensors", ExportFormat::safetensors}});
}

void read_conversion(const cli::CommandLine& line, convert::ConvertOptions& options) {
    using source::Duplicates;
    using source::OnError;
    options.source.format = *source::source_format_from(line.word("format"));
    options.source.dim = line.count("dim", 1, format::kMaxDim, 0);
    options.source.limit = line.count("limit", 1, UINT64_MAX, 0);
    options.member = line.nonempty("member", "the name of a file in the archive");
    options.source.words = line.nonempty("words", "a file");
    options.source.tensor = line.nonempty("tensor", "the name of a tensor");
    if (options.source.words == "-" && std::ranges::count(options.inputs, "-") != 0)
        throw WrongUsage("INPUT and --words cannot both be -");
    const bool names_array = !(options.source.words.empty() && options.source.tensor.empty());
    if (names_array && options.inputs.size() > 1) {
        throw WrongUsage(
            "--words and --tensor go with one INPUT: convert the array alone, export it as text "
            "(--export glove), and give that text with the others");
    }
    if (line.given("spool-memory")) options.spool_bytes = line.bytes("spool-memory", 0, 0);
    options.source.head_bytes = line.bytes("batch-bytes", 1, options.source.head_bytes);
    options.source.chunk_bytes = line.bytes("batch-bytes", 1, options.source.chunk_bytes);
    options.memory_bytes = line.bytes("memory", convert::kMinMemory, options.memory_bytes);
    options.duplicates = line.choice<Duplicates>(
        "duplicates",
        {{"first", Duplicates::first}, {"last", Duplicates::last}, {"error", Duplicates::error}});
    options.source.on_error =
        line.choice<OnError>("on-error", {{"stop", OnError::stop}, {"skip", OnError::skip}});
    options.planes = line.choice<bool>("planes", {{"4", true}, {"none", false}});
}

Task read_task(const cli::CommandLine& line) {
    Task task;
    convert::ConvertOptions& options = task.conversion;
    std::vector<std::string> operands;
    line.each("operand", [&](const std::string& operand) { operands.push_back(operand); });
    const bool nameless = std::ranges::count(operands, "") != 0;
    options.source.threads = line.threads(cli::kFewThreads);
    for (const char* mode : {"planes-only", "export"}) {
        line.excludes(mode, {"format", "dim", "member", "words", "tensor", "limit", "duplicates",
                             "on-error", "memory", "planes"});
    }
    line.excludes("export", {"planes-only", "threads"});
    if (line.given("planes-only")) {
        task.planes_of = line.nonempty("planes-only", "a MODEL_DIR");
        if (!operands.empty()) throw WrongUsage("--planes-only takes one MODEL_DIR and no INPUT");
    } else if (line.given("export")) {
        if (operands.size() != 2 || nameless) throw WrongUsage("--export needs MODEL_DIR and OUT");
        task.exporting = convert::ExportOptions{export_format(line), operands[0], operands[1]};
    } else {
        if (operands.size() < 2 || nameless) throw WrongUsage("INPUT and MODEL_DIR are needed");
        options.model_dir = operands.back();
        operands.pop_back();
        if (std::ranges::count(operands, "-") > 1)
            throw WrongUsage("- can be one INPUT only: standard input can be read once");
        options.inputs = operands;
        read_conversion(line, options);
    }
    return task;
}

/// What is said of an oddity: «12 words » + what + «; the first: line 17, "x"» + remedy.
struct OddityText {
    source::Oddity oddity;
    const char* what;
    const char* remedy;
};

constexpr OddityText kOddityTexts[] = {
    {source::Oddity::large_number, "have a number above 1,000,000", ""},
    {source::Oddity::invalid_utf8, "are not valid UTF-8",
     "; if the file is in Latin-1: iconv -f LATIN1 -t UTF-8"},
    {source::Oddity::control_bytes, "hold control characters", ""},
    {source::Oddity::outer_blanks, "begin or end with blanks", ""},
    {source::Oddity::blanks, "hold blanks, which the format does not foresee", ""},
    {source::Oddity::ends_in_number,
     "end in a blank and a number, which counts as part of the word", ""},
    {source::Oddity::quoted, "stand in double quotes, which are kept", ""},
    {source::Oddity::base64, "begin with B64:, as DL4J writes words in base64, and are kept so",
     ""},
};

/// Says what looked implausible in the words that were taken.
void tell_oddities(const std::string& input, const source::SourceSummary& source) {
    const bool text = source::is_text(source.format);
    for (const OddityText& told : kOddityTexts) {
        const source::OddWord& word = source.odd_words.of(told.oddity);
        if (word.count == 0) continue;
        const bool left_out = text && told.oddity == source::Oddity::outer_blanks;
        kProgram.say(fmt::format("note: {}: {} word(s) {}{}; the first: {} {}, {}{}", input,
                                 word.count, told.what, left_out ? ", which are left out" : "",
                                 source::unit_of(source.format), word.line + 1, printable(word.key),
                                 told.remedy));
    }
    if (text && source.dim == 1)
        kProgram.say(fmt::format(
            "note: {}: one number a word; a file of words and counts (vocab.txt) holds no vectors",
            input));
}

/// Says which lines of a source were skipped, and why.
void tell_skipped(const std::string& input, const source::SourceSummary& source) {
    for (const std::string& skipped : source.skipped_examples)
        kProgram.say(fmt::format("skipped: {}: {}", input, skipped));
    if (source.skipped_lines() == 0) return;
    std::string reasons;
    for (std::size_t i = 0; i < source::kLineFaults; ++i) {
        if (source.skipped[i] == 0) continue;
        reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", source.skipped[i],
                               source::kLineFaultNames[i]);
    }
    kProgram.say(fmt::format("{}: {} {}(s) skipped: {}", input, source.skipped_lines(),
                             source::unit_of(source.format), reasons));
}

void summarize(const convert::ConvertOptions& options, const source::Report& report) {
    const bool several = report.sources.size() > 1;
    const source::SourceReport& first = report.sources.front();
    for (const auto& source : report.sources) tell_skipped(source.name, source.summary);
    const std::size_t shown = std::min(report.duplicate_examples.size(), source::kShownProblems);
    for (std::size_t i = 0; i < shown; ++i) {
        kProgram.say(report.text_of(report.duplicate_examples[i]) + " too, which is kept");
    }
    if (report.duplicates > shown)
        kProgram.say(fmt::format("{}: … {} duplicates in all",
                                 several ? options.model_dir : first.name, report.duplicates));
    for (const auto& source : report.sources) tell_oddities(source.name, source.summary);
    std::string_view unit = source::unit_of(first.summary.format);
    for (const auto& source : report.sources) {
        const std::string_view own_unit = source::unit_of(source.summary.format);
        if (own_unit != unit) unit = "line";
        if (several)
            kProgram.say(fmt::format("{}: {} words of the model, from {} {}s, {} skipped",
                                     source.name, source.rows_kept, source.summary.lines, own_unit,
                                     source.summary.skipped_lines()));
    }
    double seconds = 0;
    for (const auto& [stage, value] : report.seconds) seconds += value;
    const auto totals = report.totals();
    kProgram.say(
        fmt::format("{}: {} words of {} numbers from {} {}s, {} duplicate(s), {} skipped; {:.1f} "
                    "s, {:.0f} MB/s; generation {}",
                    options.model_dir, report.rows_kept, first.summary.dim, totals.lines, unit,
                    report.duplicates, totals.skipped_lines, seconds,
                    static_cast<double>(totals.text_bytes) / 1e6 / std::max(seconds, 1e-3),
                    format::hex(report.generation)));
}

int report_failure(const Error& error, const std::string& target) {
    kProgram.say(error.code == ErrorCode::interrupted
                     ? fmt::format("interrupted; {} is unchanged", target)
                     : error.message);
    return kFault;
}

int run(const Task& task) {
    const auto& stop = cli::stop_on_signals(cli::SecondSignal::ignored);
    cli::let_writes_fail();
    const auto say = [](const std::string& message) { kProgram.say(message); };
    if (task.exporting || task.planes_of) {
        tools::explain_bus_errors(
            "gloved-convert: the model was truncated while it was read, or its disk fails\n");
    }
    if (task.exporting) {
        const Status exported = convert::export_model(*task.exporting, stop, say);
        return exported ? kDone : report_failure(exported.error(), task.exporting->output);
    }
    if (task.planes_of) {
        const auto added =
            convert::add_planes(*task.planes_of, task.conversion.source.threads, stop);
        if (!added) return report_failure(added.error(), *task.planes_of);
        kProgram.say(
            fmt::format("{}: planes of {} words of {} numbers, {} bytes; {:.1f} s; generation {}",
                        *task.planes_of, added->rows, added->dim, added->file_bytes, added->seconds,
                        format::hex(added->generation)));
        return kDone;
    }
    const auto report = convert::convert(task.conversion, stop, say);
    if (!report) return report_failure(report.error(), task.conversion.model_dir);
    try {
        summarize(task.conversion, *report);
    } catch (const std::bad_alloc&) {
        say_on_stderr(kProgram.name, "the model is complete; no memory for a summary");
    }
    return kDone;
}

int run_program(int argc, char** argv) {
    return cli::run(kProgram, describe_options(), cli::arguments_of(argc, argv),
                    [](const cli::CommandLine& line) { return run(read_task(line)); });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-convert", run_program, argc, argv);
}
