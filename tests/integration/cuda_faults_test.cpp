// gloved when a GPU fails: it reports an error that names the call, answers nothing, and ends in
// time for its supervisor to restart it. The GPU is fake and fails at the call that a test names.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/format/model.hpp"
#include "common/result.hpp"
#include "kernels/cuda/shard.hpp"
#include "kernels/engine.hpp"
#include "kernels/engine_options.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/registry.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using kernels::Engine;
using kernels::EngineOptions;
using kernels::Query;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Out of memory, no device, illegal address, launch failure, unknown. From 700 on they are sticky.
constexpr int kCodes[] = {2, 100, 700, 719, 999};
/// More calls than any start or query makes, so that a loop over calls ends.
constexpr std::uint64_t kTooMany = 2000;
/// Time in which a process must end after its GPU has failed; longer with sanitizers, which slow it
/// down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr milliseconds kPromptly{10000};
#else
constexpr milliseconds kPromptly{2000};
#endif
/// Of the calls of a start, a program's tests fail every seventh: what each one's failure does to
/// the engine, the tests in this process tell.
constexpr std::uint64_t kStep = 7;
/// Longest wait for a reply, so that a daemon that survives a fault fails the test.
constexpr std::chrono::seconds kPatience{10};

/// The name of a call in error messages.
std::string called(const std::string& function) {
    const std::string launch = "launch_";
    return function.rfind(launch, 0) == 0 ? "launch of " + function.substr(launch.size())
                                          : function;
}

// --- In this process: the engine itself.

struct EngineSetup {
    std::string name;
    std::vector<int> devices;
    bool lazy = false;
    bool timed = false;
    bool planes = true;
    bool without_vectors = false;  ///< devices have room for the plane alone
    bool replicas = false;         ///< each device holds all rows
};

void PrintTo(const EngineSetup& setup, std::ostream* out) { *out << setup.name; }

const std::vector<EngineSetup> kSetups = {
    {"one", {0}, false, false},
    {"one_lazy_timed", {0}, true, true},
    {"shards_on_two_devices_lazy", {0, 1, 0}, true, false},
    {"scores_lazy", {0}, true, false, false},
    {"plane_alone_on_two_devices_lazy", {0, 1}, true, false, true, true},
    {"replicas_on_two_devices_lazy", {0, 1}, true, false, true, false, true}};

/// Which code a call returns. Several devices make many calls, most of which one makes too: there
/// the quick tests return the codes in turn.
enum class Codes { each, in_turn };

using Case = std::pair<EngineSetup, Codes>;

std::vector<Case> cases() {
    std::vector<Case> cases;
    for (const EngineSetup& setup : kSetups) {
        cases.emplace_back(setup, Codes::each);
        if (setup.devices.size() > 1) cases.emplace_back(setup, Codes::in_turn);
    }
    return cases;
}

