// A daemon that says what a test tells it to.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/files.hpp"

namespace gloved::tests {

/// What the fake does with one request line.
struct Action {
    std::string send;         ///< as it stands; empty: silence
    bool then_close = false;  ///< hang up after it
};

/// Listens on a Unix socket and serves one connection after the other on a thread of its own, until
/// the end of its life.
class FakeDaemon {
  public:
    using Script = std::function<Action(const std::string& line)>;

    FakeDaemon(const std::string& path, Script script);
    FakeDaemon(const FakeDaemon&) = delete;
    FakeDaemon& operator=(const FakeDaemon&) = delete;
    ~FakeDaemon();

    /// Every line that has arrived.
    std::vector<std::string> lines() const;

  private:
    void serve();
    bool readable(int fd) const;
    void converse(int fd);

    Script script_;
    UniqueFd listener_;
    UniqueFd stop_read_;
    UniqueFd stop_write_;
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
    std::thread thread_;
};

/// A socket that listens at `path` with room for `backlog` connections that nobody has accepted.
UniqueFd listen_at(const std::string& path, int backlog);
/// The next connection to `listener`; none if nobody comes for ten seconds.
UniqueFd accept_from(const UniqueFd& listener);

}  // namespace gloved::tests
