// The bytes of a download: from a file or stdin, inflated where they are gzip or a member of a zip
// archive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"
#include "tools/source/zip_member.hpp"

namespace gloved::source {

inline constexpr std::size_t kBlockBytes = 1 << 18;

/// Reads a source from its beginning to its end, once. What it is packed in is told by its content,
/// never by its name. Not safe for concurrent use.
class Input {
  public:
    /// Opens the file `path`, or stdin for «-», and looks at its first bytes. `stop` is looked at
    /// before every read, and at least five times a second while a pipe is silent; it outlives the
    /// Input. `member` names the member of a zip archive to read, and means nothing for other
    /// content; see ZipMember::open for an empty one. `block_bytes` is how much is read from the
    /// source at first, and at once where it is gzip: 4 or more. Errors: io, interrupted;
    /// bad_source for a zip archive that cannot be read, as one on a pipe: its directory stands at
    /// its end.
    static Result<Input> open(const std::string& path, const std::atomic<bool>& stop,
                              const std::string& member = {},
                              std::size_t block_bytes = kBlockBytes);

    Input(Input&&) noexcept;
    Input& operator=(Input&&) = delete;
    ~Input();

    /// That `member`, as it was given on a command line, names a member of a zip archive. Error:
    /// bad_source where it is given and this is no zip archive.
    Status check_member(const std::string& member) const;

    /// Fills `buffer` with text, as far as there is any: fewer bytes than asked for mean the end.
    /// Errors: io, interrupted; bad_source for gzip or zip that is damaged or ends too early,
    /// naming the byte.
    Result<std::size_t> read(std::span<char> buffer);

    /// «-» or the path as given.
    const std::string& name() const { return name_; }
    /// «gzip», «zip» or «none».
    std::string_view compression() const {
        return zip_ ? "zip" : inflater_ == nullptr ? "none" : "gzip";
    }
    /// Name of the zip archive's member that is read; empty without one.
    const std::string& member() const { return member_; }
    /// Bytes of the source consumed so far, as they lie on disk; for a zip archive those of the
    /// member, packed, and an estimate until its end (ZipMember::packed_position).
    std::uint64_t source_bytes() const { return zip_ ? zip_->packed_position() : source_bytes_; }
    /// What source_bytes() will be at the end, or 0 where that is not known.
    std::uint64_t total_bytes() const { return zip_ ? zip_->packed_bytes() : total_bytes_; }
    /// XXH3-64 of the bytes consumed so far, as they lie on disk. Absent for a zip archive, of
    /// which one member is read and not all bytes: that has its CRC-32.
    std::optional<std::uint64_t> checksum() const;
    /// CRC-32 of the member's text; reading the member to its end has proved it.
    std::optional<std::uint32_t> crc32() const;

  private:
    struct Inflater;

    Input(std::string name, const std::atomic<bool>& stop, std::size_t block_bytes);
    Result<std::size_t> read_source(std::span<char> buffer);
    Result<std::size_t> take(std::span<char> buffer);
    Result<std::size_t> inflate(std::span<char> buffer);
    Result<std::size_t> unzip(std::span<char> buffer);
    Status refill();

    std::string name_;
    std::string member_;
    const std::atomic<bool>* stop_;
    UniqueFd owned_;
    int fd_ = -1;
    std::uint64_t total_bytes_ = 0;
    std::uint64_t source_bytes_ = 0;
    format::Checksum checksum_;
    std::size_t block_bytes_;
    std::string block_;  // read from the source, not yet handed on
    std::size_t block_used_ = 0;
    std::unique_ptr<Inflater> inflater_;
    std::optional<ZipMember> zip_;
};

}  // namespace gloved::source
