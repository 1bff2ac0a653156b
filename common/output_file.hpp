// An output file that gets its name only when it is whole.
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

/// A note on a text whose name promises another form: .csv without commas, .tsv without TABs.
/// `separator`, a TAB or a blank, stands between its values. Empty if the name promises nothing
/// else.
std::string describe_wrong_name(const std::string& path, char separator);

/// The output of a program: a file or stdout. A file is written as .NAME.gloved-PID-N beside its
/// target, and `publish` renames it: an older file is replaced completely or not at all. Either
/// `write` it from beginning to end, or `map` it. Not safe for concurrent use.
class OutputFile {
  public:
    /// Creates the file; «-» is stdout. Once `stop`, which outlives the OutputFile, is true,
    /// `write` fails with `interrupted`. Refuses (conflict) a target that exists, unless it is a
    /// regular file that this user may write, and any target in a model's directory. A new file has
    /// the mode that the umask gives; one that replaces another copies its access (keep_access).
    /// Errors: conflict, io.
    static Result<OutputFile> create(const std::string& target, const std::atomic<bool>& stop);

    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    /// Removes the unfinished file, unless it was published.
    ~OutputFile();

    /// Appends `text`, escaped by TerminalText if stdout is a terminal. Errors: io, interrupted.
    Status write(std::string_view text);

    /// Allocates `bytes` on disk as the file's content and maps them for writing. Call it at most
    /// once, and not for stdout. Error: io; if the disk is full, with the size needed.
    Result<std::span<std::byte>> map(std::uint64_t bytes);
    /// Lets the kernel drop the mapping's pages in [offset, offset + bytes) from memory. The file
    /// keeps their content.
    void drop_pages(std::uint64_t offset, std::uint64_t bytes);

    /// Bytes written or mapped.
    std::uint64_t bytes() const { return bytes_; }

    /// Makes the content durable (fsync). Error: io.
    Status sync();

    /// Gives the file the target's name, durably. Errors: conflict, io.
    Status publish();

  private:
    OutputFile(std::string target, const std::atomic<bool>& stop);
    /// Refuses what must not be replaced. Returns the existing file, open, or no descriptor.
    Result<UniqueFd> check_target() const;
    /// Calls check_target and copies the access of the existing file.
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