class CudaFaults : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        // A dim that needs padding, rows that no bound covers, and enough of them for three shards.
        // Without vectors, wide ones: where there are int8 codes, a start that fails goes on
        // without them.
        const std::size_t dim = setup().without_vectors ? kernels::cuda::kMaxInt8Dim + 1 : 30;
        auto entries = random_entries(200, dim, 1);
        entries[7].second.assign(dim, 0.0F);
        entries[70].second.assign(dim, 1e-42F);
        model_ = std::make_unique<format::Model>(make_model(dir_ / "model", entries));
        heal();
    }

    static const EngineSetup& setup() { return GetParam().first; }

    /// For each round of failing calls, the code that a call returns.
    static std::vector<std::function<int(std::uint64_t)>> rounds() {
        if (GetParam().second == Codes::in_turn)
            return {[](std::uint64_t call) { return kCodes[call % std::size(kCodes)]; }};
        std::vector<std::function<int(std::uint64_t)>> rounds;
        for (const int code : kCodes) rounds.emplace_back([code](std::uint64_t) { return code; });
        return rounds;
    }

    void heal() const {
        fake_cuda::Settings settings;
        settings.devices = 2;
        settings.lazy = setup().lazy;
        settings.plane_pass_capacity = 4;  // small buffers: many engines are made here
        fake_cuda::reset(settings);
    }

    Result<std::unique_ptr<Engine>> make(const std::string& name) const {
        EngineOptions options;
        options.devices.numbers = setup().devices;
        options.spread = setup().replicas ? kernels::Spread::queries : kernels::Spread::rows;
        options.time_device = setup().timed;
        options.planes = setup().planes;
        options.host_vectors = setup().without_vectors;
        options.int8_pass = !setup().without_vectors;
        return kernels::make_engine(*kernels::parse_engine(name), *model_, options);
    }

    Query nearest(std::size_t k) const {
        const auto vector = model_->vector(3);
        return {kernels::Cosine{*kernels::make_query_vector({vector.begin(), vector.end()})},
                k,
                {},
                {}};
    }

    /// Whether an error names the call that failed. After a sticky error, which is one of all fake
    /// devices, the thread of another device may be the first to report.
    static bool names_the_call(int code) {
        return setup().devices.size() == 1 || !fake_cuda::is_sticky(code);
    }

    /// Expects that a fault left no live resource and no last error.
    static void expect_clean(int code) {
        EXPECT_EQ(fake_cuda::live(), fake_cuda::Live{}) << fake_cuda::describe(fake_cuda::live());
        EXPECT_EQ(fake_cuda::last_error(), fake_cuda::is_sticky(code) ? code : 0);
    }

    TempDir dir_;
    std::unique_ptr<format::Model> model_;
};

TEST_P(CudaFaults, EveryFailingCallOfAStartIsAnError) {
    for (const std::string name : {"cuda", "auto"}) {
        for (const auto& code_of : rounds()) {
            std::uint64_t call = 1;
            for (; call < kTooMany; ++call) {
                const int code = code_of(call);
                SCOPED_TRACE(name + ": call " + std::to_string(call) + " returns " +
                             std::to_string(code));
                heal();
                fake_cuda::arm({call, code});
                auto engine = make(name);
                const std::string injected = fake_cuda::injected();
                if (injected.empty()) {
                    ASSERT_TRUE(engine);
                    break;
                }
                const bool pin_refused =
                    injected == "cudaHostRegister" && !fake_cuda::is_sticky(code);
                // Vectors that are read in place must be page-locked.
                const bool pin_needed = injected == "cudaHostRegister" && setup().without_vectors;
                // «No device» from the first call is not a fault.
                const bool no_device = call == 1 && code == 100;
                if (pin_needed) {
                    ASSERT_FALSE(engine);
                    EXPECT_EQ(engine.error().code, ErrorCode::unavailable)
                        << engine.error().message;
                    EXPECT_NE(engine.error().message.find("limit on locked memory"),
                              std::string::npos)
                        << engine.error().message;
                } else if (pin_refused) {
                    ASSERT_TRUE(engine) << engine.error().message;
                    EXPECT_EQ((*engine)->kind(), kernels::EngineKind::cuda);
                    engine = Error{};
                } else if (no_device && name == "auto") {
                    ASSERT_TRUE(engine) << engine.error().message;
                    EXPECT_EQ((*engine)->kind(), kernels::EngineKind::cpu);
                    engine = Error{};
                } else {
                    ASSERT_FALSE(engine)
                        << injected << " failed, and the engine is " << (*engine)->name();
                    const Error& error = engine.error();
                    EXPECT_EQ(error.code, no_device ? ErrorCode::unavailable : ErrorCode::device)
                        << error.message;
                    // A refused page lock is not a fault; a lost device shows at the next call.
                    if (!no_device && injected != "cudaHostRegister" && names_the_call(code)) {
                        EXPECT_NE(error.message.find(called(injected)), std::string::npos)
                            << error.message << " does not name " << injected;
                    }
                }
                expect_clean(code);
            }
            EXPECT_GT(call, 20U) << "a start makes more calls than that";
            EXPECT_LT(call, kTooMany);
        }
    }
}

