// gloved-bench: the engines, and a daemon, beside what memory and OpenBLAS allow on the same machine in the same run.
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/format/model.hpp"
#include "common/version.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/daemon_probe.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/table.hpp"
#include "tools/bench/words.hpp"

namespace {

namespace po = boost::program_options;
using namespace gloved;
using namespace gloved::bench;

constexpr int kDone = 0;
constexpr int kAtFault = 1;
constexpr int kUsage = 2;

constexpr const char* kSynopsis = R"(Usage: gloved-bench --model DIR [OPTIONS]
       gloved-bench --rows N [--dim D] [OPTIONS]
Times queries beside a plain read of the same memory and beside OpenBLAS's sgemv, round by round.
)";

constexpr const char* kExamples = R"(
With --rows it makes up a model of that size, in a temporary directory unless --keep names one.

  gloved-bench --rows 400000 --dim 300 --simd all
  gloved-bench --rows 2196016 --dim 300 --keep /var/tmp/glove-like --repeat 15
  gloved-bench --model /var/lib/gloved/glove --daemon /usr/bin/gloved --format csv

Exit status: 0 done, 1 something could not be measured, 2 wrong usage.
)";

struct Settings {
    std::string model;
    std::optional<GenerateOptions> generate;
    std::string keep;
    std::string engine;
    std::string simd;
    unsigned threads = 0;
    std::vector<std::size_t> batches;
    std::size_t k = 0;
    std::size_t rounds = 0;
    std::uint64_t seed = 0;
    std::string daemon;
    TableFormat format = TableFormat::text;
};

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

bool interrupted() { return stop_asked.load(std::memory_order_relaxed); }

/// Interrupted calls return (no SA_RESTART), so that every wait ends and destructors take the temporary files away.
void end_on_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_asked.store(true, std::memory_order_relaxed); };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
}

int fail(int code, const std::string& message) {
    fmt::print(stderr, "gloved-bench: {}\n", message);
    return code;
}

/// A directory of our own under $TMPDIR or /tmp, removed at the end.
class ScratchDirectory {
  public:
    static Result<ScratchDirectory> create() {
        const char* base = std::getenv("TMPDIR");
        ScratchDirectory scratch;
        std::string path = std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/gloved-bench-XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) return system_error(path, "cannot create", errno);
        scratch.path_ = std::move(path);
        return scratch;
    }
    ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchDirectory& operator=(ScratchDirectory&&) = delete;
    ~ScratchDirectory() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

  private:
    ScratchDirectory() = default;
    std::string path_;
};

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.find(": ") + 2, line.size()));
    }
    return "unknown processor";
}

struct NamedEngine {
    std::string label;
    std::unique_ptr<kernels::Engine> engine;
};

Result<std::vector<NamedEngine>> make_engines(const format::Model& model, const Settings& settings) {
    std::vector<std::string> sets = {settings.simd};
    if (settings.simd == "all") sets = kernels::simd_names();
    std::vector<NamedEngine> engines;
    for (const std::string& simd : sets) {
        auto engine = kernels::make_engine(settings.engine, model, {settings.threads, simd});
        if (!engine) return engine.error();
        const std::string description = (*engine)->description();
        const std::string label = (*engine)->name() + " " + description.substr(0, description.find(','));
        engines.push_back({label, *std::move(engine)});
    }
    return engines;
}

/// Queries for `count` random words, as NEAR WORD makes them.
Result<std::vector<kernels::Query>> make_queries(const format::Model& model, RandomWords& words, std::size_t count,
                                                 std::size_t k) {
    std::vector<kernels::Query> queries(count);
    for (kernels::Query& query : queries) {
        const kernels::WeightedRow term{1.0, words.next()};
        auto vector = kernels::make_query_vector(model, std::span(&term, 1), false);
        if (!vector) return vector.error();
        query.kind = kernels::Cosine{*std::move(vector)};
        query.k = k;
        query.excluded = {term.row};
    }
    return queries;
}

