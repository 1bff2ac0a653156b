// Writes the files of a model where nobody else reads them yet (see publish.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// Creates the file `name` of a model that is being made, which nobody else may read yet. `path` is
/// what messages call it. Error: io.
Result<UniqueFd> create_model_file(int directory_fd, const char* name, const std::string& path);

/// Makes a file of a model read-only (0444, whatever the umask) and durable. Error: io.
Status seal_model_file(int fd, const std::string& path);

/// Writes `keys` and `values` of a model whose shape is known. Sections are appended to
/// independently of each other and in any order; each must be complete before `finish`. Not safe
/// for concurrent use, but for write_vectors. After an error the files are unusable and the
/// directory should be discarded.
class ModelWriter {
  public:
    /// Creates both files in `directory_fd`; `path` is what messages call the directory. The values
    /// file has its magic on disk before there is a keys file, so that what a killed process leaves
    /// is known to be gloved's. rows in [1, kMaxRows] and dim in [1, kMaxDim] are the caller's
    /// duty.
    static Result<ModelWriter> create(int directory_fd, const std::string& path, std::uint64_t rows,
                                      std::uint32_t dim);

    /// Appends the next key; keys must come in strictly ascending byte order, non-empty, without
    /// NUL, TAB, LF, CR.
    Status append_key(std::string_view key);
    /// Puts whole rows, shape (n, dim), at row `first`. Any thread, in any order: new pages of a
    /// file are the dearest part of writing it. Each row's bytes must be told to hash_vectors too.
    Status write_vectors(std::uint64_t first, std::span<const float> values) const;
    /// Takes whole rows into the section's checksum, in order.
    void hash_vectors(std::span<const float> values);
    /// Both, for rows in order.
    Status append_vectors(std::span<const float> values);
    Status append_norms(std::span<const double> norms);
    Status append_ranks(std::span<const std::uint32_t> ranks);

    /// Writes the header, makes both files read-only (0444) and durable (fsync), and returns the
    /// header written.
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

/// Writes the planes file of a model. Not safe for concurrent use, but for write_groups. After an
/// error the file is unusable.
class PlanesWriter {
  public:
    /// `file` is new and empty; `path` is what messages call it. The shape and the generation are
    /// the model's.
    static Result<PlanesWriter> create(UniqueFd file, const std::string& path, std::uint64_t rows,
                                       std::uint32_t dim, std::uint64_t generation);

    PlaneShape shape() const { return header_.shape(); }
    /// Puts whole groups at group `first`. Any thread, in any order. Each group's bytes must be
    /// told to hash_groups too.
    Status write_groups(std::uint64_t first, std::span<const std::byte> groups) const;
    /// Takes whole groups into the checksum, in order.
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
