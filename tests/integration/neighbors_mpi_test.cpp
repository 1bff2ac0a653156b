// gloved-neighbors-mpi, run by mpirun as a user would: the bytes of gloved-neighbors, lost
// processes, and what it says of faults.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPartRows = 64;
constexpr std::size_t kRows = 40 * kPartRows + 10;
constexpr std::size_t kDim = 50;

/// A directory for the sockets of MPI, which have short paths.
class ShortDir {
  public:
    ShortDir() {
        char path[] = "/tmp/gmXXXXXX";
        if (::mkdtemp(path) == nullptr) ADD_FAILURE() << "cannot create " << path;
        path_ = path;
    }
    ShortDir(const ShortDir&) = delete;
    ShortDir& operator=(const ShortDir&) = delete;
    ~ShortDir() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// Runs jobs on a copy of a model of 41 parts, whose neighbors file gloved-neighbors has made.
class NeighborsMpi : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        shared_ = new TempDir;
        make_model(*shared_ / "m", random_entries(kRows, kDim, 1));
        const Finished whole = run({program("gloved-neighbors"), *shared_ / "m"});
        ASSERT_EQ(whole.exit_code, 0) << whole.err;
        wanted_ = new std::string(read_file(*shared_ / "m/neighbors"));
    }
    static void TearDownTestSuite() {
        delete wanted_;
        delete shared_;
    }

    NeighborsMpi() {
        fs::copy(*shared_ / "m", model_);
        fs::remove(model_ + "/neighbors");
    }

    /// `processes` of the program, with what mpirun needs as root and with more processes than
    /// cores: of Open MPI 4, and of 5 (PRTE).
    std::vector<std::string> mpirun(const std::vector<std::string>& settings = {}) const {
        std::vector<std::string> command = {
            "env",
            "TMPDIR=" + tmp_.path(),
            "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "PRTE_ALLOW_RUN_AS_ROOT=1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "OMPI_MCA_rmaps_base_oversubscribe=1",
            "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
            "OMPI_MCA_odls_base_sigkill_timeout=0",
        };
        command.insert(command.end(), settings.begin(), settings.end());
        command.push_back("mpirun");
        return command;
    }
    std::vector<std::string> job(int processes, const std::vector<std::string>& options = {},
                                 const std::vector<std::string>& settings = {}) const {
        auto command = mpirun(settings);
        command.insert(command.end(), {"-n", std::to_string(processes)});
        add_program(command, options, model_);
        return command;
    }
    /// gloved-neighbors, with parts of the same size.
    std::vector<std::string> alone(const std::vector<std::string>& options = {}) const {
        std::vector<std::string> command = {program("gloved-neighbors"), "--part-rows",
                                            std::to_string(kPartRows)};
        command.insert(command.end(), options.begin(), options.end());
        command.push_back(model_);
        return command;
    }
    static void add_program(std::vector<std::string>& command,
                            const std::vector<std::string>& options, const std::string& model) {
        command.insert(command.end(),
                       {program("gloved-neighbors-mpi"), "--part-rows", std::to_string(kPartRows)});
        command.insert(command.end(), options.begin(), options.end());
        command.push_back(model);
    }
    void expect_made(const Finished& finished) const {
        EXPECT_EQ(finished.exit_code, 0) << finished.err;
        EXPECT_TRUE(read_file(model_ + "/neighbors") == *wanted_);
        EXPECT_FALSE(fs::exists(parts_));
        EXPECT_FALSE(fs::exists(model_ + "/neighbors.new"));
    }
    void expect_fault(const std::vector<std::string>& command, const std::string& message) const {
        const Finished finished = run(command);
        EXPECT_NE(finished.exit_code, 0);
        EXPECT_NE(finished.err.find(message), std::string::npos) << message << "\n  is not in\n"
                                                                 << finished.err;
        EXPECT_FALSE(fs::exists(model_ + "/neighbors"));
    }

    static TempDir* shared_;
    static std::string* wanted_;
    const TempDir dir_;
    const ShortDir tmp_;
    const std::string model_ = dir_ / "m";
    const std::string parts_ = dir_ / "m.neighbors-parts";
};

TempDir* NeighborsMpi::shared_ = nullptr;
std::string* NeighborsMpi::wanted_ = nullptr;