std::string ratio(double of, const Series* to) { return to == nullptr ? "" : fmt::format("{:.2f}", of / to->median()); }

/// The engines beside their peers.
Status print_engines(const format::Model& model, const Settings& settings, const OpenBlas* blas) {
    auto engines = make_engines(model, settings);
    if (!engines) return engines.error();
    const auto vectors = model.vectors();
    kernels::ThreadPool pool(settings.threads);
    RandomWords words(model, settings.seed);
    std::vector<float> dots(blas == nullptr ? 0 : model.rows());
    std::vector<kernels::Query> queries;
    Status made;

    std::vector<Contender> contenders;
    contenders.push_back({"read of all vectors (floor)", 0, {}, [&]() -> Status {
                              read_all(pool, std::as_bytes(vectors));
                              return {};
                          }});
    if (blas != nullptr) {
        contenders.push_back({"OpenBLAS sgemv, no top-k", 1, {}, [&]() -> Status {
                                  const float* query = model.vector(words.next()).data();
                                  blas->sgemv(vectors.data(), model.rows(), model.dim(), query, dots.data());
                                  return {};
                              }});
    }
    for (const NamedEngine& named : *engines) {
        for (const std::size_t batch : settings.batches) {
            contenders.push_back({batch == 1 ? fmt::format("{}: one query", named.label)
                                             : fmt::format("{}: batch of {}", named.label, batch),
                                  batch,
                                  [&, batch](std::size_t) {
                                      auto fresh = make_queries(model, words, batch, settings.k);
                                      if (fresh)
                                          queries = *std::move(fresh);
                                      else
                                          made = fresh.error();
                                  },
                                  [&]() -> Status {
                                      if (made) (void)named.engine->run(queries);
                                      return made;
                                  }});
        }
    }
    const auto all = measure(contenders, settings.rounds, interrupted);
    if (!all) return all.error();

    const Series& floor = all->front();
    const Series* sgemv = blas == nullptr ? nullptr : &(*all)[1];
    const Series* single = nullptr;
    Table table({"what", "ms median", "ms min", "GB/s", "x floor", "x sgemv", "ms a query", "gain over single"});
    for (const Series& series : *all) {
        const double ms = series.median();
        const bool engine = series.queries > 0 && &series != sgemv;
        // Each engine's own single query stands before its batches.
        if (engine && series.queries == 1) single = &series;
        const auto queries_a_run = static_cast<double>(series.queries);
        table.add({series.what, fmt::format("{:.2f}", ms), fmt::format("{:.2f}", series.least()),
                   fmt::format("{:.1f}", static_cast<double>(vectors.size_bytes()) / ms / 1e6), ratio(ms, &floor),
                   ratio(ms, sgemv), series.queries == 0 ? "" : fmt::format("{:.3f}", ms / queries_a_run),
                   engine && series.queries > 1 && single != nullptr ? ratio(single->median() * queries_a_run, &series)
                                                                     : ""});
    }
    table.print(stdout, settings.format);
    return {};
}

/// The daemon beside the first read of its file.
Status print_daemon(const format::Model& model, const Settings& settings, const std::string& scratch) {
    const auto figures = measure_daemon(
        model, {settings.daemon, scratch, settings.threads, settings.k, settings.rounds, settings.seed}, interrupted);
    if (!figures) return figures.error();
    Table table({"what", "ms median", "ms min", "ms p99", "x fresh read", "ms a query"});
    for (const Series* series : {&figures->fresh_read, &figures->first_answer, &figures->single, &figures->pipelined}) {
        const double ms = series->median();
        table.add({series->what, fmt::format("{:.2f}", ms), fmt::format("{:.2f}", series->least()),
                   fmt::format("{:.2f}", series->percentile(0.99)), ratio(ms, &figures->fresh_read),
                   series->queries == 0 ? "" : fmt::format("{:.3f}", ms / static_cast<double>(series->queries))});
    }
    fmt::print("\n");
    table.print(stdout, settings.format);
    fmt::print("{}daemon's memory beyond the mapped files after {} queries, {} of them with k={}: {:.1f} MB\n",
               settings.format == TableFormat::csv ? "# " : "\n", kQueriesBeforeMemory, kLargeQueries, kLargeK,
               static_cast<double>(figures->own_bytes) / 1e6);
    return {};
}

