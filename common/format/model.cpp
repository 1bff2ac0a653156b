#include "common/format/model.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/elapsed.hpp"
#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved::format {
namespace {

Error with_path(const std::string& path, Error error) {
    error.message = path + ": " + error.message;
    return error;
}

/// Bytes that are hashed and checked at a time, while they are in the cache.
constexpr std::size_t kPieceBytes = 1 << 18;

/// Whether a float is NaN or infinite: all exponent bits set. Has no branch, so that compilers
/// vectorise it.
template <class Bits>
bool any_not_finite(std::span<const std::byte> bytes, Bits exponent) {
    Bits any = 0;
    for (std::size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
        Bits bits = 0;
        std::memcpy(&bits, bytes.data() + at, sizeof bits);
        any |= static_cast<Bits>((bits & exponent) == exponent);
    }
    return any != 0;
}

bool holds_not_finite(std::span<const std::byte> bytes, ElementType type) {
    if (type == ElementType::float32) return any_not_finite<std::uint32_t>(bytes, 0x7F800000U);
    if (type == ElementType::float64)
        return any_not_finite<std::uint64_t>(bytes, 0x7FF0000000000000U);
    return false;
}

/// Remedy for a path that is no model.
constexpr std::string_view kConvertMakesModels = "gloved-convert makes a model of a download";

/// Remedy for a useless planes file.
std::string planes_remedy(const std::string& model_path) {
    return fmt::format(
        "; remove it (planes are optional), or run 'gloved-convert --planes-only {}' to remake it",
        model_path);
}

}  // namespace

Result<Model> Model::open(const std::string& path, WithPlanes planes) {
    auto directory = open_directory(path);
    if (!directory) {
        Error error = directory.error();
        std::error_code ignored;
        if (std::filesystem::is_regular_file(path, ignored))
            error.message += fmt::format("; it is a file: {}", kConvertMakesModels);
        return error;
    }
    return open_at(directory->get(), path, planes);
}

Result<Model> Model::open_at(int directory_fd, const std::string& path, WithPlanes planes) {
    using Clock = std::chrono::steady_clock;
    Model model;
    model.path_ = path;
    const auto begun = Clock::now();
    if (Status opened = model.open_values(directory_fd); !opened) return opened.error();
    model.load_values_ms_ = ms_since(begun);
    const auto values_open = Clock::now();
    if (Status opened = model.open_keys(directory_fd); !opened) return opened.error();
    model.load_keys_ms_ = ms_since(values_open);
    if (planes == WithPlanes::if_there) {
        if (Status opened = model.open_planes(directory_fd); !opened) return opened.error();
    }
    return model;
}

Status Model::open_values(int directory_fd) {
    const std::string path = path_ + "/" + kValuesFile;
    auto values = MappedFile::open_at(directory_fd, kValuesFile, path);
    if (!values) {
        Error error = values.error();
        if (::faccessat(directory_fd, kValuesFile, F_OK, 0) != 0 && errno == ENOENT)
            error.message += fmt::format("; the directory is no model: {}", kConvertMakesModels);
        return error;
    }
    values_ = *std::move(values);

    auto header = decode_header(values_.bytes());
    if (!header) {
        Error error = with_path(path, header.error());
        if (error.code == ErrorCode::damaged) error.message += "; convert the download again";
        return error;
    }
    header_ = *std::move(header);
    if (header_.file_bytes != values_.size_bytes()) {
        return damaged(
            "{}: the file has {} bytes, its header says {} (truncated or appended "
            "to); convert the download again",
            path, values_.size_bytes(), header_.file_bytes);
    }
    norms_ = header_.find(kNorms);
    vectors_ = header_.find(kVectors);
    ranks_ = header_.find(kRanks);
    return {};
}

Status Model::open_keys(int directory_fd) {
    const std::string path = path_ + "/" + kKeysFile;
    auto keys = MappedFile::open_at(directory_fd, kKeysFile, path);
    if (!keys) return keys.error();
    keys_ = *std::move(keys);
    if (keys_.size_bytes() != header_.keys_bytes) {
        return error_with(ErrorCode::mismatch,
                          "{}: {} bytes, but the values file beside it belongs to keys of {} "
                          "bytes: truncated, or of another model",
                          path, keys_.size_bytes(), header_.keys_bytes);
    }

    const auto computed = checksum(keys_.bytes());
    if (computed != header_.keys_checksum) {
        return error_with(ErrorCode::mismatch,
                          "{}: checksum {}, but the values file beside it belongs to keys of "
                          "checksum {}: damaged, or of another model",
                          path, hex(computed), hex(header_.keys_checksum));
    }
    if (Status indexed = index_keys(); !indexed) return with_path(path, indexed.error());
    return {};
}

