// The neighbors file of a model: for each row, the rows nearest to it. FORMAT.md specifies it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/result.hpp"

namespace gloved::format {

inline constexpr const char* kNeighborsFile = "neighbors";
/// Name of the file until it is complete.
inline constexpr const char* kNewNeighborsFile = "neighbors.new";

/// First bytes of a neighbors file, made as kMagic.
inline constexpr std::array<unsigned char, 8> kNeighborsMagic = {0x8E, 'G',  'L',  'N',
                                                                 '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kNeighborsVersion = 1;
/// Maximum number of neighbours of a row.
inline constexpr std::uint32_t kMaxNeighbors = 1024;
/// Stands at the end of a list with fewer than k neighbours. No row has this number.
inline constexpr Row kNoRow = 0xFFFFFFFF;
static_assert(kNoRow > kMaxRows);

/// The content of a neighbors file's first 4096 bytes.
struct NeighborsHeader {
    std::uint64_t rows = 0;        ///< of the model
    std::uint32_t dim = 0;         ///< of the model
    std::uint64_t generation = 0;  ///< of the model
    std::uint32_t k = 0;           ///< length of a list
    RowRange range;                ///< the rows whose lists are in the file; a part has not all
    std::uint64_t checksum = 0;    ///< XXH3-64 of the lists

    std::uint64_t lists_bytes() const { return std::uint64_t{range.size()} * k * sizeof(Row); }
    /// Size of the file: header, lists and padding at the end.
    std::uint64_t file_bytes() const;
    bool is_whole() const { return range == RowRange{0, static_cast<std::size_t>(rows)}; }
};

/// Encodes the header and adds its own checksum. The caller sets all fields to values that
/// `decode_neighbors_header` would accept; this is not checked.
std::array<std::byte, kHeaderBytes> encode_neighbors_header(const NeighborsHeader& header);

/// Decodes a header and checks everything that needs no lists: magic, version, header checksum,
/// limits, the range, and the sizes. Errors: damaged or unsupported; the caller adds the path to
/// the message.
Result<NeighborsHeader> decode_neighbors_header(std::span<const std::byte> bytes);

/// A neighbors file or a part of one, mapped read-only. Immutable: any number of threads may use
/// it.
class Neighbors {
  public:
    /// Opens the neighbors file of `model`, or no file if it has none. Checks the header, that the
    /// file belongs to this model and has the lists of all rows, and its size; not the lists: see
    /// `verify`. Errors: io, damaged, mismatch, unsupported; the message names the file and a
    /// remedy.
    static Result<std::optional<Neighbors>> open(const Model& model);
    /// Maps an open regular file, which may be a part. `path` names the file in messages. Checks as
    /// `open` does, but for the range. Errors as those of `open`.
    static Result<Neighbors> read(UniqueFd file, const std::string& path, const Model& model);

    const NeighborsHeader& header() const { return header_; }
    std::size_t k() const { return header_.k; }
    RowRange range() const { return header_.range; }

    /// uint32, shape (range().size(), k()): the lists in the order of the rows, with kNoRow behind
    /// the end of a shorter one.
    std::span<const Row> lists() const;
    /// The neighbours of `row`, which is in range(), nearest first: at most `most` and k(). A
    /// damaged file may hold anything: any number here, also a row that the model does not have.
    std::span<const Row> of(std::size_t row, std::size_t most = kMaxNeighbors) const;

    /// Reads the whole file. Compares the lists with the checksum, and checks that each names
    /// distinct rows of the model other than its own, and that zeros follow the lists. Whether they
    /// are the nearest ones, gloved-verify checks.
    /// Error: damaged.
    Status verify() const;
    /// Whether the file still has the size that it had when it was opened
    /// (MappedFile::has_kept_its_size).
    bool has_kept_its_size() const { return file_.has_kept_its_size(); }
    /// Whether the file `neighbors` of a directory is the one that was opened, unchanged
    /// (MappedFile::is_still).
    bool is_still_at(int directory_fd) const {
        return file_.is_still(directory_fd, kNeighborsFile);
    }
    /// The mapped file.
    std::span<const std::byte> mapped() const { return file_.bytes(); }

  private:
    Neighbors(MappedFile file, const NeighborsHeader& header, std::string path)
        : file_(std::move(file)), header_(header), path_(std::move(path)) {}

    MappedFile file_;
    NeighborsHeader header_;
    std::string path_;
};

/// Writes a neighbors file from beginning to end. Not safe for concurrent use. All errors are io;
/// after one, the file is unusable.
class NeighborsWriter {
  public:
    /// `file` is new and empty; `path` names it in messages. The header's checksum is ignored.
    static Result<NeighborsWriter> create(UniqueFd file, const std::string& path,
                                          const NeighborsHeader& header);

    /// Appends the lists of the next rows, k numbers each.
    Status append(std::span<const Row> lists);

    /// Writes the header, after all lists, and makes the file read-only (0444) and durable (fsync).
    Status finish();

  private:
    NeighborsWriter(UniqueFd file, std::string path, const NeighborsHeader& header)
        : fd_(std::move(file)), path_(std::move(path)), header_(header) {}

    UniqueFd fd_;
    std::string path_;
    NeighborsHeader header_;
    std::uint64_t written_ = 0;
    Checksum checksum_;
};

}  // namespace gloved::format
