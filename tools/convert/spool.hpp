// What a conversion has read and not yet put in its place.
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

/// Blocks of bytes: in memory up to a bound, in a file beyond it. The file has no name from its
/// first moment on: whatever ends the program, its room is free again.
class Spool {
  public:
    /// A block to be filled, once.
    struct Draft {
        std::byte* bytes = nullptr;
        std::size_t size = 0;

      private:
        friend Spool;
        std::uint32_t number = 0;
        std::vector<std::byte> buffer;  // on its way to the file; empty: `bytes` is where the block
                                        // stays
    };

    /// The file is `name` in `directory_fd`, which outlives the Spool; `path` is what messages call
    /// the directory. Holds at most `resident_bytes` of blocks in memory, and none where the system
    /// does not give it.
    Spool(int directory_fd, const char* name, const std::string& path,
          std::uint64_t resident_bytes);
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;
    ~Spool();

    /// Makes the file. Before the first block. Errors: io.
    Status open();

    /// Any thread.
    Draft begin(std::size_t size);
    /// Takes the block in and returns its number. Any thread. Errors: io.
    Result<std::uint32_t> finish(Draft draft);

    /// Copies bytes of a block from `offset` on; the caller knows that there are so many. Any
    /// thread. Errors: io.
    Status read(std::uint32_t block, std::size_t offset, std::span<std::byte> to) const;

    /// Overwrites bytes of a finished block from `offset` on. Any thread, as long as no other
    /// touches these bytes. Errors: io.
    Status overwrite(std::uint32_t block, std::size_t offset, std::span<const std::byte> with);

    /// Forgets all blocks and gives memory and file back.
    void clear();

    /// Bytes that further blocks find room for in memory.
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
    std::vector<std::vector<std::byte>> buffers_;  // to be used again
};

}  // namespace gloved::convert
