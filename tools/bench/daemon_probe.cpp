#include "tools/bench/daemon_probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "cli/signals.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/process_memory.hpp"
#include "common/wire/reply.hpp"
#include "kernels/thread_pool.hpp"
#include "tools/bench/connection.hpp"
#include "tools/bench/words.hpp"

namespace gloved::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kConnectEvery = std::chrono::microseconds(500);
constexpr auto kTimeout = std::chrono::seconds(60);
constexpr std::size_t kTurn = 500;
constexpr const char* kListeningMessage = "listening on";  // in the daemon's log

/// Waits for each number of microseconds that it receives, then answers with a byte. The destructor
/// ends its thread.
class Echo {
  public:
    static Result<std::unique_ptr<Echo>> start() {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
            return system_error("the echo's socket", "cannot make it", errno);
        return std::unique_ptr<Echo>(new Echo(UniqueFd(ends[0]), UniqueFd(ends[1])));
    }
    Echo(const Echo&) = delete;
    Echo& operator=(const Echo&) = delete;
    ~Echo() {
        ::shutdown(near_.get(), SHUT_RDWR);
        thread_.join();
    }

    Status ask(double ms) {
        const auto us = static_cast<std::uint64_t>(ms * 1000);
        char answer = 0;
        if (::send(near_.get(), &us, sizeof us, MSG_NOSIGNAL) != sizeof us ||
            ::recv(near_.get(), &answer, sizeof answer, 0) != sizeof answer) {
            return system_error("the echo's socket", "no answer", errno);
        }
        return {};
    }

  private:
    Echo(UniqueFd near, UniqueFd far)
        : near_(std::move(near)), far_(std::move(far)), thread_([this] { answer(); }) {}

    void answer() {
        std::uint64_t us = 0;
        while (::recv(far_.get(), &us, sizeof us, MSG_WAITALL) == sizeof us) {
            // Busy, as the daemon is while the engine works.
            const auto until = Clock::now() + std::chrono::microseconds(us);
            while (Clock::now() < until) {
            }
            if (::send(far_.get(), "", 1, MSG_NOSIGNAL) != 1) return;
        }
    }

    UniqueFd near_;
    UniqueFd far_;
    std::thread thread_;
};

/// A running gloved. The destructor stops it.
class Daemon {
  public:
    static Result<Daemon> start(const format::Model& model, const DaemonOptions& options) {
        Daemon daemon;
        daemon.socket_ = options.directory + "/socket";
        daemon.log_ = options.directory + "/log";
        ::unlink(daemon.socket_.c_str());
        std::array<std::string, 9> arguments = {
            options.program, "--model",   "bench=" + model.path(),         "--socket",
            daemon.socket_,  "--threads", std::to_string(options.threads), "--engine",
            options.engine};
        std::array<char*, arguments.size() + 1> argv{};
        for (std::size_t i = 0; i < arguments.size(); ++i) argv[i] = arguments[i].data();
        // spawn, not fork: copying this process's page tables would add to the time.
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, daemon.log_.c_str(),
                                           O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
        const int fault =
            ::posix_spawnp(&daemon.pid_, argv[0], &actions, nullptr, argv.data(), environ);
        ::posix_spawn_file_actions_destroy(&actions);
        if (fault != 0) {
            daemon.pid_ = -1;
            return error_with(ErrorCode::unavailable, "{}: cannot start: {}", options.program,
                              std::strerror(fault));
        }
        return daemon;
    }