void print_header(const format::Model& model, const Settings& settings, const Result<OpenBlas>& blas) {
    const char* mark = settings.format == TableFormat::csv ? "# " : "";
    fmt::print("{}gloved-bench {}\n", mark, kProgramVersion);
    fmt::print("{}machine  {}, {} thread{}\n", mark, processor_name(), settings.threads,
               settings.threads == 1 ? "" : "s");
    fmt::print("{}model    {} x {} float32, {:.3f} GB of vectors, generation {}\n", mark, grouped(model.rows()),
               model.dim(), static_cast<double>(model.vectors().size_bytes()) / 1e9, format::hex(model.generation()));
    fmt::print("{}sgemv    {}\n", mark, blas ? blas->description() : "left out: " + blas.error().message);
    fmt::print("{}rounds   {}, k={}, other random words in each\n\n", mark, settings.rounds, settings.k);
    std::fflush(stdout);
}

Status run(const Settings& settings) {
    auto scratch = ScratchDirectory::create();
    if (!scratch) return scratch.error();
    std::string directory = settings.model;
    if (settings.generate) {
        directory = settings.keep.empty() ? scratch->path() + "/model" : settings.keep;
        Status made;
        const double ms = time_ms([&] {
            if (const auto header = generate_model(directory, *settings.generate, interrupted); !header)
                made = header.error();
        });
        if (!made) return made;
        fmt::print(stderr, "gloved-bench: made {} in {:.1f} s\n", directory, ms / 1000);
    }
    auto model = format::Model::open(directory);
    if (!model) return model.error();
    const auto norms = model->norms();
    if (std::none_of(norms.begin(), norms.end(), [](double norm) { return norm > 0; })) {
        return Error{ErrorCode::bad_source, directory + ": every vector is zero; there is nothing to ask for"};
    }
    Result<OpenBlas> blas = model->rows() > std::numeric_limits<int>::max()
                                ? Error{ErrorCode::unavailable, "more rows than its interface can count"}
                                : OpenBlas::load(settings.threads);
    print_header(*model, settings, blas);
    if (Status printed = print_engines(*model, settings, blas ? &*blas : nullptr); !printed) return printed;
    std::fflush(stdout);
    if (settings.daemon.empty()) return {};
    return print_daemon(*model, settings, scratch->path());
}

/// A whole number from `least` to `most`.
Result<std::uint64_t> parse_count(std::string_view name, std::string_view text, std::uint64_t least,
                                  std::uint64_t most) {
    std::uint64_t count = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault != std::errc() || end != text.data() + text.size() || count < least || count > most) {
        return Error{ErrorCode::bad_request,
                     fmt::format("{} takes a whole number from {} to {}, not '{}'", name, least, most, text)};
    }
    return count;
}

