// gloved when a GPU fails: it reports an error that names the call, answers nothing, and ends in
// time for its supervisor to restart it. The GPU is fake and fails at the call that a test names.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
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
using namespace std::chrono_literals;

/// Out of memory, no device, illegal address, launch failure, unknown. From 700 on they are sticky.
constexpr int kCodes[] = {2, 100, 700, 719, 999};
/// More calls than any start or query makes, so that a loop over calls ends.
constexpr std::uint64_t kTooMany = 2000;

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

  private:
    std::vector<std::string> names_;
};

std::string fake_gloved() { return program("../tests/gloved-fake-cuda"); }

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
                                              dir_ / "gloved.sock"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        process_ = std::make_unique<Background>(arguments);
    }

    Background& process() { return *process_; }

    /// Connects as soon as the daemon listens, and waits for a first answer.
    std::unique_ptr<Connection> connect() {
        for (int i = 0; i < 30'000 && process_->running(); ++i) {
            try {
                auto connection = std::make_unique<Connection>(dir_ / "gloved.sock");
                if (connection->ask("PING").status == "OK 0") return connection;
            } catch (const std::runtime_error&) {
                std::this_thread::sleep_for(1ms);
            }
        }
        throw std::runtime_error("gloved-fake-cuda did not start:\n" + process_->output());
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

TEST(CudaFaultsProgram, ACheckThatFailsNamesTheCall) {
    Environment environment;
    environment.set("FAIL", "20:719");
    const Finished finished =
        run({fake_gloved(), "--model", sample_model(), "--engine", "auto", "--check"});
    expect_orderly(finished);
    EXPECT_EQ(finished.out, "");
    const std::string& told = finished.err;
    const std::size_t begin = told.find("fake cuda: call 20 (") + 20;
    const std::string failed = called(told.substr(begin, told.find(')', begin) - begin));
    EXPECT_NE(told.find(failed, told.find('\n', begin)), std::string::npos) << told;
}

TEST(CudaFaultsProgram, ARefusedPinIsSaidAndServedAllTheSame) {
    Environment environment;
    environment.set("REFUSE_PIN", "1");
    environment.set("LAZY", "1");
    FakeDaemon daemon({"--engine", "cuda"});
    const auto connection = daemon.connect();
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
    (void)daemon.connect();
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
        const auto connection = daemon.connect();
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
        const auto connection = daemon.connect();
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
    const auto connection = daemon.connect();
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
