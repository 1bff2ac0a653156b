#include "tools/bench/load.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "client/connection.hpp"
#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/program_main.hpp"
#include "common/program_version.hpp"
#include "common/text_lines.hpp"
#include "common/wire/reply.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/generate.hpp"
#include "tools/bench/load_report.hpp"
#include "tools/bench/load_requests.hpp"
#include "tools/bench/load_worker.hpp"
#include "tools/bench/measure.hpp"

namespace gloved::bench {
namespace {

using cli::WrongUsage;
using client::Connection;
using client::Reply;

constexpr std::uint64_t kMaxConnections = 100'000;
constexpr std::uint64_t kMaxDepth = 65'536;
constexpr std::uint64_t kMaxRate = 1'000'000'000;
constexpr double kMinSeconds = 0.1;

/// Enough that requests seldom repeat soon, and few enough to stay in a core's cache.
constexpr std::size_t kRequests = 16'384;
constexpr std::size_t kWordsOfModel = 65'536;
/// Asked for each byte that a word can begin with.
constexpr std::size_t kWordsPerByte = 1000;
/// Vectors are long: more would not stay in a cache.
constexpr std::size_t kVectors = 64;
constexpr std::size_t kMaxExpectedBytes = std::size_t{1} << 30;
/// Before the first request, so that all threads run by then.
constexpr std::int64_t kStartDelayNs = 20'000'000;
/// How long to wait for replies after the last request.
constexpr std::int64_t kPatienceNs = 10'000'000'000;

Error refused(const Reply& reply) {
    return error_with(ErrorCode::unavailable, "the daemon answers {}: {}", reply.status.code,
                      reply.status.message);
}

/// A reply whose status is OK. Errors: those of Connection::ask; unavailable, for an ERR.
Result<Reply> ask(Connection& connection, const std::string& request) {
    if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
    auto reply = connection.ask(request);
    if (reply && !reply->status.ok) return refused(*reply);
    return reply;
}

/// The value of a line of a reply to STATS; empty if there is none.
std::string_view stat(const Reply& stats, std::string_view key) {
    return client::value_of(stats, key).value_or("");
}

/// Frequent words of the daemon's model whose vectors are not zero: those for each first byte.
Result<std::vector<std::string>> ask_words(Connection& connection, std::size_t max_k) {
    std::vector<std::string> words;
    for (int byte = 0x21; byte <= 0xff; ++byte) {
        const auto reply = ask(
            connection, fmt::format("PREFIX k={} fields=norm {}", std::min(kWordsPerByte, max_k),
                                    wire::quote_word(std::string(1, static_cast<char>(byte)))));
        if (!reply) return reply.error();
        for (const std::string_view line : reply->lines()) {
            const std::size_t tab = line.rfind('\t');
            if (tab == std::string_view::npos || line.substr(tab + 1) == "0.000000") continue;
            words.emplace_back(line.substr(0, tab));
        }
    }
    if (words.empty()) {
        return bad_source("the daemon's model has no words to ask for; --model names them");
    }
    return words;
}

/// Random words of a model, which must be the one that the daemon serves.
Result<std::vector<std::string>> read_words(const LoadSettings& settings, const Reply& stats) {
    auto model = format::Model::open(settings.model, format::WithPlanes::no);
    if (!model) return model.error();
    const std::string_view served = stat(stats, "generation");
    if (served != format::hex(model->generation())) {
        return error_with(ErrorCode::mismatch, "{} has generation {}, the daemon's model {}",
                          settings.model, format::hex(model->generation()), served);
    }
    if (std::ranges::none_of(model->norms(), [](double norm) { return norm > 0; })) {
        return bad_source("{}: every vector is zero; there is nothing to ask for", settings.model);
    }
    RandomWords random(*model, settings.seed);
    std::vector<std::string> words;
    for (std::size_t i = 0; i < kWordsOfModel; ++i) words.emplace_back(model->key(random.next()));
    return words;
}

/// The vectors of some words, as the daemon writes them.
Result<std::vector<std::string>> ask_vectors(Connection& connection,
                                             const std::vector<std::string>& words) {
    std::vector<std::string> vectors;
    for (std::size_t i = 0; i < kVectors; ++i) {
        const std::string& word = words[i * words.size() / kVectors];
        const auto reply = ask(connection, fmt::format("VEC {}", wire::quote_word(word)));
        if (!reply) return reply.error();
        for (const std::string_view line : reply->lines()) vectors.emplace_back(line);
    }
    if (vectors.empty()) return bad_source("the daemon answers VEC without lines");
    return vectors;
}

/// The requests of the load.
Result<RequestPool> make_requests(const LoadSettings& settings, Connection& connection,
                                  const Reply& stats) {
    RequestOptions options;
    options.mix = settings.mix;
    options.k = settings.k;
    options.count = kRequests;
    options.seed = settings.seed;
    if (needs_words(settings.mix)) {
        std::size_t max_k = kWordsPerByte;
        const std::string_view text = stat(stats, "max_k");
        std::from_chars(text.data(), text.data() + text.size(), max_k);
        auto words =
            settings.model.empty() ? ask_words(connection, max_k) : read_words(settings, stats);
        if (!words) return words.error();
        options.words = *std::move(words);
    }
    if (needs_vectors(settings.mix)) {
        auto vectors = ask_vectors(connection, options.words);
        if (!vectors) return vectors.error();
        options.vectors = *std::move(vectors);
    }
    return RequestPool(options);
}

/// Asks the requests to check one at a time, while the daemon has nothing else to do.
Status ask_expected(LoadPlan& plan, Connection& connection, double share) {
    std::size_t bytes = 0;
    for (const std::size_t i : choose_checked(plan.pool, plan.parts, share)) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        std::string_view line = plan.pool.lines(i, i + 1);
        line.remove_suffix(1);
        auto reply = connection.ask(line);
        if (!reply) return reply.error();
        // The load would be refused as well.
        if (reply->status.code == wire::code_name(ErrorCode::bad_request)) return refused(*reply);
        bytes += reply->text.size();
        if (bytes > kMaxExpectedBytes) {
            return bad_source(
                "the answers to check do not fit into 1 GiB; choose a smaller --check");
        }
        plan.expected[i] = std::make_unique<Reply>(*std::move(reply));
    }
    return {};
}

/// The processor time of a process.
class ProcessorClock {
  public:
    /// nullopt if the process is not visible here.
    static std::optional<ProcessorClock> of(pid_t pid) {
        ProcessorClock clock;
        if (pid <= 0 || ::clock_getcpuclockid(pid, &clock.id_) != 0) return std::nullopt;
        return clock;
    }
    double seconds() const {
        timespec time{};
        ::clock_gettime(id_, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    }

  private:
    clockid_t id_ = 0;
};

/// The daemon's process; 0 if it is unknown.
pid_t find_daemon(const LoadSettings& settings, const Connection& connection) {
    if (settings.daemon_pid != 0) return settings.daemon_pid;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
    const auto name = read_text(fmt::format("/proc/{}/comm", peer.pid), 64);
    // It opens the sockets of its services, and is not the one that answers.
    return name && *name != "systemd\n" ? peer.pid : 0;
}

/// The workers of a load: the lone client, if there is one, is the last.
Result<std::vector<LoadWorker>> make_workers(LoadPlan& plan, const LoadSettings& settings) {
    std::vector<LoadWorker> workers;
    for (unsigned i = 0; i < settings.threads; ++i) {
        auto worker = LoadWorker::create(plan, i, settings.threads);
        if (!worker) return worker.error();
        workers.push_back(*std::move(worker));
    }
    if (settings.lone) {
        auto worker = LoadWorker::create_lone(plan);
        if (!worker) return worker.error();
        workers.push_back(*std::move(worker));
    }
    return workers;
}

/// Runs every worker on a thread of its own. Error: the first one of a worker.
Status run_workers(std::span<LoadWorker> workers) {
    std::vector<Status> done(workers.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers.size(); ++i)
        threads.emplace_back([&, i] { done[i] = workers[i].run(); });
    for (std::thread& thread : threads) thread.join();
    for (const Status& one : done) {
        if (!one) return one;
    }
    return {};
}

Result<LoadFigures> measure_load(LoadPlan& plan, const LoadSettings& settings, pid_t daemon) {
    auto workers = make_workers(plan, settings);
    if (!workers) return workers.error();
    const auto daemon_clock = ProcessorClock::of(daemon);
    if (!daemon_clock && settings.daemon_pid != 0)
        return error_with(ErrorCode::unavailable, "there is no process {}", settings.daemon_pid);
    const auto own_clock = ProcessorClock::of(::getpid());
    plan.start_ns = clock_ns() + kStartDelayNs;
    plan.end_ns = plan.start_ns + std::chrono::nanoseconds(settings.seconds).count();
    plan.give_up_ns = plan.end_ns + kPatienceNs;
    const double own_before = own_clock->seconds();
    const double daemon_before = daemon_clock ? daemon_clock->seconds() : 0;
    if (Status done = run_workers(*workers); !done) return done.error();
    LoadFigures figures{.counts = LoadCounts(plan.parts)};
    figures.own_cpu_seconds = own_clock->seconds() - own_before;
    if (daemon_clock) figures.daemon_cpu_seconds = daemon_clock->seconds() - daemon_before;
    figures.wall_seconds = static_cast<double>(clock_ns() - plan.start_ns) / 1e9;
    figures.seconds = static_cast<double>(plan.end_ns - plan.start_ns) / 1e9;
    for (const MixPart& part : settings.mix) figures.parts.emplace_back(part.kind->name);
    if (settings.lone) {
        figures.lone = workers->back().counts();
        workers->pop_back();
    }
    for (const LoadWorker& worker : *workers) figures.counts.add(worker.counts());
    return figures;
}

void print_header(const LoadSettings& settings, const Reply& stats, pid_t daemon) {
    const auto note = [&](const std::string& text) { print_note(settings.format, text); };
    note(fmt::format("gloved-bench {}", kProgramVersion));
    note("machine    " + processor_text(settings));
    note(fmt::format("daemon     {}, model {}: {} x {}, engine {}, generation {}",
                     daemon != 0 ? fmt::format("process {}", daemon)
                                 : "process unknown: name it with --daemon-pid",
                     stat(stats, "model"), stat(stats, "rows"), stat(stats, "dim"),
                     stat(stats, "engine"), stat(stats, "generation")));
    std::vector<std::string> mix;
    for (const MixPart& part : settings.mix)
        mix.push_back(fmt::format("{}={}", part.kind->name, part.weight));
    note(fmt::format("load       {}, k={}, {:g} s, {} connection{}, {}{}", fmt::join(mix, ","),
                     settings.k, std::chrono::duration<double>(settings.seconds).count(),
                     settings.connections, settings.connections == 1 ? "" : "s",
                     settings.rate > 0 ? with_commas(static_cast<std::uint64_t>(settings.rate)) +
                                             " requests/s in all"
                                       : fmt::format("depth {}", settings.depth),
                     settings.lone ? ", lone client" : ""));
    std::fflush(stdout);
}

/// Prints the tables. Errors: internal, if an answer is wrong; unavailable, if there is none.
Status report(const LoadSettings& settings, const LoadFigures& figures) {
    for (const std::string& line : load_notes(figures)) print_note(settings.format, line);
    fmt::print("\n");
    answers_table(figures).print(stdout, settings.format);
    fmt::print("\n");
    processor_table(figures).print(stdout, settings.format);
    const auto& wrong = figures.counts.first_wrong || !figures.lone ? figures.counts.first_wrong
                                                                    : figures.lone->first_wrong;
    if (wrong) {
        for (const std::string& line : wrong_answer_text(*wrong)) print_note(settings.format, line);
        return Error{ErrorCode::internal,
                     "an answer under load differs from that of the quiet "
                     "daemon"};
    }
    const auto answered = [](const LatencyHistogram& latencies) { return latencies.count() > 0; };
    if (std::ranges::none_of(figures.counts.latencies, answered))
        return Error{ErrorCode::unavailable, "the daemon answered no request"};
    return {};
}

}  // namespace

const cli::Program kLoadProgram = {"gloved-bench load",
                                   R"(Usage: gloved-bench load SOCKET [options]

Asks the daemon that listens at SOCKET as much as it can answer, or with --rate
so much a second. Prints answers per second, latencies, and the processor time
of both sides.

)",
                                   R"(
Examples:
  gloved-bench load /tmp/gloved.sock --mix near=8,sim=1,ping=1 --lone
  gloved-bench load /tmp/gloved.sock --rate 2000 --seconds 30

Exit status:
  0  success
  1  an answer is wrong or missing
  2  wrong usage
)"};

