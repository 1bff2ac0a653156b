// gloved-neighbors: its command line and signals. The work is in neighbors.cpp.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/output_file.hpp"
#include "common/program_main.hpp"
#include "common/result.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bus_error.hpp"
#include "tools/distmat/word_options.hpp"
#include "tools/neighbors/command.hpp"
#include "tools/neighbors/graph.hpp"
#include "tools/neighbors/lists.hpp"
#include "tools/neighbors/neighbors.hpp"
#include "tools/neighbors/queries.hpp"

namespace {

using namespace gloved;
using cli::WrongUsage;

constexpr std::uint64_t kMaxShares = 1'000'000;

constexpr cli::Program kProgram = {"gloved-neighbors",
                                   R"(Usage: gloved-neighbors [options] MODEL_DIR

Finds the nearest other words of every word of a model, exactly, and stores them
in the model as the file neighbors. gloved then answers NEAR of a word from it.
If a run is stopped, the next one goes on where it was. --output, --hubs,
--mutual and --compare read the file, and store it first if it is not there. In a
model that this user may not write to they work too, and nothing is stored.

)",
                                   R"(
All engines, machines and divisions into parts give the same bytes.

Examples:
  gloved-neighbors models/glove
  gloved-neighbors --engine cuda --k 100 models/glove
  gloved-neighbors --output - models/glove | grep '^king'
  gloved-neighbors --queries words.txt --output answers.csv models/glove
  gloved-neighbors --queries q.fvecs --k 100 --output truth.ivecs models/glove
  gloved-neighbors --hubs models/glove
  gloved-neighbors --compare models/glove-2024 models/glove
  gloved-neighbors --part 2/8 --parts /shared/parts models/glove
  gloved-neighbors --join --parts /shared/parts models/glove

Exit status:
  0  success
  1  a file cannot be read or written, the engine cannot run, or a signal came;
     finished parts are kept
  2  wrong usage
)"};

struct CommandSettings {
    neighbors::Settings settings;
    std::optional<neighbors::Share> share;
    bool join = false;
    std::optional<neighbors::ListOutput> output;
    std::string queries;  // a file; empty: none
    neighbors::QueryFormat query_format = neighbors::QueryFormat::words;
    distmat::WordRules word_rules;
    std::size_t threads = 1;  // that read and write
    bool hubs = false;
    bool mutual = false;
    std::string compare;  // another model's directory; empty: none
    std::size_t shown = 20;
};

cli::Options describe_options() {
    cli::Options options;
    neighbors::add_computing_options(options, "one per core", "0");
    cli::OptionAdder add(options.shown);
    add("part", cli::value("I/N"),
        "compute share I of N, from 1, of the parts only: for several machines, which share the "
        "directory of the parts");
    add("join", "join the parts that --part computed, store the result, remove them");
    add("output", cli::value("FILE"),
        "write the neighbours of every word to FILE, from the file neighbors in the model, which "
        "is made and stored first if it is not there and this user may write it; - is stdout");
    add("format", cli::value("csv|tsv|edges|npy|ivecs"),
        "with --output: a table of word, neighbour and score, with headings, and words with quotes "
        "or commas quoted, as R, pandas and spreadsheets expect; the same with TABs between, no "
        "headings and no quotes; lines of row numbers and the score; a NumPy array of row numbers, "
        "int32; or the same as records of k and k numbers. "
        "Behind the end of a shorter list is -1 (default: by the name of FILE, else tsv)");
    add("queries", cli::value("FILE"),
        "write the neighbours of these queries to --output instead, and store nothing; - is "
        "stdin");
    add("query-format", cli::value("words|glove|numbers|fvecs"),
        "with --queries: words of the model, one a line; GloVe text; numbers, as text with a line "
        "for each query or as a NumPy array; or records of dim and dim float32 (default: numbers "
        "for .npy, fvecs for .fvecs, else words)");
    distmat::add_word_options(add);
    add("hubs",
        "tell how often words are neighbours of others: figures and the most frequent ones; with "
        "--output FILE a line for every word");
    add("mutual",
        "write to --output the pairs of words that are neighbours of each other, each once");
    add("compare", cli::value("DIR"),
        "tell how many neighbours each word has in common in this model and the model DIR: "
        "figures and the words with the fewest; with --output FILE a line for every word in both");
    add("show", cli::value("N", "20"), "with --hubs and --compare: number of words to print");
    add("times", "print on stderr how long computing, writing and joining take");
    return options;
}

