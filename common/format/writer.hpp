// ModelWriter writes the files of a new model, PlanesWriter the planes file of a model. Nobody
// reads them until they are published (publish.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// Creates the file `name` of an unfinished model in `directory_fd`, with the mode of
/// unfinished_file_mode. `path` names the file in messages. Error: io.
Result<UniqueFd> create_model_file(int directory_fd, const char* name, const std::string& path);

/// Writes the magic of a new file, durably: after a power cut every file must be recognisable as
/// gloved's. Error: io.
Status mark_model_file(int fd, std::span<const unsigned char> magic, const std::string& path);

/// Makes a file of a model read-only (0444, independent of the umask) and durable. Error: io.
Status seal_model_file(int fd, const std::string& path);

/// Writes report.json, which the directory must lack, and seals it. Messages call the directory
/// `path`. Error: io.
Status write_report(int directory_fd, const std::string& path, const std::string& json);

/// Writes the `keys` and `values` files of a model whose rows and dim are known. Keys, vectors,
/// norms and ranks are each appended in the order of the rows, independently of each other. All
/// must be complete before `finish`. Not safe for concurrent use, except write_vectors. All errors
/// are io; after one, discard the directory.
class ModelWriter {
  public:
    /// Creates both files in `directory_fd`, which messages call `path`. The magic of the values
    /// file is on disk before the keys file exists, so that the files of a killed process are
    /// recognised as gloved's. The caller ensures rows in [1, kMaxRows] and dim in [1, kMaxDim].
    static Result<ModelWriter> create(int directory_fd, const std::string& path, std::uint64_t rows,
                                      std::uint32_t dim);

    /// Appends the next key. The caller passes keys in strictly ascending byte order, not empty,
    /// without NUL, TAB, LF, CR.
    Status append_key(std::string_view key);
    /// Writes whole vectors, shape (n, dim), from row `first` on. Any thread, any order: several
    /// threads write faster, since allocating new pages costs most. Pass each row to hash_vectors
    /// too.
    Status write_vectors(std::uint64_t first, std::span<const float> values) const;
    /// Adds the next whole vectors, shape (n, dim), to the section's checksum.
    void hash_vectors(std::span<const float> values);
    /// Calls write_vectors and hash_vectors for the next rows.
    Status append_vectors(std::span<const float> values);
    /// Append one number for each of the next rows.
    Status append_norms(std::span<const double> norms);
    Status append_ranks(std::span<const std::uint32_t> ranks);

    /// Writes the header, makes both files read-only (0444) and durable (fsync), and returns the
    /// header.
    Result<Header> finish();

  private:
    struct Cursor {
        Section section;
        std::uint64_t written = 0;
        Checksum checksum;
    };

    ModelWriter() = default;
    Status append(Cursor& cursor, std::span<const std::byte> bytes);
    Status flush_keys();

    std::uint64_t rows_ = 0;
    std::uint32_t dim_ = 0;
    std::string values_path_;
    std::string keys_path_;
    UniqueFd values_fd_;
    UniqueFd keys_fd_;
    std::uint64_t file_bytes_ = 0;
    Cursor norms_;
    Cursor vectors_;
    Cursor ranks_;
    std::string keys_buffer_;
    std::string last_key_;
    std::uint64_t keys_written_ = 0;
    std::uint64_t keys_bytes_ = 0;
    Checksum keys_checksum_;
};

/// Writes the planes file of a model, in groups of kGroupRows rows (PlaneShape). Not safe for
/// concurrent use, except write_groups. All errors are io; after one, the file is unusable.
class PlanesWriter {
  public:
    /// `file` is new and empty; `path` names it in messages. Shape and generation are the model's.
    static Result<PlanesWriter> create(UniqueFd file, const std::string& path, std::uint64_t rows,
                                       std::uint32_t dim, std::uint64_t generation);

    PlaneShape shape() const { return header_.shape(); }
    /// Writes whole groups from group `first` on. Any thread, any order. Pass each group to
    /// hash_groups too.
    Status write_groups(std::uint64_t first, std::span<const std::byte> groups) const;
    /// Adds the next whole groups to the checksum.
    void hash_groups(std::span<const std::byte> groups);

    /// Writes the header and makes the file read-only (0444) and durable (fsync).
    Status finish();

  private:
    PlanesWriter() = default;

    PlanesHeader header_;
    std::string path_;
    UniqueFd fd_;
    std::uint64_t hashed_ = 0;
    Checksum checksum_;
};

}  // namespace gloved::format