Result<std::vector<std::size_t>> parse_batches(std::string_view text) {
    std::vector<std::size_t> batches;
    while (true) {
        const std::size_t comma = text.find(',');
        const auto batch = parse_count("--batches (numbers with commas between)", text.substr(0, comma), 1, 1 << 20);
        if (!batch) return batch.error();
        batches.push_back(static_cast<std::size_t>(*batch));
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    // Single queries come first: the batches are compared with them.
    batches.push_back(1);
    std::sort(batches.begin(), batches.end());
    batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
    return batches;
}

Result<Settings> read_settings(const po::variables_map& values) {
    const auto text = [&](const char* name) { return values[name].as<std::string>(); };
    std::optional<Error> fault;
    const auto count = [&](const char* name, std::uint64_t least, std::uint64_t most) -> std::uint64_t {
        const auto number = parse_count(std::string("--") + name, text(name), least, most);
        if (number) return *number;
        if (!fault) fault = number.error();
        return least;
    };
    const auto usage = [](std::string message) { return Error{ErrorCode::bad_request, std::move(message)}; };

    Settings settings;
    settings.seed = count("seed", 0, std::numeric_limits<std::uint64_t>::max());
    settings.threads = static_cast<unsigned>(count("threads", 0, 4096));
    if (settings.threads == 0) settings.threads = kernels::usable_processors();
    settings.k = static_cast<std::size_t>(count("k", 1, format::kMaxRows));
    settings.rounds = static_cast<std::size_t>(count("repeat", 1, 1'000'000));
    if ((values.count("model") != 0) == (values.count("rows") != 0)) return usage("say either --model DIR or --rows N");
    if (values.count("model") != 0) settings.model = text("model");
    if (values.count("rows") != 0) {
        settings.generate = GenerateOptions{count("rows", 1, format::kMaxRows),
                                            static_cast<std::uint32_t>(count("dim", 1, format::kMaxDim)), settings.seed,
                                            settings.threads};
    }
    if (values.count("keep") != 0) {
        if (!settings.generate) return usage("--keep goes with --rows: it says where the made-up model stays");
        settings.keep = text("keep");
    }
    if (fault) return *fault;
    settings.engine = text("engine");
    settings.simd = text("simd");
    auto batches = parse_batches(text("batches"));
    if (!batches) return batches.error();
    settings.batches = *std::move(batches);
    if (values.count("daemon") != 0) settings.daemon = text("daemon");
    if (text("format") == "csv") {
        settings.format = TableFormat::csv;
    } else if (text("format") != "text") {
        return usage("--format takes text or csv");
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const auto value = [](const char* name) { return po::value<std::string>()->value_name(name); };
    const auto preset = [](const char* name, const char* preset_value) {
        return po::value<std::string>()->value_name(name)->default_value(preset_value);
    };
    po::options_description options("Options");
    options.add_options()                                                                           //
        ("model", value("DIR"), "measure with this model")                                          //
        ("rows", value("N"), "make up a model of N words")                                          //
        ("dim", preset("D", "300"), "with --rows: components of a vector")                          //
        ("seed", preset("S", "1"), "decides the made-up model and the words asked for")             //
        ("keep", value("DIR"), "with --rows: write the model there and leave it")                   //
        ("engine", preset("NAME", "cpu"), "engine to measure")                                      //
        ("simd", preset("NAME|all", ""), "cpu engine: instruction set, or all; default: the best")  //
        ("threads", preset("T", "0"), "threads of everything measured; 0: one a usable processor")  //
        ("batches", preset("LIST", "1,8,64"), "queries answered at once")                           //
        ("k", preset("K", "10"), "words an answer has")                                             //
        ("repeat", preset("R", "9"), "rounds")                                                      //
        ("daemon", value("PATH"), "measure this gloved program too")                                //
        ("format", preset("text|csv", "text"), "how results are printed")                           //
        ("help", "this text")("version", "the version");
    po::variables_map values;
    try {
        po::store(po::command_line_parser(argc, argv)
                      .options(options)
                      .positional({})
                      .style(po::command_line_style::default_style & ~po::command_line_style::allow_guessing)
                      .run(),
                  values);
    } catch (const po::error& error) {
        return fail(kUsage, fmt::format("{}; try --help", error.what()));
    }
    if (values.count("help") != 0) {
        std::cout << kSynopsis << '\n' << options << kExamples;
        return kDone;
    }
    if (values.count("version") != 0) {
        std::cout << "gloved-bench " << kProgramVersion << '\n';
        return kDone;
    }
    const auto settings = read_settings(values);
    if (!settings) return fail(kUsage, settings.error().message + "; try --help");

    end_on_signals();
    if (Status done = run(*settings); !done) return fail(kAtFault, done.error().message);
    return std::fflush(stdout) == 0 ? kDone : fail(kAtFault, "cannot write the results");
}
