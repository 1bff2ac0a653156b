// Programs of the project, run as a user would.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace gloved::tests {

/// What a finished program left.
struct Finished {
    int exit_code = -1;  ///< −1 when a signal ended it
    int signal = 0;
    std::string out;
    std::string err;
};

/// Path of a program of this build: «gloved-convert».
std::string program(const std::string& name);

/// Runs a program to its end with `input` on stdin. Kills it, and fails the running test, after
/// `timeout`.
Finished run(const std::vector<std::string>& arguments, const std::string& input = {},
             std::chrono::seconds timeout = std::chrono::seconds(60));

/// A program in the background: stdout and stderr go to a file. Killed at the end if it still runs.
class Background {
  public:
    explicit Background(const std::vector<std::string>& arguments);
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    ~Background();

    pid_t pid() const { return pid_; }
    void signal(int number) const;
    /// Waits for its end. Fails the running test, and kills it, after `timeout`.
    Finished wait(std::chrono::milliseconds timeout = std::chrono::seconds(30));
    bool running();
    /// What it has printed so far, stdout and stderr together.
    std::string output() const;

  private:
    pid_t pid_ = -1;
    std::string log_path_;
    int status_ = 0;
    bool ended_ = false;
};

}  // namespace gloved::tests