neighbors::Share read_share(const std::string& text) {
    neighbors::Share share;
    const char* const end = text.data() + text.size();
    const auto index = std::from_chars(text.data(), end, share.index);
    if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
        const auto count = std::from_chars(index.ptr + 1, end, share.count);
        if (count.ec == std::errc() && count.ptr == end && share.index >= 1 &&
            share.index <= share.count && share.count <= kMaxShares) {
            return share;
        }
    }
    throw WrongUsage(fmt::format(
        "--part takes I/N, with I from 1 to N, such as 2/8; '{}' is something else", text));
}

void read_output(const cli::CommandLine& line, CommandSettings& read) {
    using neighbors::ListFormat;
    using neighbors::QueryFormat;
    const std::string path = line.nonempty("output", "a file");
    if (!path.empty()) {
        read.output = {path, neighbors::list_format_of(path)};
        if (line.given("format")) {
            read.output->format = line.choice<ListFormat>("format", {{"csv", ListFormat::csv},
                                                                     {"tsv", ListFormat::tsv},
                                                                     {"edges", ListFormat::edges},
                                                                     {"npy", ListFormat::npy},
                                                                     {"ivecs", ListFormat::ivecs}});
        }
    }
    read.queries = line.nonempty("queries", "a file");
    read.word_rules = distmat::read_word_options(line);
    if (read.queries.empty()) return;
    if (!read.output) throw WrongUsage("--queries needs --output");
    read.query_format = neighbors::query_format_of(read.queries);
    if (line.given("query-format")) {
        read.query_format =
            line.choice<QueryFormat>("query-format", {{"words", QueryFormat::words},
                                                      {"glove", QueryFormat::glove},
                                                      {"numbers", QueryFormat::numbers},
                                                      {"fvecs", QueryFormat::fvecs}});
    }
}

CommandSettings read_settings(const cli::CommandLine& line) {
    CommandSettings read;
    line.excludes("join", {"part", "engine", "device", "gpu-memory", "queries"});
    line.excludes("part", {"output", "queries", "hubs", "mutual", "compare"});
    line.excludes("queries", {"hubs", "mutual", "compare"});
    line.excludes("hubs", {"mutual", "compare", "format"});
    line.excludes("compare", {"mutual", "format"});
    line.needs("output", {"format"});
    line.needs("queries", {"query-format", "unknown", "case"});
    read.settings = neighbors::read_computing_options(line);
    if (line.given("part")) read.share = read_share(line.text("part"));
    read.join = line.given("join");
    const unsigned threads = read.settings.engine_options.threads;
    read.threads = threads == 0 ? kernels::usable_processors() : threads;
    read_output(line, read);
    read.hubs = line.given("hubs");
    read.mutual = line.given("mutual");
    read.compare = line.nonempty("compare", "a model's directory");
    const bool tells = read.hubs || !read.compare.empty();
    if (line.given("show") && (!tells || read.output))
        throw WrongUsage("--show needs --hubs or --compare, and no --output");
    if (tells && read.output && !neighbors::is_text(read.output->format)) {
        throw WrongUsage(fmt::format("--hubs and --compare write text, which '{}' is no name for",
                                     read.output->path));
    }
    read.shown = line.count("show", 0, format::kMaxRows);
    if (read.mutual && (!read.output || read.output->format == neighbors::ListFormat::ivecs))
        throw WrongUsage("--mutual needs --output, as csv, tsv, edges or npy");
    return read;
}

