// A file that takes its name when it is whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/result.hpp"
#include "common/terminal.hpp"

namespace gloved {

/// Written beside its place as .NAME.gloved-PID-N, made durable and renamed, so that a file of that
/// name is replaced whole or not at all; or stdout. Either written from its beginning to its end,
/// or mapped. Not safe for concurrent use.
class OutputFile {
  public:
    /// «-» is stdout. `stop` is looked at before every write, and outlives the file. Refuses
    /// (conflict) a name under which there is anything but a regular file that this user may write,
    /// and one in a model's directory, where any file but its own would be in the way. A new file
    /// has the mode that the umask gives it; one that replaces another takes its mode, group, owner
    /// and access control lists (keep_access). Errors: conflict, io.
    static Result<OutputFile> create(const std::string& target, const std::atomic<bool>& stop);

    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    /// Removes the file, unless it was published.
    ~OutputFile();

    bool is_stdout() const { return !fd_; }

    /// A terminal gets the text as TerminalText. Errors: io, interrupted.
    Status write(std::string_view text);

    /// Makes the file `bytes` long, with room for all of it on its disk, and maps it: what is put
    /// there is what the file holds. Once, and not for stdout. Error: io; where the disk has no
    /// room, with how much it would take.
    Result<std::span<std::byte>> map(std::uint64_t bytes);
    /// The pages that hold those bytes need not stay in this process's memory. What they hold is
    /// kept.
    void let_go(std::uint64_t offset, std::uint64_t bytes);

    /// Bytes written or mapped.
    std::uint64_t bytes() const { return bytes_; }

    /// Makes the content durable.
    Status sync();

    /// Gives the file its name, durably.
    Status publish();

  private:
    OutputFile(std::string target, const std::atomic<bool>& stop);
    /// Refuses what must not be replaced. Nothing is there: no descriptor; else what is there,
    /// open.
    Result<UniqueFd> check_target() const;
    /// The same, and takes the access of what is there.
    Status keep_access_of_target() const;

    std::string target_;
    const std::atomic<bool>* stop_;
    std::string parent_path_;
    std::string name_;
    std::string staged_;
    UniqueFd parent_;
    UniqueFd fd_;
    bool to_terminal_ = false;
    TerminalText terminal_text_;
    std::uint64_t bytes_ = 0;
    std::span<std::byte> mapped_;
};

}  // namespace gloved