TEST_P(CudaFaults, EveryFailingCallOfARunIsAnErrorAndTheLastWord) {
    const auto vector = [&](kernels::Row row) {
        const auto values = model_->vector(row);
        return *kernels::make_query_vector({values.begin(), values.end()});
    };
    std::vector<std::pair<std::string, std::vector<Query>>> runs;
    // Few enough hits for a small plane's warps.
    runs.push_back({"one query", {nearest(5)}});
    runs.push_back({"a batch", std::vector<Query>(5, nearest(5))});
    runs.push_back({"a large k", {nearest(5000)}});
    runs.push_back({"a row range", {nearest(5)}});
    runs.back().second[0].filter.rows = kernels::RowRange{5, 100};
    runs.push_back(
        {"cosmul", {{kernels::CosMul{{vector(1), vector(2)}, {vector(3)}}, 10, {}, {}}}});
    runs.push_back(
        {"cosmul, a large k", {{kernels::CosMul{{vector(1)}, {vector(3)}}, 5000, {}, {}}}});
    runs.push_back({"count", {{kernels::CountBefore{vector(1), 9}, 1, {}, {}}}});
    runs.push_back({"all of them", {}});
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
        runs.back().second.insert(runs.back().second.end(), runs[i].second.begin(),
                                  runs[i].second.end());
    }
    for (const auto& [what, queries] : runs) {
        for (const auto& code_of : rounds()) {
            std::uint64_t call = 1;
            for (; call < kTooMany; ++call) {
                const int code = code_of(call);
                SCOPED_TRACE(what + ": call " + std::to_string(call) + " returns " +
                             std::to_string(code));
                heal();
                {
                    auto engine = make("cuda");
                    ASSERT_TRUE(engine) << engine.error().message;
                    fake_cuda::arm({call, code});
                    const auto answers = (*engine)->run(queries);
                    const std::string injected = fake_cuda::injected();
                    if (injected.empty()) {
                        ASSERT_TRUE(answers) << answers.error().message;
                        break;
                    }
                    ASSERT_FALSE(answers) << injected << " failed, and there are answers";
                    EXPECT_EQ(answers.error().code, ErrorCode::device);
                    if (names_the_call(code)) {
                        EXPECT_NE(answers.error().message.find(called(injected)), std::string::npos)
                            << answers.error().message;
                    }
                    // Even after an error that is not sticky, since the device's memory may be
                    // wrong.
                    fake_cuda::arm({});
                    const auto again = (*engine)->run(queries);
                    ASSERT_FALSE(again);
                    EXPECT_EQ(again.error().code, ErrorCode::device);
                    EXPECT_EQ(fake_cuda::calls(), 0U)
                        << "a device that has failed is not asked again";
                }
                expect_clean(code);
            }
            EXPECT_GT(call, 4U);
            EXPECT_LT(call, kTooMany);
        }
    }
    heal();
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
    const auto& [setup, codes] = info.param;
    return setup.name + (codes == Codes::each ? "_each_code" : "_codes_in_turn");
}

INSTANTIATE_TEST_SUITE_P(Engine, CudaFaults, testing::ValuesIn(cases()), case_name);

// --- The program, told by its environment.

/// Environment variables, set while this object lives, for programs that the test starts.
class Environment {
  public:
    Environment() = default;
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() {
        for (const std::string& name : names_) ::unsetenv(name.c_str());
    }
    void set(const std::string& name, const std::string& value) {
        ::setenv(("GLOVED_FAKE_CUDA_" + name).c_str(), value.c_str(), 1);
        names_.push_back("GLOVED_FAKE_CUDA_" + name);
    }
    void fail(std::uint64_t call, int code) {
        set("FAIL", std::to_string(call) + ":" + std::to_string(code));
    }

  private:
    std::vector<std::string> names_;
};

std::string fake_gloved() { return program("../tests/gloved-fake-cuda"); }