Status Model::index_keys() {
    const std::string_view text = keys_.text();
    const std::size_t rows = this->rows();
    // A key and its LF are at least two bytes: this bounds the allocation by the file's true size.
    if (text.size() / 2 < rows) {
        return damaged("{} bytes cannot hold {} words", text.size(), rows);
    }
    // Replies separate fields by TAB and lines by LF; a key with one of these would forge some.
    for (const char forbidden : {'\0', '\t', '\r'}) {
        if (std::memchr(text.data(), forbidden, text.size()) != nullptr) {
            return damaged("a key holds the byte 0x{:02X}", static_cast<int>(forbidden));
        }
    }
    starts_.clear();
    starts_.reserve(rows + 1);
    starts_.push_back(0);
    std::string_view previous;
    for (std::size_t at = 0; at < text.size();) {
        const auto* end =
            static_cast<const char*>(std::memchr(text.data() + at, '\n', text.size() - at));
        if (end == nullptr) return Error{ErrorCode::damaged, "the last line has no LF"};
        const std::string_view key(text.data() + at,
                                   static_cast<std::size_t>(end - (text.data() + at)));
        const std::size_t row = starts_.size() - 1;
        if (row == rows) return damaged("more than the header's {} lines", rows);
        // An empty first line equals the empty `previous`, so this finds empty keys too.
        if (!(previous < key)) {
            return damaged("line {}: {} does not sort after {}", row + 1, printable(key),
                           printable(previous));
        }
        previous = key;
        at += key.size() + 1;
        starts_.push_back(at);
    }
    if (starts_.size() != rows + 1) {
        return damaged("{} lines, the header says {}", starts_.size() - 1, rows);
    }
    return {};
}

Status Model::open_planes(int directory_fd) {
    if (lacks_file(directory_fd, kPlanesFile)) return {};
    const std::string path = path_ + "/" + kPlanesFile;
    const auto refused = [&](Error error) {
        error.message += planes_remedy(path_);
        return with_path(path, std::move(error));
    };
    auto planes = MappedFile::open_at(directory_fd, kPlanesFile, path);
    if (!planes) return planes.error();
    const auto header = decode_planes_header(planes->bytes());
    if (!header) return refused(header.error());
    if (header->file_bytes() != planes->size_bytes()) {
        return refused(
            {ErrorCode::damaged,
             fmt::format("the file has {} bytes, its header says {} (truncated or appended to)",
                         planes->size_bytes(), header->file_bytes())});
    }
    if (header->generation != generation() || header->rows != header_.rows ||
        header->dim != header_.dim) {
        return refused(
            {ErrorCode::mismatch,
             fmt::format("of another model: {} × {}, generation {}; this one has {} × {} and {}",
                         header->rows, header->dim, hex(header->generation), header_.rows,
                         header_.dim, hex(generation()))});
    }
    planes_ = *std::move(planes);
    planes_header_ = *header;
    return {};
}

std::optional<Row> Model::find(std::string_view word) const {
    const WordIndex* const index = index_->ready.load(std::memory_order_acquire);
    return index != nullptr ? index->find(word, words()) : search_sorted(word);
}

void Model::index_words() const {
    const std::lock_guard lock(index_->building);
    if (index_->built) return;
    index_->built = WordIndex::build(words());
    if (index_->built) index_->ready.store(&*index_->built, std::memory_order_release);
}

std::size_t Model::index_bytes() const {
    const WordIndex* const index = index_->ready.load(std::memory_order_acquire);
    return index != nullptr ? index->bytes() : 0;
}

std::optional<Row> Model::search_sorted(std::string_view word) const {
    std::size_t low = 0;
    std::size_t high = rows();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        const int order = key(middle).compare(word);
        if (order == 0) return static_cast<Row>(middle);
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return std::nullopt;
}

RowRange Model::prefix_range(std::string_view prefix) const {
    const auto first_where = [&](auto&& beyond) {
        std::size_t low = 0;
        std::size_t high = rows();
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (beyond(key(middle).substr(0, prefix.size()))) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    };
    return {first_where([&](std::string_view head) { return head >= prefix; }),
            first_where([&](std::string_view head) { return head > prefix; })};
}

Status Model::verify_section(const Section& section) const {
    Checksum hashed;
    bool not_finite = false;
    for (auto bytes = section_bytes(section); !bytes.empty();) {
        const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
        hashed.update(piece);
        not_finite = not_finite || holds_not_finite(piece, section.type);
        bytes = bytes.subspan(piece.size());
    }
    const auto computed = hashed.value();
    if (computed != section.checksum) {
        return damaged("{}/{}: section '{}' has checksum {}, its bytes give {}", path_, kValuesFile,
                       section.name, hex(section.checksum), hex(computed));
    }
    if (not_finite) {
        return damaged("{}/{}: section '{}' holds NaN or infinity; gloved-verify says where", path_,
                       kValuesFile, section.name);
    }
    return {};
}

Status Model::verify_planes() const {
    const auto groups = planes();
    if (!groups) return {};
    const auto computed = checksum(*groups);
    if (computed != planes_header_->checksum) {
        return damaged("{}/{}: the checksum is {}, the bytes give {}{}", path_, kPlanesFile,
                       hex(planes_header_->checksum), hex(computed), planes_remedy(path_));
    }
    return {};
}

bool Model::is_still_at(const std::string& path) const {
    const auto directory = open_directory(path);
    if (!directory) return false;
    const int fd = directory->get();
    const bool same_plane =
        planes_header_ ? planes_.is_still(fd, kPlanesFile) : lacks_file(fd, kPlanesFile);
    return same_plane && values_.is_still(fd, kValuesFile) && keys_.is_still(fd, kKeysFile);
}

Status Model::verify_sizes() const {
    for (const auto& [file, name] : {std::pair{&values_, kValuesFile}, std::pair{&keys_, kKeysFile},
                                     std::pair{&planes_, kPlanesFile}}) {
        if (file->has_kept_its_size()) continue;
        return damaged(
            "{}/{}: its size has changed since it was mapped; a model is replaced by "
            "renaming (as gloved-convert does), never written in place",
            path_, name);
    }
    return {};
}

}  // namespace gloved::format
