// Reads one member of a zip archive and unpacks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/result.hpp"

struct zip;
struct zip_file;

namespace gloved::source {

/// Reads a stored or deflated member of any size (ZIP64) once, from beginning to end. Not safe for
/// concurrent use.
class ZipMember {
  public:
    /// Opens the member `member` of the archive in `fd`, a seekable file that the caller keeps. An
    /// empty `member` stands for the only file; directories and entries below «__MACOSX/» do not
    /// count. Messages call the archive `path`. Errors: io; bad_source for an archive that is
    /// damaged or cut or has too large a directory; for a member that is missing, encrypted or
    /// packed by another method; and for an archive of several files when none is named, with their
    /// names.
    static Result<ZipMember> open(int fd, const std::string& path, const std::string& member);

    ZipMember(ZipMember&&) noexcept = default;
    ZipMember& operator=(ZipMember&&) = delete;

    /// Reads the member's next bytes, at most a full `buffer`; 0 at its end, where its checksum is
    /// verified. Errors: bad_source for data that is damaged, naming the byte; io.
    Result<std::size_t> read(std::span<char> buffer);

    const std::string& name() const { return name_; }
    std::uint64_t packed_bytes() const { return packed_bytes_; }
    /// Packed bytes read so far: an estimate from the share of the text that was read, as libzip
    /// does not say. Exact at the beginning and at the end.
    std::uint64_t packed_position() const;
    /// The CRC-32 that the archive's directory gives for the member's text.
    std::uint32_t crc32() const { return crc32_; }

  private:
    struct Discard {
        void operator()(zip* archive) const;
    };
    struct Close {
        void operator()(zip_file* file) const;
    };

    ZipMember() = default;

    std::string path_;
    std::string name_;
    std::uint64_t packed_bytes_ = 0;
    std::uint64_t text_bytes_ = 0;
    std::uint64_t position_ = 0;
    std::uint32_t crc32_ = 0;
    std::unique_ptr<zip, Discard> archive_;  // before file_, which is closed first
    std::unique_ptr<zip_file, Close> file_;
};

}  // namespace gloved::source
