// ArchiveReader: unpacks, by libarchive, one member (one file) of a zip or tar archive, or data
// compressed by bzip2, xz or zstd.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/source/byte_reader.hpp"

struct archive;
struct archive_entry;

namespace gloved::source {

/// A way to pack bytes.
struct Packing {
    enum class Kind { gzip, filter, tar, zip };

    Kind kind;
    std::string_view name;
    std::string_view suffix;    ///< of file names
    std::string_view unpacker;  ///< command that unpacks it
    std::size_t magic_at;
    std::string_view magic;
    int filter = 0;  ///< libarchive's number of a filter

    bool is_archive() const { return kind == Kind::tar || kind == Kind::zip; }
};

/// How many of the first bytes packing_of() needs.
inline constexpr std::size_t kPackingHeadBytes = 512;

/// How bytes that begin with `head` are packed; nullptr if they are not.
const Packing* packing_of(std::string_view head);

/// The command that unpacks the outermost layer of what Input::compression() names.
std::string_view unpacker_of(std::string_view compression);

/// Reads the member or the data once, from beginning to end, in bounded memory: data passes through
/// in pieces, and there is a limit to what libarchive may read before it returns a header. Not safe
/// for concurrent use.
class ArchiveReader final : public ByteReader {
  public:
    /// Reads `below`, packed by `packing`, which is not gzip. `file` is `below` where one may seek
    /// in it, else nullptr. Both must outlive the ArchiveReader.
    ///
    /// `member` names the file of an archive to read; empty: its only one. Directories, links and
    /// what macOS adds (below «__MACOSX/», or called «._…») are no files. Several files without a
    /// `member` are refused here if `file` is given; otherwise by `read`, behind the first one.
    ///
    /// Errors: those of `below`; bad_source, for an archive that is damaged, cut or has too large a
    /// header, for a member that is missing, encrypted or packed in another way than stored and
    /// deflated, and, with their names, for several files.
    static Result<std::unique_ptr<ArchiveReader>> open(ByteReader& below, FileReader* file,
                                                       const Packing& packing,
                                                       const std::string& member,
                                                       std::size_t block_bytes);

    /// Name of the member, and its unpacked size, 0 if unknown.
    const std::string& member() const { return member_; }
    std::uint64_t text_bytes() const { return text_bytes_; }
    /// CRC-32 of a zip archive's member, as far as it was read; nullopt for other data.
    std::optional<std::uint32_t> crc32() const { return crc32_; }

  private:
    struct Free {
        void operator()(archive* handle) const;
    };

    ArchiveReader(ByteReader& below, FileReader* file, const Packing& packing,
                  const std::string& member, std::size_t block_bytes);
    static ssize_t read_block(archive* handle, void* self, const void** block);
    static std::int64_t seek(archive* handle, void* self, std::int64_t offset, int whence);
    Result<std::size_t> fill(std::span<char> buffer) override;
    Status begin(bool seeks);
    std::uint64_t max_header_bytes() const;
    Result<bool> next_file();
    Status read_headers();
    Status check_choice(bool found) const;
    Status check_readable() const;
    Status next_piece();
    Status check_rest();
    Status check_end();
    std::uint64_t used_bytes() const;
    Error fault(bool in_data) const;

    ByteReader& below_;
    FileReader* file_;
    const Packing& packing_;
    std::string wanted_;

    // What libarchive reads.
    std::vector<char> block_;
    std::uint64_t read_bytes_ = 0;      // since it was opened
    std::uint64_t max_read_bytes_ = 0;  // so far it may read
    std::string tail_;                  // the last bytes read
    std::optional<Error> fault_;        // why a read failed
    std::unique_ptr<archive, Free> handle_;

    // Headers that it has returned.
    archive_entry* entry_ = nullptr;  // the last, owned by handle_
    std::uint64_t header_at_ = 0;     // where it was looked for
    std::string entry_name_;
    std::size_t file_count_ = 0;
    std::string file_list_;

    std::string member_;
    std::uint64_t text_bytes_ = 0;
    std::span<const char> piece_;  // of the text, not yet returned
    std::uint64_t position_ = 0;   // in the text, behind piece_
    std::optional<std::uint32_t> crc32_;
    bool ended_ = false;
};

}  // namespace gloved::source
