// Model: opens a model's directory, checks its files, and maps them for reading.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/planes.hpp"
#include "common/format/word_index.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// The rows from `first` to `last` − 1.
struct RowRange {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t size() const { return last - first; }
    friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// Whether Model::open opens the planes file, if there is one.
enum class WithPlanes { if_there, no };

/// The words (keys), norms, vectors and ranks of a model, and its plane if one is stored, mapped
/// read-only. Immutable but for the index of words: any number of threads may use a Model. All
/// views are valid as long as it.
class Model {
  public:
    /// Opens the model in directory `path`. Opens all files through one descriptor of the
    /// directory, so that a model that is replaced meanwhile cannot be mixed with the new one.
    ///
    /// Checks the header of the values file (decode_header) and the file's size. Checks that the
    /// keys file has the size and checksum that this header says, and `rows` lines in strictly
    /// ascending byte order, none empty, none with NUL, TAB or CR. Checks the header of the planes
    /// file, the file's size, and that it belongs to this model. Does not read sections and planes:
    /// see `verify_section` and `verify_planes`. Errors: io, damaged, mismatch, unsupported; the
    /// message names the file and the fault.
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
    std::string_view key(std::size_t row) const { return words().word(row); }
    /// The row whose key equals `word`. A few cache misses after `index_words`, O(log rows) of them
    /// before.
    std::optional<Row> find(std::string_view word) const;
    /// Builds the index that `find` uses from then on, unless there is one. Takes tens of
    /// nanoseconds a row. May run on any thread while others use the model. If the words were
    /// chosen so that their hashes collide, there is no index (WordIndex::build).
    void index_words() const;
    /// Memory of the index of words; 0 if there is none.
    std::size_t index_bytes() const;
    /// The rows whose keys start with the bytes of `prefix`; all rows if it is empty. O(log rows).
    RowRange prefix_range(std::string_view prefix) const;

    /// float32, shape (rows, dim), row-major, page-aligned.
    std::span<const float> vectors() const { return section_as<float>(*vectors_); }
    /// The vector of `row`: float32, shape (dim).
    std::span<const float> vector(std::size_t row) const {
        return vectors().subspan(row * dim(), dim());
    }
    /// float64, shape (rows): the length of each vector, as kernels/canonical.hpp defines it.
    std::span<const double> norms() const { return section_as<double>(*norms_); }
    /// uint32, shape (rows): each row's frequency rank, 0 for the most frequent word. It is the
    /// number of words that stood before it in the download, without those that were left out.
    std::span<const std::uint32_t> ranks() const { return section_as<std::uint32_t>(*ranks_); }

    /// The content of a section; `section` is an element of header().sections.
    std::span<const std::byte> section_bytes(const Section& section) const {
        return values_.bytes().subspan(section.offset, section.bytes);
    }
    /// Reads all of a section, compares it with its checksum and rejects numbers that are not
    /// finite. Error: damaged, which names file and section.
    Status verify_section(const Section& section) const;

    /// The content of the model's plane, in the layout of PlaneShape, page-aligned; nullopt if no
    /// plane is stored or it was not opened.
    std::optional<std::span<const std::byte>> planes() const {
        if (!planes_header_) return std::nullopt;
        return planes_.bytes().subspan(kHeaderBytes, planes_header_->shape().bytes());
    }
    /// The header of the planes file; nullopt as for `planes`.
    const std::optional<PlanesHeader>& planes_header() const { return planes_header_; }
    /// Reads all of the plane and compares it with its checksum. Error: damaged, which names file
    /// and remedy. Succeeds if no plane is stored.
    Status verify_planes() const;

    /// Checks that all files still have the sizes they had when they were mapped: what was cut off
    /// reads as zeros or raises SIGBUS (MappedFile::has_kept_its_size). Error: damaged, which names
    /// the file. Cheap enough to call for every answer.
    Status verify_sizes() const;
    /// Whether the directory of `path` has the very files that were opened, unchanged
    /// (MappedFile::is_still), and no planes file if none was opened.
    bool is_still_at(const std::string& path) const;

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
    std::optional<Row> search_sorted(std::string_view word) const;
    WordList words() const { return {keys_.text(), starts_}; }

    /// Apart from the Model, which moves while nobody else uses it.
    struct Index {
        std::mutex building;
        std::optional<WordIndex> built;
        std::atomic<const WordIndex*> ready = nullptr;  // set once, when `built` is complete
    };

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
    std::unique_ptr<Index> index_ = std::make_unique<Index>();
    // Into header_.sections, whose heap storage does not move with the Model.
    const Section* norms_ = nullptr;
    const Section* vectors_ = nullptr;
    const Section* ranks_ = nullptr;
};

}  // namespace gloved::format