/// The function that the fake announced as failed; empty if none.
std::string injected_in(const std::string& output) {
    const auto at = output.find("fake cuda: call ");
    if (at == std::string::npos) return {};
    const auto open = output.find('(', at);
    return output.substr(open + 1, output.find(')', open) - open - 1);
}

/// What the program printed, without the fake's announcements.
std::string own_words(const std::string& output) {
    std::istringstream lines(output);
    std::string own;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("fake cuda: call ", 0) != 0) own += line + "\n";
    }
    return own;
}

/// Whether a process ended by itself, not by a misuse of the runtime or a sanitizer's report.
void expect_orderly(const Finished& finished) {
    EXPECT_EQ(finished.signal, 0);
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_EQ(finished.err.find("misuse"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find("Sanitizer"), std::string::npos) << finished.err;
}

/// gloved-fake-cuda in the background, on a socket of its own.
class FakeDaemon {
  public:
    explicit FakeDaemon(const std::vector<std::string>& options = {}) {
        std::vector<std::string> arguments = {fake_gloved(), "--model", sample_model(), "--socket",
                                              socket_path()};
        arguments.insert(arguments.end(), options.begin(), options.end());
        process_ = std::make_unique<Background>(arguments);
    }

    std::string socket_path() const { return dir_ / "gloved.sock"; }
    Background& process() { return *process_; }

    /// Connects as soon as the daemon listens; nothing when the process ends before.
    std::unique_ptr<Connection> connect() {
        const auto deadline = Clock::now() + std::chrono::seconds(30);
        while (Clock::now() < deadline) {
            try {
                return std::make_unique<Connection>(socket_path(), kPatience);
            } catch (const std::runtime_error&) {
                if (!process_->running()) return nullptr;
                std::this_thread::sleep_for(milliseconds(1));
            }
        }
        throw std::runtime_error("gloved-fake-cuda does not listen:\n" + process_->output());
    }
    /// Connects and waits for a first answer.
    std::unique_ptr<Connection> connect_ready() {
        auto connection = connect();
        if (!connection || connection->ask("PING").status != "OK 0") {
            throw std::runtime_error("gloved-fake-cuda did not start:\n" + process_->output());
        }
        return connection;
    }
    void expect_stops_well() {
        process_->signal(SIGTERM);
        const Finished finished = process_->wait();
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
    }

  private:
    TempDir dir_;
    std::unique_ptr<Background> process_;
};

TEST(CudaFaultsProgram, ACheckFailsAtEveryFailingCall) {
    for (const std::string engine : {"cuda", "auto"}) {
        std::uint64_t call = 1;
        for (; call < kTooMany; call += kStep) {
            const int code = kCodes[(call + (engine == "auto" ? 2 : 0)) % std::size(kCodes)];
            SCOPED_TRACE(engine + ": call " + std::to_string(call) + " returns " +
                         std::to_string(code));
            Environment environment;
            environment.fail(call, code);
            const auto begun = Clock::now();
            const Finished finished =
                run({fake_gloved(), "--model", sample_model(), "--engine", engine, "--check"});
            EXPECT_LT(Clock::now() - begun, kPromptly);
            const std::string injected = injected_in(finished.err);
            if (injected.empty()) {
                EXPECT_EQ(finished.exit_code, 0) << finished.err;
                EXPECT_NE(finished.out.find("engine cuda"), std::string::npos) << finished.out;
                break;
            }
            if (injected == "cudaHostRegister" && !fake_cuda::is_sticky(code)) {
                EXPECT_EQ(finished.exit_code, 0) << finished.err;
                continue;
            }
            expect_orderly(finished);
            EXPECT_EQ(finished.out, "");
            if (injected != "cudaHostRegister" && !(call == 1 && code == 100)) {
                EXPECT_NE(own_words(finished.err).find(called(injected)), std::string::npos)
                    << finished.err;
            }
        }
        EXPECT_GT(call, 20U);
    }
}

TEST(CudaFaultsProgram, AStartThatFailsAnswersNobody) {
    std::uint64_t call = 1;
    for (; call < kTooMany; call += kStep) {
        const int code = kCodes[call % std::size(kCodes)];
        SCOPED_TRACE("call " + std::to_string(call) + " returns " + std::to_string(code));
        Environment environment;
        environment.fail(call, code);
        FakeDaemon daemon({"--engine", "cuda"});
        // The socket is there before the engine is: whoever lines up must not be served by what is
        // left.
        const auto begun = Clock::now();
        if (const auto early = daemon.connect()) {
            early->send("NEAR k=1 king\n");
            const auto line = early->read_line();
            const std::string injected = injected_in(daemon.process().output());
            const bool pin_refused = injected == "cudaHostRegister" && !fake_cuda::is_sticky(code);
            if (line && line->rfind("OK", 0) == 0) {
                // The query may be the first to get as far as the call; then the daemon has started
                // well.
                if (pin_refused || injected.empty()) {
                    daemon.expect_stops_well();
                    if (pin_refused) continue;
                    break;
                }
                ADD_FAILURE() << "answered after " << injected << " failed: " << *line;
            }
        }
        const Finished finished = daemon.process().wait(kPromptly);
        EXPECT_LT(Clock::now() - begun, 2 * kPromptly);
        expect_orderly(finished);
        EXPECT_NE(injected_in(finished.err), "");
    }
    EXPECT_GT(call, 20U);
}

/// Reads a connection to its end: whether any line was an answer, and how many were errors.
struct Rest {
    int answers = 0;
    int errors = 0;
    int answers_after_an_error = 0;
    std::vector<std::string> odd;
};

Rest read_rest(Connection& connection) {
    Rest rest;
    while (const auto line = connection.read_line()) {
        if (line->rfind("OK ", 0) == 0) {
            ++rest.answers;
            if (rest.errors > 0) ++rest.answers_after_an_error;
            for (int i = std::stoi(line->substr(3)); i > 0 && connection.read_line(); --i) {
            }
        } else if (line->rfind("ERR unavailable ", 0) == 0) {
            ++rest.errors;
        } else {
            rest.odd.push_back(*line);
        }
    }
    return rest;
}

class CudaFaultsOfAQuery : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(CudaFaultsOfAQuery, TheRequestGetsAnErrorAndTheDaemonEnds) {
    std::uint64_t call = 1;
    for (; call < kTooMany; ++call) {
        const int code = kCodes[call % std::size(kCodes)];
        SCOPED_TRACE("call " + std::to_string(call) + " returns " + std::to_string(code));
        const TempDir dir;
        Environment environment;
        environment.fail(call, code);
        environment.set("ARM", dir / "armed");
        FakeDaemon daemon({"--engine", "cuda"});
        const auto connection = daemon.connect_ready();
        const auto bystander = daemon.connect_ready();
        const std::string request = GetParam().second;
        EXPECT_EQ(connection->ask(request).status.rfind("OK ", 0), 0U);
        EXPECT_EQ(injected_in(daemon.process().output()), "");

        write_file(dir / "armed", "");
        const auto begun = Clock::now();
        const ReplyText reply = connection->ask(request);
        if (injected_in(daemon.process().output()).empty()) {
            EXPECT_EQ(reply.status.rfind("OK ", 0), 0U) << reply.status;
            daemon.expect_stops_well();
            break;
        }
        EXPECT_EQ(reply.status.rfind("ERR unavailable ", 0), 0U) << reply.status;
        // What comes too late gets an error or the end, never an answer. The GPU may be well again:
        // it is not asked.
        for (const std::string& late : {request + "\n", std::string("NEAR engine=cpu king\n")}) {
            connection->send(late);
            bystander->send(late);
        }
        for (Connection* const each : {connection.get(), bystander.get()}) {
            const Rest rest = read_rest(*each);
            EXPECT_EQ(rest.answers, 0);
            EXPECT_EQ(rest.odd, std::vector<std::string>{});
        }
        const Finished finished = daemon.process().wait(kPromptly);
        EXPECT_LT(Clock::now() - begun, kPromptly);
        expect_orderly(finished);
        EXPECT_NE(own_words(finished.err).find(called(injected_in(finished.err))),
                  std::string::npos)
            << finished.err;
    }
    EXPECT_GT(call, 4U);
    EXPECT_LT(call, kTooMany);
}

INSTANTIATE_TEST_SUITE_P(Daemon, CudaFaultsOfAQuery,
                         testing::Values(std::pair{"Near", "NEAR k=5 king"},
                                         std::pair{"LargeK", "NEAR k=5000 king"},
                                         std::pair{"Prefix", "NEAR prefix=qu king"}),
                         [](const auto& test) { return std::string(test.param.first); });

TEST(CudaFaultsProgram, EverybodyWhoWaitsGetsAnError) {
    constexpr int kConnections = 4;
    // More than are read at once: some lines are cut from what was read before the fault, and
    // handled after it.
    constexpr int kRequests = 4000;
    for (const std::uint64_t call : {1U, 3U, 4U, 7U, 20U, 50U}) {
        const int code = kCodes[call % std::size(kCodes)];
        SCOPED_TRACE("call " + std::to_string(call) + " returns " + std::to_string(code));
        const TempDir dir;
        Environment environment;
        environment.fail(call, code);
        environment.set("ARM", dir / "armed");
        FakeDaemon daemon({"--engine", "cuda", "--queue-length", "100000"});
        std::vector<std::unique_ptr<Connection>> connections;
        for (int i = 0; i < kConnections; ++i) connections.push_back(daemon.connect_ready());
        const auto by_cpu = daemon.connect_ready();
        write_file(dir / "armed", "");
        // Between the queries requests that need no engine, but wait for their turn in its queue.
        std::string requests;
        std::string requests_by_cpu;
        for (int i = 0; i < kRequests; ++i) {
            requests += i % 3 == 2 ? "SIM king queen\n" : "NEAR k=3 king\n";
            requests_by_cpu += "NEAR engine=cpu k=3 king\n";
        }
        const auto begun = Clock::now();
        for (const auto& connection : connections) connection->send(requests);
        by_cpu->send(requests_by_cpu);
        int errors = 0;
        for (const auto& connection : connections) {
            const Rest rest = read_rest(*connection);
            EXPECT_EQ(rest.answers_after_an_error, 0);
            EXPECT_EQ(rest.odd, std::vector<std::string>{});
            // What was read off the socket was answered one way or the other; the rest of the
            // stream ended with it.
            EXPECT_LE(rest.answers + rest.errors, kRequests);
            // Those of the first one lead to the fault. Others may be written only after it, on a
            // slow machine.
            EXPECT_TRUE(rest.errors > 0 || connection != connections.front());
            errors += rest.errors;
        }
        EXPECT_GT(errors, kConnections);
        // The cpu engine is well, but a daemon that is about to end takes no more part.
        const Rest rest = read_rest(*by_cpu);
        EXPECT_EQ(rest.answers_after_an_error, 0);
        EXPECT_EQ(rest.odd, std::vector<std::string>{});
        expect_orderly(daemon.process().wait(kPromptly));
        EXPECT_LT(Clock::now() - begun, kPromptly);
        EXPECT_NE(::access(daemon.socket_path().c_str(), F_OK), 0)
            << "the socket's path is removed";
    }
}

TEST(CudaFaultsProgram, ARefusedPinIsSaidAndServedAllTheSame) {
    Environment environment;
    environment.set("REFUSE_PIN", "1");
    environment.set("LAZY", "1");
    FakeDaemon daemon({"--engine", "cuda"});
    const auto connection = daemon.connect_ready();
    const ReplyText reply = connection->ask("NEAR k=3 king");
    EXPECT_EQ(reply.status.rfind("OK 3 engine=cuda", 0), 0U) << reply.status;
    EXPECT_NE(daemon.process().output().find("pinning is refused"), std::string::npos)
        << daemon.process().output();
    daemon.expect_stops_well();
}

TEST(CudaFaultsProgram, AnExitThatHangsIsEndedAndToldOf) {
    Environment environment;
    environment.set("HANG_AT_EXIT", "1");
    FakeDaemon daemon({"--engine", "cuda"});
    (void)daemon.connect_ready();
    daemon.process().signal(SIGTERM);
    const Finished finished = daemon.process().wait();
    expect_orderly(finished);
    const std::string last = "info: stopped\nengine did not stop in time; exiting\n";
    EXPECT_TRUE(finished.err.ends_with(last)) << finished.err;
}

TEST(CudaFaultsProgram, WithoutADeviceAutoTakesTheCpuAndSaysSo) {
    for (const std::string devices : {"0", "-1"}) {
        Environment environment;
        environment.set("DEVICES", devices);
        FakeDaemon daemon({"--engine", "auto"});
        const auto connection = daemon.connect_ready();
        const ReplyText reply = connection->ask("NEAR k=3 king");
        EXPECT_EQ(reply.status.rfind("OK 3 engine=cpu", 0), 0U) << reply.status;
        EXPECT_NE(daemon.process().output().find("engine cuda: "), std::string::npos)
            << daemon.process().output();
        daemon.expect_stops_well();

        const Finished forced =
            run({fake_gloved(), "--model", sample_model(), "--engine", "cuda", "--check"});
        expect_orderly(forced);
        EXPECT_NE(forced.err.find("NVIDIA"), std::string::npos) << forced.err;
    }
    Environment environment;
    environment.set("MEMORY", "1000000");
    const Finished finished =
        run({fake_gloved(), "--model", sample_model(), "--engine", "auto", "--check"});
    expect_orderly(finished);
    EXPECT_NE(finished.err.find("--engine cpu"), std::string::npos) << finished.err;
}

TEST(CudaFaultsProgram, AnswersAreTheSameByBothEngines) {
    for (const std::string spread : {"rows", "queries"}) {
        FakeDaemon daemon({"--engine", "auto", "--device", "0,0,0", "--spread", spread});
        const auto connection = daemon.connect_ready();
        for (const std::string request :
             {"NEAR k=20 %king - man + woman", "NEAR k=5000 %the", "NEAR prefix=qu k=50 %king",
              "NEAR min=0.5 k=3000 %of", "NEAR top=500 %france"}) {
            const auto with = [&](const std::string& engine) {
                std::string line = request;
                return connection->ask(line.replace(line.find('%'), 1, "engine=" + engine + " "));
            };
            const ReplyText cuda = with("cuda");
            const ReplyText cpu = with("cpu");
            EXPECT_NE(cuda.status.find("engine=cuda"), std::string::npos) << cuda.status;
            EXPECT_NE(cpu.status.find("engine=cpu"), std::string::npos) << cpu.status;
            EXPECT_FALSE(cuda.lines.empty());
            EXPECT_EQ(cuda.lines, cpu.lines) << request;
        }
        const auto stats = connection->ask("STATS").lines;
        for (const std::string& fact : {"gpu_spread\t" + spread, std::string("gpu_shards\t3")})
            EXPECT_EQ(std::ranges::count(stats, fact), 1) << fact;
        daemon.expect_stops_well();
    }
}

/// Batches go by the price of a query, which is that of scoring all rows where there are no codes.
TEST(CudaFaultsProgram, ThePriceOfAQueryIsLearntWithoutCodes) {
    FakeDaemon daemon({"--engine", "cuda", "--planes", "off"});
    const auto connection = daemon.connect_ready();
    std::set<std::string> prices;
    for (int i = 0; i < 20; ++i) {
        EXPECT_NE(connection->ask("NEAR certify=1 king").status.find("pass=float64"),
                  std::string::npos);
        for (const std::string& line : connection->ask("STATS").lines) {
            if (line.starts_with("single_query_us")) prices.insert(line);
        }
    }
    EXPECT_GT(prices.size(), 1U) << testing::PrintToString(prices);
    daemon.expect_stops_well();
}

}  // namespace
}  // namespace gloved::tests
