// ZipMember: reads and unpacks one member, that is, one file, of a zip archive.
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
    /// Opens the member called `member` of the archive `fd`, a seekable file that the caller keeps
    /// open while the ZipMember lives. An empty `member` stands for the archive's only file;
    /// directories and entries below «__MACOSX/» do not count. Messages call the archive `path`.
    /// Errors: io; bad_source, for an archive that is damaged, cut or has too large a directory,
    /// for a member that is missing, encrypted or packed by another method, and, with the names,
    /// for an archive of several files if `member` is empty.
    static Result<ZipMember> open(int fd, const std::string& path, const std::string& member);

    ZipMember(ZipMember&&) noexcept = default;
    ZipMember& operator=(ZipMember&&) = delete;

    /// Reads the member's next unpacked bytes, at most a full `buffer`, and returns their number; 0
    /// at the end. Verifies the checksum there. Errors: bad_source, for damaged data or a wrong
    /// checksum, whose message has the byte offset; io.
    Result<std::size_t> read(std::span<char> buffer);

    const std::string& name() const { return name_; }
    /// Size of the member in the archive.
    std::uint64_t packed_bytes() const { return packed_bytes_; }
    /// How many packed bytes were read so far. libzip does not tell, so this is estimated from the
    /// share of the unpacked bytes. Exact at the beginning and at the end.
    std::uint64_t packed_position() const;
    /// The CRC-32 of the unpacked member, as the archive's directory gives it.
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
    std::unique_ptr<zip, Discard> archive_;  // declared before file_, so that it is closed after it
    std::unique_ptr<zip_file, Close> file_;
};

}  // namespace gloved::source
