// Spool: temporary storage for the rows that a conversion has read and not yet written to the
// model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::convert {

/// Stores numbered blocks of bytes: in memory up to a limit, then in a file. The file is unlinked
/// right after it is created, so that its space is free again however the program ends.
class Spool {
  public:
    /// A block that the caller fills: writes `size` bytes to `bytes`.
    struct Draft {
        std::byte* bytes = nullptr;
        std::size_t size = 0;

      private:
        friend Spool;
        std::uint32_t number = 0;
        std::vector<std::byte> buffer;  // holds a block for the file; empty for one in memory
    };

    /// The file will be `name` in `directory_fd`; both must outlive the Spool. Messages call the
    /// directory `path`. Keeps blocks of at most `resident_bytes` together in memory. If the system
    /// refuses that much address space, all blocks go to the file.
    Spool(int directory_fd, const char* name, const std::string& path,
          std::uint64_t resident_bytes);
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;
    ~Spool();

    /// Creates the file. Call it before the first `begin`. Error: io.
    Status open();

    /// Reserves a block of `size` bytes. Call `finish` when it is filled. Any thread.
    Draft begin(std::size_t size);
    /// Stores the filled block and returns its number. Any thread. Errors: io.
    Result<std::uint32_t> finish(Draft draft);

    /// Fills `to` with the bytes of a finished block from `offset` on; the block must have as many.
    /// Any thread. Error: io.
    Status read(std::uint32_t block, std::size_t offset, std::span<std::byte> to) const;

    /// Overwrites bytes of a finished block from `offset` on. Any thread, as long as no other
    /// touches these bytes. Errors: io.
    Status overwrite(std::uint32_t block, std::size_t offset, std::span<const std::byte> with);

    /// Drops all blocks and frees the memory and the file. The Spool cannot be used afterwards.
    void clear();

    /// How many bytes of further blocks fit in memory. Not while another thread calls `begin`.
    std::uint64_t resident_left() const { return resident_bytes_ - resident_used_; }
    /// Bytes in the file.
    std::uint64_t file_bytes() const { return file_bytes_; }

  private:
    struct Place {
        std::byte* memory = nullptr;  // null: in the file
        std::uint64_t offset = 0;
    };

    Place place_of(std::uint32_t block) const;

    int directory_fd_;
    const char* name_;
    std::string path_;
    std::byte* resident_ = nullptr;
    std::size_t resident_bytes_ = 0;
    std::size_t resident_used_ = 0;
    mutable std::mutex mutex_;
    UniqueFd file_;
    std::uint64_t file_bytes_ = 0;
    std::deque<Place> places_;
    std::vector<std::vector<std::byte>> buffers_;  // for reuse
};

}  // namespace gloved::convert
