#include "common/format/neighbors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/format/frame.hpp"
#include "common/format/writer.hpp"

namespace gloved::format {
namespace {

constexpr FileKind kNeighbors = {"neighbors", kNeighborsMagic, kNeighborsVersion, "neighbors", ""};

// Offsets of the fields that only neighbors headers have; FORMAT.md has the same table.
constexpr std::size_t kAtK = 28;
constexpr std::size_t kAtListsBytes = 40;
constexpr std::size_t kAtListsChecksum = 48;
constexpr std::size_t kAtFirst = 64;
constexpr std::size_t kAtLast = 72;

Error with_path(const std::string& path, Error error) {
    error.message = path + ": " + error.message + "; make it again with gloved-neighbors";
    return error;
}

}  // namespace

std::uint64_t NeighborsHeader::file_bytes() const { return aligned(kHeaderBytes + lists_bytes()); }

std::array<std::byte, kHeaderBytes> encode_neighbors_header(const NeighborsHeader& header) {
    HeaderBytes bytes =
        begin_header(kNeighbors, {header.rows, header.dim, header.generation, header.file_bytes()});
    put(bytes, kAtK, header.k);
    put(bytes, kAtListsBytes, header.lists_bytes());
    put(bytes, kAtListsChecksum, header.checksum);
    put(bytes, kAtFirst, std::uint64_t{header.range.first});
    put(bytes, kAtLast, std::uint64_t{header.range.last});
    seal_header(bytes);
    return bytes;
}

Result<NeighborsHeader> decode_neighbors_header(std::span<const std::byte> bytes) {
    const auto frame = open_header(kNeighbors, bytes);
    if (!frame) return frame.error();
    const auto first = get<std::uint64_t>(bytes, kAtFirst);
    const auto last = get<std::uint64_t>(bytes, kAtLast);
    if (first >= last || last > frame->rows) {
        return damaged("lists of rows {} to {}, of {}", first, last, frame->rows);
    }
    const auto k = get<std::uint32_t>(bytes, kAtK);
    if (k == 0 || k > kMaxNeighbors) return damaged("impossible length of a list: {}", k);
    const NeighborsHeader header{frame->rows,
                                 frame->dim,
                                 frame->generation,
                                 k,
                                 {static_cast<std::size_t>(first), static_cast<std::size_t>(last)},
                                 get<std::uint64_t>(bytes, kAtListsChecksum)};
    const auto lists_bytes = get<std::uint64_t>(bytes, kAtListsBytes);
    if (lists_bytes != header.lists_bytes() || frame->file_bytes != header.file_bytes()) {
        return damaged("{} bytes of lists in a file of {}; {} lists of {} need {} in {}",
                       lists_bytes, frame->file_bytes, header.range.size(), k, header.lists_bytes(),
                       header.file_bytes());
    }
    return header;
}

Result<std::optional<Neighbors>> Neighbors::open(const Model& model) {
    const auto directory = open_directory(model.path());
    if (!directory) return directory.error();
    if (lacks_file(directory->get(), kNeighborsFile)) return std::optional<Neighbors>();
    const std::string path = model.path() + "/" + kNeighborsFile;
    auto file = open_file_at(directory->get(), kNeighborsFile, path);
    if (!file) return file.error();
    auto opened = read(*std::move(file), path, model);
    if (!opened) return opened.error();
    const NeighborsHeader& header = opened->header();
    if (!header.is_whole()) {
        return with_path(path, {ErrorCode::damaged,
                                fmt::format("a part, with the neighbours of rows {} to {} only",
                                            header.range.first, header.range.last - 1)});
    }
    return std::optional(*std::move(opened));
}

Result<Neighbors> Neighbors::read(UniqueFd file, const std::string& path, const Model& model) {
    auto mapped = MappedFile::map_whole(std::move(file), path);
    if (!mapped) return mapped.error();
    const auto header = decode_neighbors_header(mapped->bytes());
    if (!header) return with_path(path, header.error());
    if (header->file_bytes() != mapped->size_bytes()) {
        return with_path(path, {ErrorCode::damaged,
                                fmt::format("the file has {} bytes, its header says {} (truncated "
                                            "or appended to)",
                                            mapped->size_bytes(), header->file_bytes())});
    }
    if (header->generation != model.generation() || header->rows != model.rows() ||
        header->dim != model.dim()) {
        return with_path(
            path, {ErrorCode::mismatch,
                   fmt::format("of another model: {} × {}, generation {}; {} has {} × {} and {}",
                               header->rows, header->dim, hex(header->generation), model.path(),
                               model.rows(), model.dim(), hex(model.generation()))});
    }
    return Neighbors(*std::move(mapped), *header, path);
}

std::span<const Row> Neighbors::lists() const {
    const auto bytes = file_.bytes().subspan(kHeaderBytes, header_.lists_bytes());
    return {reinterpret_cast<const Row*>(bytes.data()), bytes.size() / sizeof(Row)};
}

std::span<const Row> Neighbors::of(std::size_t row, std::size_t most) const {
    assert(row >= header_.range.first && row < header_.range.last);
    const auto list =
        lists().subspan((row - header_.range.first) * k(), std::min<std::size_t>(most, k()));
    return list.first(static_cast<std::size_t>(std::ranges::find(list, kNoRow) - list.begin()));
}

Status Neighbors::verify() const {
    const auto computed = checksum(std::as_bytes(lists()));
    if (computed != header_.checksum) {
        return with_path(path_, {ErrorCode::damaged,
                                 fmt::format("the lists have checksum {}, the header says {}",
                                             hex(computed), hex(header_.checksum))});
    }
    std::vector<Row> sorted;
    for (std::size_t row = header_.range.first; row < header_.range.last; ++row) {
        const auto list = of(row);
        sorted.assign(list.begin(), list.end());
        std::ranges::sort(sorted);
        const auto fault = [&](const char* what) {
            return with_path(path_, damaged("the list of row {} {}", row, what));
        };
        if (!sorted.empty() && sorted.back() >= header_.rows)
            return fault("names a row that the model does not have");
        if (std::ranges::binary_search(sorted, row)) return fault("names the row itself");
        if (std::ranges::adjacent_find(sorted) != sorted.end()) return fault("names a row twice");
        const auto rest =
            lists().subspan((row - header_.range.first) * k(), k()).subspan(list.size());
        if (!std::ranges::all_of(rest, [](Row none) { return none == kNoRow; }))
            return fault("continues behind its end");
    }
    const std::size_t end = kHeaderBytes + header_.lists_bytes();
    const auto padding = file_.bytes().subspan(end);
    const auto byte =
        std::ranges::find_if(padding, [](std::byte value) { return value != std::byte{0}; });
    if (byte != padding.end()) {
        return with_path(path_, damaged("byte {} lies behind the lists and is not zero",
                                        end + static_cast<std::size_t>(byte - padding.begin())));
    }
    return {};
}

Result<NeighborsWriter> NeighborsWriter::create(UniqueFd file, const std::string& path,
                                                const NeighborsHeader& header) {
    assert(header.range.first < header.range.last && header.range.last <= header.rows &&
           header.k >= 1 && header.k <= kMaxNeighbors);
    NeighborsWriter writer(std::move(file), path, header);
    if (Status marked = mark_model_file(writer.fd_.get(), kNeighborsMagic, path); !marked)
        return marked.error();
    // Sets the full size first: the padding of the last page reads as zeros.
    if (::ftruncate(writer.fd_.get(), static_cast<off_t>(header.file_bytes())) != 0)
        return system_error(path, "cannot set the size", errno);
    return writer;
}

Status NeighborsWriter::append(std::span<const Row> lists) {
    const auto bytes = std::as_bytes(lists);
    assert(written_ + bytes.size() <= header_.lists_bytes());
    checksum_.update(bytes);
    Status written = write_all_at(fd_.get(), bytes, kHeaderBytes + written_, path_);
    written_ += bytes.size();
    return written;
}

Status NeighborsWriter::finish() {
    assert(written_ == header_.lists_bytes());
    header_.checksum = checksum_.value();
    if (Status written = write_all_at(fd_.get(), encode_neighbors_header(header_), 0, path_);
        !written) {
        return written;
    }
    return seal_model_file(fd_.get(), path_);
}

}  // namespace gloved::format