/// The processes of gloved-neighbors-mpi on this model.
std::vector<pid_t> processes_of(const std::string& model) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        pid_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr !=
            name.data() + name.size())
            continue;
        std::ifstream file(entry.path() / "cmdline");
        std::string line;
        std::getline(file, line);  // nothing from a process that ends meanwhile
        if (line.starts_with(program("gloved-neighbors-mpi")) &&
            line.ends_with('\0' + model + '\0'))
            found.push_back(pid);
    }
    return found;
}

/// Finished parts in the directory.
std::size_t count_files(const std::string& directory) {
    std::error_code missing;
    const fs::directory_iterator files(directory, missing);
    if (missing) return 0;
    return static_cast<std::size_t>(std::ranges::count_if(files, [](const auto& entry) {
        return entry.path().filename().string().starts_with("neighbors-");
    }));
}

TEST_F(NeighborsMpi, AnyNumberOfProcessesGivesTheSameBytes) {
    for (const int processes : {1, 2, 4}) {
        const Finished finished = run(job(processes));
        expect_made(finished);
        EXPECT_NE(finished.err.find(fmt::format("; {} process", processes)), std::string::npos)
            << finished.err;
        EXPECT_NE(finished.err.find(": 10 neighbours of 2570 words, "), std::string::npos)
            << finished.err;
        fs::remove(model_ + "/neighbors");
    }
}

TEST_F(NeighborsMpi, OverTcpToo) {
    expect_made(
        run(job(3, {"--times"},
                {"OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_osc=^sm"})));
}

TEST_F(NeighborsMpi, WithoutMpirunIsAJobOfOneProcess) {
    std::vector<std::string> command;
    add_program(command, {}, model_);
    expect_made(run(command));
    EXPECT_EQ(run({program("gloved-neighbors-mpi"), "--help"}).exit_code, 0);
}

TEST_F(NeighborsMpi, KeepsAFileThatHasEnough) {
    fs::copy(*shared_ / "m/neighbors", model_ + "/neighbors");
    const auto made = fs::last_write_time(model_ + "/neighbors");
    const Finished again = run(job(2, {"--k", "5"}));
    expect_made(again);
    // MPI may complain about the network before.
    EXPECT_TRUE(
        again.err.ends_with(fmt::format("gloved-neighbors-mpi: {}/neighbors: 10 neighbours "
                                        "of 2570 words are there already\n",
                                        model_)))
        << again.err;
    EXPECT_EQ(fs::last_write_time(model_ + "/neighbors"), made);
}

TEST_F(NeighborsMpi, GoesOnFromPartsOfOthers) {
    for (const char* share : {"1/3", "2/3"}) ASSERT_EQ(run(alone({"--part", share})).exit_code, 0);
    const Finished finished = run(job(2));
    EXPECT_NE(finished.err.find("28 of 41 parts are there already"), std::string::npos)
        << finished.err;
    EXPECT_NE(finished.err.find("832 words in"), std::string::npos) << finished.err;
    expect_made(finished);
}

TEST_F(NeighborsMpi, ALostProcessCostsItsPartAlone) {
    std::mt19937_64 random(std::random_device{}());
    const char* const asked = std::getenv("GLOVED_KILL_ROUNDS");
    const int rounds = asked == nullptr ? 2 : std::atoi(asked);
    // What a job takes from the start of its processes, and from its first part, on a quiet
    // machine.
    constexpr std::chrono::milliseconds kLongest[] = {std::chrono::milliseconds(900),
                                                      std::chrono::milliseconds(300)};
    int killed = 0;
    std::size_t most_parts = 0;
    for (int round = 0; round < rounds; ++round) {
        Background started(job(3));
        std::vector<pid_t> processes;
        while (processes.size() < 3 && started.running()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            processes = processes_of(model_);
        }
        const bool from_first_part = round % 2 == 1;
        while (from_first_part && count_files(parts_) == 0 && started.running())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::microseconds(kLongest[from_first_part ? 1 : 0]) *
                                    static_cast<int>(random() % 1000) / 1000);
        processes = processes_of(model_);
        if (!processes.empty()) ::kill(processes[random() % processes.size()], SIGKILL);
        const Finished ended = started.wait();
        if (ended.exit_code != 0) ++killed;
        // mpirun does not wait for those that it has killed.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (!processes_of(model_).empty() && std::chrono::steady_clock::now() < deadline)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(processes_of(model_).empty());
        const std::size_t kept = count_files(parts_);
        most_parts = std::max(most_parts, kept);
        const Finished again = run(job(3));
        expect_made(again);
        fs::remove(model_ + "/neighbors");
        if (HasFailure()) break;
    }
    fmt::print("{} of {} jobs lost a process, with up to {} parts\n", killed, rounds, most_parts);
}