/// --hubs, --mutual and --compare. `other`: the model of --compare.
Status write_graph(const CommandSettings& asked, const format::Model& model,
                   const std::optional<format::Model>& other, const format::Neighbors& made,
                   const std::atomic<bool>& stop) {
    const std::size_t k = asked.settings.k;
    if (asked.mutual) return neighbors::write_mutual(model, made, k, *asked.output, stop);
    const std::string path = asked.output ? asked.output->path : "-";
    if (asked.hubs) return neighbors::write_hubs(model, made, k, asked.shown, path, stop);
    neighbors::Settings settings = asked.settings;
    settings.model_dir = asked.compare;
    const auto say = [](const std::string& message) { kProgram.say(message); };
    const auto other_made =
        neighbors::make_neighbors(*other, settings, neighbors::Storing::if_possible, stop, say);
    if (!other_made) return other_made.error();
    return neighbors::write_comparison(model, made, *other, *other_made, k, asked.shown, path,
                                       stop);
}

Status perform(const CommandSettings& asked, const std::atomic<bool>& stop) {
    const neighbors::Settings& settings = asked.settings;
    const auto model = format::Model::open(settings.model_dir);
    if (!model) return model.error();
    const auto say = [](const std::string& message) { kProgram.say(message); };
    if (asked.output && neighbors::is_text(asked.output->format) &&
        asked.output->format != neighbors::ListFormat::csv) {
        const std::string note = describe_wrong_name(asked.output->path, '\t');
        if (!note.empty()) say(note);
    }
    if (!asked.queries.empty()) {
        const auto queries = neighbors::Queries::read(
            asked.queries, asked.query_format, asked.word_rules, *model, asked.threads, stop);
        if (!queries) return queries.error();
        return neighbors::answer_queries(*model, settings, *queries, *asked.output, stop, say);
    }
    if (asked.share) return neighbors::compute_share(*model, settings, *asked.share, stop, say);
    // A wrong output or other model is told before the long computation.
    if (asked.output) {
        if (const auto file = OutputFile::create(asked.output->path, stop); !file)
            return file.error();
    }
    std::optional<format::Model> other;
    if (!asked.compare.empty()) {
        auto opened = format::Model::open(asked.compare);
        if (!opened) return opened.error();
        other.emplace(*std::move(opened));
    }
    const bool has_graph = asked.hubs || !asked.compare.empty() || asked.mutual;
    const auto storing =
        has_graph || asked.output ? neighbors::Storing::if_possible : neighbors::Storing::required;
    const auto made = asked.join ? neighbors::join_parts(*model, settings, storing, stop, say)
                                 : neighbors::make_neighbors(*model, settings, storing, stop, say);
    if (!made) return made.error();
    if (has_graph) return write_graph(asked, *model, other, *made, stop);
    if (!asked.output) return {};
    return neighbors::write_lists(*model, *made, settings.k, *asked.output, asked.threads, stop);
}

int run(const CommandSettings& asked) {
    const auto& stop = cli::stop_on_signals(cli::SecondSignal::ends_at_once);
    cli::let_writes_fail();
    tools::explain_bus_errors(
        "gloved-neighbors: a file became shorter while it was read or written, or its disk "
        "fails\n");
    const Status done = perform(asked, stop);
    if (done) return cli::kDone;
    const Error& error = done.error();
    if (error.code != ErrorCode::interrupted) {
        kProgram.say(error.message);
    } else if (!asked.queries.empty()) {
        kProgram.say("interrupted; the output is not written");
    } else {
        kProgram.say(
            "interrupted; the next run goes on from finished parts, if they could be kept");
    }
    return cli::kFault;
}

int run_program(int argc, char** argv) {
    return cli::run(kProgram, describe_options(), cli::arguments_of(argc, argv),
                    [](const cli::CommandLine& line) { return run(read_settings(line)); });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-neighbors", run_program, argc, argv);
}