    Daemon(Daemon&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)),
          socket_(std::move(other.socket_)),
          log_(std::move(other.log_)) {}
    Daemon& operator=(Daemon&&) = delete;
    ~Daemon() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGTERM);
        for (const auto give_up = Clock::now() + std::chrono::seconds(10); !ended();) {
            if (Clock::now() > give_up) ::kill(pid_, SIGKILL);
            std::this_thread::sleep_for(kConnectEvery);
        }
    }

    /// Connects once the daemon listens.
    Result<Connection> connect() {
        std::optional<Connection> connection;
        const auto connects = [&] {
            if (auto opened = Connection::open(socket_)) connection.emplace(*std::move(opened));
            return connection.has_value();
        };
        if (Status done = wait_until(connects, "does not listen"); !done) return done.error();
        return *std::move(connection);
    }

    /// Waits until the log has kListeningMessage.
    Status wait_for_log() {
        const auto says_it = [&] {
            std::ifstream file(log_);
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            return text.find(kListeningMessage) != std::string::npos;
        };
        return wait_until(says_it, "never said that it listens");
    }

    /// Memory without pages of mapped files.
    Result<std::uint64_t> own_bytes() const {
        const auto memory = process_memory(fmt::format("/proc/{}/status", pid_));
        if (!memory) return memory.error();
        return memory->own_bytes;
    }

  private:
    Daemon() = default;
    template <class Condition>
    Status wait_until(const Condition& holds, const char* else_it) {
        for (const auto give_up = Clock::now() + kTimeout; Clock::now() < give_up;) {
            if (holds()) return {};
            if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
            if (ended()) {
                pid_ = -1;
                else_it = "ended by itself";
                break;
            }
            std::this_thread::sleep_for(kConnectEvery);
        }
        return error_with(ErrorCode::unavailable, "the daemon {}; it said: {}", else_it,
                          end_of_log());
    }
    bool ended() const { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; }
    std::string end_of_log() const {
        std::ifstream file(log_);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        return text.size() > 1000 ? "…" + text.substr(text.size() - 1000) : text;
    }

    pid_t pid_ = -1;
    std::string socket_;
    std::string log_;
};

/// Makes NEAR requests for random words.
class Requests {
  public:
    Requests(const format::Model& model, std::uint64_t seed) : words_(model, seed), model_(model) {}

    std::string next(std::size_t k) {
        return fmt::format("NEAR k={} {}\n", k, wire::quote_word(model_.key(words_.next())));
    }

  private:
    RandomWords words_;
    const format::Model& model_;
};

/// Measures an echo for each time in `model` that `echoes` lacks.
Status echo_as_long(Echo& echo, const Series& model, Series& echoes) {
    while (echoes.ms.size() < model.ms.size()) {
        Status answered;
        echoes.ms.push_back(time_ms([&] { answered = echo.ask(model.ms[echoes.ms.size()]); }));
        if (!answered) return answered;
    }
    return {};
}

Result<Daemon> start_and_connect(const format::Model& model, const DaemonOptions& options,
                                 std::optional<Connection>& connection) {
    auto daemon = Daemon::start(model, options);
    if (!daemon) return daemon.error();
    auto connected = daemon->connect();
    if (!connected) return connected.error();
    connection.emplace(*std::move(connected));
    return daemon;
}

/// Measures fresh_read, listening and first_answer, in turns.
Status measure_starts(const format::Model& model, const DaemonOptions& options, Requests& requests,
                      DaemonFigures& figures) {
    kernels::ThreadPool pool(options.threads);
    std::string request;
    std::optional<Daemon> daemon;
    MappedFile mapping;
    const std::string values = model.path() + "/" + format::kValuesFile;
    // All start with the files in the page cache only: no daemon runs during the fresh read.
    const auto clear = [&](std::size_t) {
        daemon.reset();
        mapping = {};
        request = requests.next(options.k);
    };
    const std::array<Contender, 3> contenders = {{
        {"first read of a fresh mapping", 0, clear,
         [&]() -> Status {
             const UniqueFd fd(::open(values.c_str(), O_RDONLY | O_CLOEXEC));
             if (!fd) return system_error(values, "cannot open", errno);
             auto mapped = MappedFile::map(fd.get(), model.mapped_values().size(), values);
             if (!mapped) return mapped.error();
             mapping = *std::move(mapped);
             read_all(pool, mapping.bytes());
             return {};
         }},
        {"daemon: exec to listening", 0, clear,
         [&]() -> Status {
             auto started = Daemon::start(model, options);
             if (!started) return started.error();
             daemon.emplace(*std::move(started));
             return daemon->wait_for_log();
         }},
        {"daemon: exec to first answer", 1, clear,
         [&]() -> Status {
             std::optional<Connection> connection;
             auto started = start_and_connect(model, options, connection);
             if (!started) return started.error();
             daemon.emplace(*std::move(started));
             const auto answered = connection->time(request);
             return answered ? Status() : answered.error();
         }},
    }};
    auto starts = measure(contenders, options.rounds, cli::stop_requested);
    if (!starts) return starts.error();
    figures.fresh_read = std::move((*starts)[0]);
    figures.listening = std::move((*starts)[1]);
    figures.first_answer = std::move((*starts)[2]);
    return {};
}

