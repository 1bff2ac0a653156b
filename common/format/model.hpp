// Model: a published model, mapped for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// Rows [first, last).
struct RowRange {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t size() const { return last - first; }
    friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// Whether to open a model's planes file if there is one.
enum class WithPlanes { if_there, no };

/// Keys, norms, vectors and ranks of a model, and its plane if one is stored, mapped read-only.
/// Immutable: any number of threads may read. Views are valid as long as the Model.
class Model {
  public:
    /// Opens the model in directory `path`. One directory handle serves all files, so that
    /// replacing the directory meanwhile cannot mix two models.
    ///
    /// Checks sizes against fstat before mapping; the values header; that the keys file matches it
    /// in size and checksum and has `rows` lines, none empty, none with NUL, TAB or CR, in strictly
    /// ascending byte order; the planes header, that it belongs to this model, and its size. Does
    /// not check the checksums of sections and planes: see `verify_section` and `verify_planes`.
    /// Errors (io, damaged, mismatch, unsupported) name the file and the fault.
    static Result<Model> open(const std::string& path, WithPlanes planes = WithPlanes::if_there);
    /// Opens the model in an open directory, which messages call `path`.
    static Result<Model> open_at(int directory_fd, const std::string& path,
                                 WithPlanes planes = WithPlanes::if_there);

    const std::string& path() const { return path_; }
    const Header& header() const { return header_; }
    std::size_t rows() const { return static_cast<std::size_t>(header_.rows); }
    std::size_t dim() const { return header_.dim; }
    std::uint64_t generation() const { return header_.generation; }

    /// The word of `row`, without its LF.
    std::string_view key(std::size_t row) const {
        return keys_.text().substr(starts_[row], starts_[row + 1] - starts_[row] - 1);
    }
    /// The row whose key equals `word`; O(log rows).
    std::optional<Row> find(std::string_view word) const;
    /// The rows whose keys start with the bytes of `prefix`; all rows if it is empty. O(log rows).
    RowRange prefix_range(std::string_view prefix) const;

    /// float32, shape (rows, dim), row-major, page-aligned.
    std::span<const float> vectors() const { return section_as<float>(*vectors_); }
    /// float32, shape (dim).
    std::span<const float> vector(std::size_t row) const {
        return vectors().subspan(row * dim(), dim());
    }
    /// float64, shape (rows): square root of each row's canonical sum of squares.
    std::span<const double> norms() const { return section_as<double>(*norms_); }
    /// uint32, shape (rows): number of kept rows before each in the source.
    std::span<const std::uint32_t> ranks() const { return section_as<std::uint32_t>(*ranks_); }

    /// The bytes of a section of this model's header.
    std::span<const std::byte> section_bytes(const Section& section) const {
        return values_.bytes().subspan(section.offset, section.bytes);
    }
    /// Compares a section's bytes with its checksum and rejects numbers that are not finite; reads
    /// all of it once. The error is `damaged` and names file and section.
    Status verify_section(const Section& section) const;

    /// The groups of the model's plane in PlaneShape's layout, page-aligned; nothing if no plane is
    /// stored.
    std::optional<std::span<const std::byte>> planes() const {
        if (!planes_header_) return std::nullopt;
        return planes_.bytes().subspan(kHeaderBytes, planes_header_->shape().bytes());
    }
    /// Nothing if no plane is stored.
    const std::optional<PlanesHeader>& planes_header() const { return planes_header_; }
    /// Compares the groups with their checksum; reads all of them. The error is `damaged` and names
    /// file and remedy. Succeeds if no plane is stored.
    Status verify_planes() const;

    /// Checks that all files are as long as when they were mapped: what is cut off reads as zeros
    /// or raises SIGBUS. The error is `damaged` and names the file. Cheap enough to call for every
    /// answer.
    Status verify_sizes() const;

    /// The mapped values file, including the header.
    std::span<const std::byte> mapped_values() const { return values_.bytes(); }
    /// The mapped planes file; empty if there is none.
    std::span<const std::byte> mapped_planes() const { return planes_.bytes(); }
    /// Milliseconds that `open` took for each file.
    double load_values_ms() const { return load_values_ms_; }
    double load_keys_ms() const { return load_keys_ms_; }

  private:
    Model() = default;
    Status open_values(int directory_fd);
    Status open_keys(int directory_fd);
    Status index_keys();
    Status open_planes(int directory_fd);

    template <class T>
    std::span<const T> section_as(const Section& section) const {
        const auto bytes = section_bytes(section);
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

    std::string path_;
    double load_values_ms_ = 0;
    double load_keys_ms_ = 0;
    Header header_;
    MappedFile keys_;
    MappedFile values_;
    MappedFile planes_;
    std::optional<PlanesHeader> planes_header_;
    std::vector<std::uint64_t> starts_;  // rows + 1 offsets into the keys file
    // Into header_.sections, whose heap storage does not move with the Model.
    const Section* norms_ = nullptr;
    const Section* vectors_ = nullptr;
    const Section* ranks_ = nullptr;
};

}  // namespace gloved::format
