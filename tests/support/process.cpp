#include "tests/support/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

pid_t start(const std::vector<std::string>& arguments, int in, int out, int err) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("fork failed");
    if (pid == 0) {
        // A test that crashes runs no destructors: what it started must not outlive it.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(in, 0);
        ::dup2(out, 1);
        ::dup2(err, 2);
        ::execvp(argv[0], argv.data());
        _exit(127);
    }
    return pid;
}

Finished describe(int status) {
    Finished finished;
    if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
    return finished;
}

/// Waits up to `timeout`; false when it still runs then.
bool wait_for(pid_t pid, int& status, std::chrono::milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace

std::string program(const std::string& name) { return GLOVED_BIN_DIR "/" + name; }

Finished run(const std::vector<std::string>& arguments, const std::string& input,
             std::chrono::seconds timeout) {
    const TempDir dir;
    write_file(dir / "in", input);
    const int in = ::open((dir / "in").c_str(), O_RDONLY | O_CLOEXEC);
    const int out = ::open((dir / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int err = ::open((dir / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const pid_t pid = start(arguments, in, out, err);
    for (const int fd : {in, out, err}) ::close(fd);
    int status = 0;
    if (!wait_for(pid, status, timeout)) {
        ADD_FAILURE() << arguments[0] << " did not end within " << timeout.count() << " s";
        ::kill(pid, SIGKILL);
        ::waitpid(pid, &status, 0);
    }
    Finished finished = describe(status);
    finished.out = read_file(dir / "out");
    finished.err = read_file(dir / "err");
    return finished;
}

Background::Background(const std::vector<std::string>& arguments) {
    log_path_ = "/tmp/gloved-test-log-XXXXXX";
    const int log = ::mkostemp(log_path_.data(), O_CLOEXEC);
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_ = start(arguments, null, log, log);
    ::close(log);
    ::close(null);
}

Background::~Background() {
    if (!ended_) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status_, 0);
    }
    ::unlink(log_path_.c_str());
}

void Background::signal(int number) const {
    // Once it has ended, the number may be another's.
    if (!ended_) ::kill(pid_, number);
}

bool Background::running() {
    if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return !ended_;
}

Finished Background::wait(std::chrono::milliseconds timeout) {
    if (!ended_ && !wait_for(pid_, status_, timeout)) {
        ADD_FAILURE() << "process " << pid_ << " did not end within " << timeout.count()
                      << " ms; it printed:\n"
                      << output();
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status_, 0);
    }
    ended_ = true;
    Finished finished = describe(status_);
    finished.err = output();
    return finished;
}

std::string Background::output() const { return read_file(log_path_); }

}  // namespace gloved::tests