cli::Options describe_load_options() {
    cli::Options options;
    options.operands = {"socket"};
    cli::OptionAdder add(options.shown);
    add("mix", cli::value("LIST", "near"),
        "what to ask, kinds with commas between, each with its weight, e.g. near=8,sim=1,ping=1; "
        "the man page lists them");
    add("model", cli::value("DIR"), "the daemon's model, to take words from (default: ask it)");
    add("k", cli::value("K", "10"), "words per answer");
    add("connections", cli::value("N", "16"), "connections to the daemon");
    add("depth", cli::value("N", "16"),
        "requests of each connection that are sent ahead of replies");
    add("rate", cli::value("R"),
        "send R requests per second in all, whatever the daemon does, and measure latencies from "
        "the time when each was due");
    add("seconds", cli::value("S", "10"), "how long to send requests");
    add("check", cli::value("SHARE", "0.01"),
        "share of the requests whose answers are compared with those of a quiet daemon");
    add("lone", "add a client that asks one request at a time, with latencies of its own");
    add("daemon-pid", cli::value("PID"),
        "the daemon's process (default: the one that opened the socket)");
    add("threads", cli::value("T", "0"), "threads to use; 0 is one per two cores");
    add("seed", cli::value("S", "1"), "seed of the requests");
    add("format", cli::value("text|csv", "text"), "how to print results");
    return options;
}