TEST_F(NeighborsMpi, ASignalKeepsFinishedParts) {
    // Many small parts, so that the job still computes when two are there.
    const std::vector<std::string> small = {"--part-rows", "16", model_};
    // Open MPI's default: time to say so, when another process has ended the job.
    auto command = mpirun({"OMPI_MCA_odls_base_sigkill_timeout=1"});
    command.insert(command.end(), {"-n", "2", program("gloved-neighbors-mpi")});
    command.insert(command.end(), small.begin(), small.end());
    Background stopped(command);
    while (count_files(parts_) < 2 && stopped.running())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (const pid_t pid : processes_of(model_)) ::kill(pid, SIGTERM);
    const Finished finished = stopped.wait();
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_NE(finished.err.find("interrupted; finished parts are kept"), std::string::npos)
        << finished.err;
    EXPECT_GE(count_files(parts_), 2U);
    expect_made(run({program("gloved-neighbors"), small[0], small[1], small[2]}));
}

TEST_F(NeighborsMpi, ThatMayNotWriteToTheDirectoryNamesTheProcessAndTheFile) {
    fs::create_directory(parts_);
    fs::permissions(parts_, fs::perms(0555));
    auto command = job(2);
    if (::geteuid() == 0) {
        // Root may write what it likes, so without its capability.
        command.insert(command.begin(), {"setpriv", "--bounding-set", "-dac_override", "--inh-caps",
                                         "-dac_override"});
    }
    const Finished finished = run(command);
    fs::permissions(parts_, fs::perms(0755));
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("gloved-neighbors-mpi: rank "), std::string::npos) << finished.err;
    EXPECT_NE(
        finished.err.find(fmt::format(": {}/.lock: cannot open: Permission denied\n", parts_)),
        std::string::npos)
        << finished.err;
    expect_made(run(alone()));
}

TEST_F(NeighborsMpi, SaysWhatIsWrong) {
    expect_fault(job(2, {"--k", "0"}), "--k takes a whole number from 1 to 1024");
    auto command = mpirun();
    command.insert(command.end(), {"-n", "2"});
    add_program(command, {}, dir_ / "no such model");
    expect_fault(command,
                 dir_ / "no such model: cannot open the directory: No such file or directory");
    EXPECT_EQ(count_files(parts_), 0U);
}

TEST_F(NeighborsMpi, EveryHostNeedsTheSameModelAndTheSameParts) {
    const auto other = make_model(dir_ / "other", random_entries(kRows, kDim, 2));
    const auto ours = format::Model::open(model_);
    ASSERT_TRUE(ours);
    // As two hosts would have it: the second process with arguments of its own.
    const auto job_with_second = [&](const std::string& arguments) {
        const std::string start =
            fmt::format("exec {} --part-rows {} ", program("gloved-neighbors-mpi"), kPartRows);
        auto command = mpirun();
        command.insert(command.end(), {"-n", "2", "sh", "-c",
                                       fmt::format("if [ $OMPI_COMM_WORLD_RANK = 0 ]; then {} {}; "
                                                   "else {} {}; fi",
                                                   start, model_, start, arguments)});
        return command;
    };
    expect_fault(
        job_with_second(dir_ / "other"),
        fmt::format(": {}: has generation {} here and {} where rank 0 runs", dir_ / "other",
                    format::hex(other.generation()), format::hex(ours->generation())));
    expect_fault(job_with_second(fmt::format("--parts {} {}", dir_ / "elsewhere", model_)),
                 dir_ /
                     "elsewhere: cannot open the directory: No such file or directory; all hosts "
                     "must share the directory of the parts");
    EXPECT_FALSE(fs::exists(dir_ / "elsewhere"));
    expect_fault(job_with_second("--k 12 " + model_), "--k 12 differs from --k 10 of rank 0");
    expect_made(run(alone()));
}

}  // namespace
}  // namespace gloved::tests
