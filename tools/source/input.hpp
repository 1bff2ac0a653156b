// Input: reads the bytes of a download from a file or stdin, and unpacks gzip and members (files)
// of zip archives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/format/layout.hpp"
#include "common/input_file.hpp"
#include "common/result.hpp"
#include "tools/source/zip_member.hpp"

namespace gloved::source {

/// Default of Input::open's `block_bytes`.
inline constexpr std::size_t kBlockBytes = 1 << 18;

/// Reads a source once, from beginning to end. Detects by the content, never by the name, how it is
/// packed. Not safe for concurrent use.
class Input {
  public:
    /// Opens the file `path`, or stdin for «-», as InputFile does with NoWriter::wait, and reads
    /// its first bytes. `stop` must outlive the Input. `member` names the member of a zip archive
    /// to read, and is ignored for other content; see ZipMember::open for an empty name.
    /// `block_bytes` is the size of the first read, and of every read of gzip: 4 or more. Errors:
    /// io; interrupted, once `stop` is true; bad_source, for a zip archive that cannot be read, or
    /// that comes from a pipe, since its directory is at its end.
    static Result<Input> open(const std::string& path, const std::atomic<bool>& stop,
                              const std::string& member = {},
                              std::size_t block_bytes = kBlockBytes);

    Input(Input&&) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    /// Checks that the source is a zip archive if `member`, which the user has named, is not empty.
    /// Error: bad_source.
    Status check_member(const std::string& member) const;

    /// Fills `buffer` with unpacked bytes and returns their number. Fewer than the buffer's size
    /// mean the end. Errors: io; interrupted; bad_source, for gzip or zip data that is damaged or
    /// ends too early, whose message has the byte offset.
    Result<std::size_t> read(std::span<char> buffer);

    /// «-» or the path as given.
    const std::string& name() const { return file_.name(); }
    /// «gzip», «zip» or «none».
    std::string_view compression() const {
        return zip_ ? "zip" : inflater_ == nullptr ? "none" : "gzip";
    }
    /// Name of the zip archive's member; empty for other sources.
    const std::string& member() const { return member_; }
    /// Number of bytes read so far, packed as on disk. For a zip archive only those of the member,
    /// an estimate until its end (ZipMember::packed_position).
    std::uint64_t source_bytes() const { return zip_ ? zip_->packed_position() : source_bytes_; }
    /// source_bytes() at the end, or 0 if unknown.
    std::uint64_t total_bytes() const { return zip_ ? zip_->packed_bytes() : file_.size_bytes(); }
    /// XXH3-64 of the bytes read so far, packed as on disk; nullopt for a zip archive, whose member
    /// has a CRC-32.
    std::optional<std::uint64_t> checksum() const;
    /// CRC-32 of a zip archive's member, unpacked; nullopt for other sources. Reading the member to
    /// its end verifies it.
    std::optional<std::uint32_t> crc32() const;

  private:
    struct Inflater;

    Input(InputFile file, const std::atomic<bool>& stop, std::size_t block_bytes);
    Result<std::size_t> read_source(std::span<char> buffer);
    Result<std::size_t> read_plain(std::span<char> buffer);
    Result<std::size_t> inflate(std::span<char> buffer);
    Result<std::size_t> unzip(std::span<char> buffer);
    Status refill_block();

    InputFile file_;
    std::string member_;
    const std::atomic<bool>* stop_;
    std::uint64_t source_bytes_ = 0;
    format::Checksum checksum_;
    std::size_t block_bytes_;
    std::string block_;  // read from the source, not yet returned
    std::size_t block_used_ = 0;
    std::unique_ptr<Inflater> inflater_;
    std::optional<ZipMember> zip_;
};

}  // namespace gloved::source
