// Input: reads the text of a download from a file or stdin, through the layers that pack it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tools/source/archive_reader.hpp"
#include "tools/source/byte_reader.hpp"

namespace gloved::source {

/// Default of Input::open's `block_bytes`.
inline constexpr std::size_t kBlockBytes = 1 << 18;

/// Reads a source once, from beginning to end. Detects by the content, never by the name, how it is
/// packed: by gzip, bzip2, xz or zstd, as a tar archive, plain or in one of these, or as a zip
/// archive. Not safe for concurrent use.
class Input {
  public:
    /// Opens the file `path`, or stdin for «-», as InputFile does with NoWriter::wait, and reads
    /// its first bytes. `stop` must outlive the Input. `member` names the member of an archive to
    /// read, and is ignored for other content; see ArchiveReader::open for an empty name.
    /// `block_bytes` is the size of every read of packed data. Errors: io; interrupted, once `stop`
    /// is true; bad_source, for packed data that is damaged, and those of ArchiveReader::open.
    static Result<Input> open(const std::string& path, const std::atomic<bool>& stop,
                              const std::string& member = {},
                              std::size_t block_bytes = kBlockBytes);

    /// Checks that the source is an archive if `member`, which the user has named, is not empty.
    /// Error: bad_source.
    Status check_member(const std::string& member) const;

    /// Fills `buffer` with unpacked bytes and returns their number. Fewer than the buffer's size
    /// mean the end. Errors: those of ByteReader::read; bad_source, for an archive on a pipe or in
    /// compressed data that holds several files, if `open` got no member.
    Result<std::size_t> read(std::span<char> buffer) { return text_->read(buffer); }
    /// The next unpacked bytes, which stay to be read. Fewer than `bytes` mean the end. Errors: as
    /// `read`.
    Result<std::string_view> peek(std::size_t bytes) { return text_->peek(bytes); }
    /// Puts the last bytes that were read back, to be read again.
    void unread(std::span<const char> bytes) { text_->unread(bytes); }
    /// Passes over unpacked bytes and returns their number. Fewer than `bytes` mean the end.
    /// Errors: as `read`.
    Result<std::uint64_t> skip(std::uint64_t bytes) { return text_->skip(bytes); }

    /// «-» or the path as given.
    const std::string& name() const { return file_->name(); }
    /// The file, to be read anywhere beside read(), if it is a regular one that a name was given of
    /// and is not packed; otherwise -1.
    int plain_fd() const;
    /// What ends the reading.
    const std::atomic<bool>& stop() const { return file_->stop(); }
    /// «none», «gzip», «bzip2», «xz», «zstd», «zip», «tar», «tar.gz», «tar.bz2», «tar.xz» or
    /// «tar.zst».
    const std::string& compression() const { return compression_; }
    /// Name of the archive's member; empty for other sources.
    std::string_view member() const { return archive_ ? archive_->member() : std::string_view(); }
    /// Number of bytes read so far, packed as on disk. Those of a zip archive in a file count as
    /// read if they were passed over.
    std::uint64_t source_bytes() const { return file_->position(); }
    /// source_bytes() at the end, or 0 if unknown.
    std::uint64_t total_bytes() const { return file_->size_bytes(); }
    /// Size of the text; 0 if unknown, as it is of compressed data.
    std::uint64_t text_bytes() const;
    /// XXH3-64 of the bytes read so far, packed as on disk; nullopt for a zip archive in a file, of
    /// which only one member is read.
    std::optional<std::uint64_t> checksum() const { return file_->checksum(); }
    /// CRC-32 of a zip archive's member, unpacked; nullopt for other sources. Reading the member to
    /// its end verifies it.
    std::optional<std::uint32_t> crc32() const;

  private:
    Input() = default;

    // Each layer reads the one before it.
    std::unique_ptr<FileReader> file_;
    std::unique_ptr<ByteReader> unpacked_;    // of compressed data
    std::unique_ptr<ArchiveReader> archive_;  // of an archive
    ByteReader* text_ = nullptr;              // the last layer
    std::string compression_ = "none";
};

}  // namespace gloved::source
