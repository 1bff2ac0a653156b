// A gloved of this build on a socket in a temporary directory, and connections to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {

/// Whether this is a build with sanitizers, whose memory is many times what is measured.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Replaces the number of every `us` by N, since it differs from run to run: «us=N», «"us":N».
std::string without_us(const std::string& text);

/// A reply: the status line and what follows, without line ends; after FORMAT json the object
/// alone.
struct ReplyText {
    std::string status;
    std::vector<std::string> lines;
    /// The whole reply as text, without_us.
    std::string normalised() const;
};

/// The value of a key in a text reply's status line; empty if it has none.
std::string field(const ReplyText& reply, std::string_view key);

/// A blocking connection whose every wait ends after `timeout`.
class Connection {
  public:
    /// Throws std::runtime_error when nobody answers there.
    explicit Connection(const std::string& socket_path,
                        std::chrono::seconds timeout = std::chrono::seconds(20));
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    /// Sends all bytes; false when the peer closed.
    bool send(std::string_view bytes);
    /// The next line without its LF; nothing at the end of the stream (or after `timeout`).
    std::optional<std::string> read_line();
    /// A whole reply; fails the running test when the stream ends early.
    ReplyText read_reply();
    /// Sends one request line and reads its reply.
    ReplyText ask(const std::string& line);
    /// Ends our side of the stream.
    void finish_sending();
    /// Whether the peer has closed (waits up to the timeout for it).
    bool closed_by_peer();
    /// Reads what is left: «the end» when the stream ends as it should, otherwise the error.
    std::string read_to_end();

  private:
    int fd_ = -1;
    std::string buffer_;
    std::size_t begin_ = 0;
};

/// Starts on construction, is ready when it returns, and is stopped with SIGTERM at the end (which
/// must exit 0).
class Daemon {
  public:
    explicit Daemon(const std::string& model, std::vector<std::string> options = {});
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    ~Daemon();

    const std::string& socket_path() const { return socket_path_; }
    Background& process() { return *process_; }
    /// SIGTERM, and what it left.
    Finished stop();

  private:
    TempDir dir_;
    std::string socket_path_;
    std::unique_ptr<Background> process_;
    bool stopped_ = false;
};

/// The data sample, converted once for the whole program.
const std::string& sample_model();

}  // namespace gloved::tests
