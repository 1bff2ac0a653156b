// Temporary storage for rows that a conversion has read and not yet written to the model.
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

/// Stores blocks of bytes: in memory up to a limit, then in a file. The file's name is removed at
/// once, so its space is free again however the program ends.
class Spool {
  public:
    /// A block that is being filled.
    struct Draft {
        std::byte* bytes = nullptr;
        std::size_t size = 0;

      private:
        friend Spool;
        std::uint32_t number = 0;
        std::vector<std::byte> buffer;  // written to the file by `finish`; empty: the block is
                                        // resident
    };

    /// The file is `name` in `directory_fd`, which outlives the Spool; messages call the directory
    /// `path`. Keeps at most `resident_bytes` of blocks in memory; none if the system refuses that
    /// much address space.
    Spool(int directory_fd, const char* name, const std::string& path,
          std::uint64_t resident_bytes);
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;
    ~Spool();

    /// Creates the file. Call it before the first block. Errors: io.
    Status open();

    /// Reserves a block of `size` bytes, to be filled. Any thread.
    Draft begin(std::size_t size);
    /// Stores the filled block and returns its number. Any thread. Errors: io.
    Result<std::uint32_t> finish(Draft draft);

    /// Copies bytes of a block from `offset` on. The block must have that many. Any thread. Errors:
    /// io.
    Status read(std::uint32_t block, std::size_t offset, std::span<std::byte> to) const;

    /// Overwrites bytes of a finished block from `offset` on. Any thread, as long as no other
    /// touches these bytes. Errors: io.
    Status overwrite(std::uint32_t block, std::size_t offset, std::span<const std::byte> with);

    /// Drops all blocks and frees memory and file.
    void clear();

    /// Bytes of further blocks that still fit in memory.
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
