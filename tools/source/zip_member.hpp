// One member of a zip archive, unpacked as it is read.
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

/// Reads a stored or deflated member, of any size (ZIP64), from its beginning to its end, once. Not
/// safe for concurrent use.
class ZipMember {
  public:
    /// Opens the member `member` of the archive that `fd` holds, which must be seekable; the
    /// descriptor remains the caller's. An empty `member` stands for the only file there is;
    /// directories do not count, nor does what macOS leaves below «__MACOSX/». `path` is what
    /// messages call the archive. Errors: bad_source for an archive that is damaged or cut, or
    /// whose directory is too large to be held; for a member that is not there, encrypted or packed
    /// by another method; and for an archive of several files when none is named: the message lists
    /// them; io.
    static Result<ZipMember> open(int fd, const std::string& path, const std::string& member);

    ZipMember(ZipMember&&) noexcept = default;
    ZipMember& operator=(ZipMember&&) = delete;

    /// Fills `buffer` with the member's next bytes, at most; 0 is its end, and the checksum of all
    /// of it is right then. Errors: bad_source for data that is damaged, naming the byte; io.
    Result<std::size_t> read(std::span<char> buffer);

    const std::string& name() const { return name_; }
    std::uint64_t packed_bytes() const { return packed_bytes_; }
    /// How much of the packed bytes is consumed. An estimate, by the share of the text that was
    /// read: libzip does not tell. Exact at the beginning and at the end.
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
