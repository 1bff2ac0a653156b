// InputFile: reads a file, pipe, FIFO or device that a user names, from its beginning to its end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved {

/// What happens if a FIFO that nobody has opened for writing has no writer within kMaxWriterWait.
enum class NoWriter {
    refuse,  ///< `read` fails: for a daemon, which nobody watches
    wait,    ///< says on stderr that it waits, and waits
};

/// Reads a file once. Opening never blocks, so that a FIFO without a writer holds nobody up in
/// silence. (A file on a network mount that does not answer does: no call can prevent that.)
class InputFile {
  public:
    static constexpr std::chrono::milliseconds kMaxWriterWait{1000};

    /// Opens the file `path`, or stdin for «-». `stop`, if not nullptr, must outlive the InputFile;
    /// `read` tests it before each wait, and five times a second while a pipe is silent. Error: io,
    /// also for a directory.
    static Result<InputFile> open(const std::string& path, NoWriter no_writer,
                                  const std::atomic<bool>* stop = nullptr);

    /// Waits for bytes, and reads up to `buffer.size()` of them. Returns their number; 0 is the
    /// end. Errors: io, also for a FIFO without a writer (NoWriter); interrupted, once `*stop` is
    /// true.
    Result<std::size_t> read(std::span<char> buffer);
    /// Reads all that is left. Errors: those of `read`; io, for more than `max_bytes`.
    Result<std::string> read_all(std::size_t max_bytes);
    /// Checks that a regular file has the size and time that it had when it was opened. Error: io.
    Status check_unchanged() const;

    /// «-» or the path as given.
    const std::string& name() const { return name_; }
    int fd() const { return fd_; }
    /// Whether it is a regular file, which can be read again.
    bool is_regular() const { return S_ISREG(status_.st_mode); }
    /// The size of a regular file when it was opened; of any other 0.
    std::uint64_t size_bytes() const;

  private:
    explicit InputFile(std::string name) : name_(std::move(name)) {}
    Status report_no_writer();

    std::string name_;
    UniqueFd owned_;
    int fd_ = -1;
    struct stat status_ {};
    const std::atomic<bool>* stop_ = nullptr;
    NoWriter no_writer_ = NoWriter::refuse;
    bool awaits_writer_ = false;  // a FIFO, of which no writer was seen yet
    bool has_told_ = false;
    std::optional<std::chrono::steady_clock::time_point> waiting_since_;
};

}  // namespace gloved