LoadSettings read_load_settings(const cli::CommandLine& line) {
    line.excludes("rate", {"depth"});
    LoadSettings settings;
    read_run_settings(line, settings);
    settings.socket = line.text("socket");
    if (settings.socket.empty()) throw WrongUsage("the path of the daemon's socket is missing");
    settings.model = line.nonempty("model", "a directory");
    settings.connections = line.count("connections", 1, kMaxConnections);
    // The daemon and its engines need the other cores.
    if (line.text("threads") == "0")
        settings.threads = std::max(1U, kernels::usable_processors() / 2);
    settings.threads =
        static_cast<unsigned>(std::min<std::size_t>(settings.threads, settings.connections));
    settings.depth = line.count("depth", 1, kMaxDepth);
    settings.rate = static_cast<double>(line.count("rate", 1, kMaxRate, 0));
    settings.mix = parse_mix(line.text("mix"));
    settings.k = line.count("k", 1, format::kMaxRows);
    settings.seconds = line.seconds("seconds", kMinSeconds);
    settings.check = line.number("check", 0, 1);
    settings.lone = line.given("lone");
    settings.daemon_pid =
        static_cast<pid_t>(line.count("daemon-pid", 1, std::numeric_limits<pid_t>::max(), 0));
    return settings;
}

Status print_load(const LoadSettings& settings) {
    raise_descriptor_limit();
    auto connection = Connection::open({settings.socket}, kReplyTimeout);
    if (!connection) return connection.error();
    const auto stats = ask(*connection, "STATS");
    if (!stats) return stats.error();
    const pid_t daemon = find_daemon(settings, *connection);
    print_header(settings, *stats, daemon);
    auto pool = make_requests(settings, *connection, *stats);
    if (!pool) return pool.error();
    LoadPlan plan{.socket = settings.socket, .pool = *std::move(pool)};
    plan.parts = settings.mix.size();
    plan.expected.resize(plan.pool.size());
    plan.connections = settings.connections;
    plan.depth = settings.depth;
    if (settings.rate > 0) plan.open.emplace(settings.rate, settings.connections);
    if (Status asked = ask_expected(plan, *connection, settings.check); !asked) return asked;
    {
        // Closed: the load alone is measured.
        const Connection done = *std::move(connection);
    }
    const auto figures = measure_load(plan, settings, daemon);
    if (!figures) return figures.error();
    return report(settings, *figures);
}

}  // namespace gloved::bench