/// Measures single, inside, echo and own_bytes.
Status measure_singles(const Daemon& daemon, Connection& connection, const DaemonOptions& options,
                       Requests& requests, DaemonFigures& figures) {
    auto echo = Echo::start();
    if (!echo) return echo.error();
    figures.single = {"daemon: one query at a time", 1};
    figures.inside = {"  of it, by the daemon's clock", 0};
    figures.echo = {"  an echo after as long", 0};
    const auto wanted = std::max(options.singles, kQueriesBeforeMemory);
    for (std::size_t i = 0; i < wanted; ++i) {
        if (cli::stop_requested()) return Error{ErrorCode::interrupted, "interrupted"};
        const bool large =
            i < kQueriesBeforeMemory && i % (kQueriesBeforeMemory / kLargeQueries) == 0;
        const std::string request = requests.next(large ? kLargeK : options.k);
        Result<double> inside = 0.0;
        const double ms = time_ms([&] { inside = connection.time(request); });
        if (!inside) return inside.error();
        if (!large) {
            figures.single.ms.push_back(ms);
            figures.inside.ms.push_back(*inside);
        }
        // In turns, so that both meet the same disturbances; in long ones, since daemon and GPU go
        // to sleep meanwhile.
        if ((i + 1) % kTurn == 0 || i + 1 == wanted) {
            if (Status echoed = echo_as_long(**echo, figures.inside, figures.echo); !echoed)
                return echoed;
            if (const auto awake = connection.time(request); !awake) return awake.error();
        }
        if (i + 1 != kQueriesBeforeMemory) continue;
        const auto own_bytes = daemon.own_bytes();
        if (!own_bytes) return own_bytes.error();
        figures.own_bytes = *own_bytes;
    }
    return {};
}

Result<Series> measure_pipelined(Connection& connection, const DaemonOptions& options,
                                 Requests& requests) {
    std::string request;
    const Contender pipelined{fmt::format("daemon: {} pipelined", kPipelined), kPipelined,
                              [&](std::size_t) {
                                  request.clear();
                                  for (std::size_t i = 0; i < kPipelined; ++i)
                                      request += requests.next(options.k);
                              },
                              [&]() -> Status {
                                  if (Status sent = connection.send(request); !sent) return sent;
                                  for (std::size_t i = 0; i < kPipelined; ++i) {
                                      if (const auto read = connection.skip_reply(); !read)
                                          return read.error();
                                  }
                                  return {};
                              }};
    auto series = measure(std::span(&pipelined, 1), options.rounds, cli::stop_requested);
    if (!series) return series.error();
    return std::move(series->front());
}

}  // namespace

Result<DaemonFigures> measure_daemon(const format::Model& model, const DaemonOptions& options) {
    DaemonFigures figures;
    Requests requests(model, options.seed);
    if (Status done = measure_starts(model, options, requests, figures); !done) return done.error();
    std::optional<Connection> connection;
    const auto daemon = start_and_connect(model, options, connection);
    if (!daemon) return daemon.error();
    // Warms up.
    if (const auto asked = connection->time(requests.next(options.k)); !asked) return asked.error();
    Status done = measure_singles(*daemon, *connection, options, requests, figures);
    if (!done) return done.error();
    auto pipelined = measure_pipelined(*connection, options, requests);
    if (!pipelined) return pipelined.error();
    figures.pipelined = *std::move(pipelined);
    return figures;
}

}  // namespace gloved::bench
