#include "common/format/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "common/access.hpp"

namespace gloved::format {
namespace {

constexpr std::size_t kKeysBufferBytes = 1 << 20;

}  // namespace

Result<UniqueFd> create_model_file(int directory_fd, const char* name, const std::string& path) {
    UniqueFd fd(::openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return system_error(path, "cannot create", errno);
    return fd;
}

Status mark_model_file(int fd, std::span<const unsigned char> magic, const std::string& path) {
    Status written = write_all_at(fd, std::as_bytes(magic), 0, path);
    return written ? sync_to_disk(fd, path) : written;
}

Status seal_model_file(int fd, const std::string& path) {
    if (::fchmod(fd, kModelFileMode) != 0)
        return system_error(path, "cannot make read-only", errno);
    return sync_to_disk(fd, path);
}

Status write_report(int directory_fd, const std::string& path, const std::string& json) {
    const std::string file_path = path + "/" + kReportFile;
    const auto fd = create_model_file(directory_fd, kReportFile, file_path);
    if (!fd) return fd.error();
    Status written = write_all_at(fd->get(), std::as_bytes(std::span(json)), 0, file_path);
    if (!written) return written;
    return seal_model_file(fd->get(), file_path);
}

Result<ModelWriter> ModelWriter::create(int directory_fd, const std::string& path,
                                        std::uint64_t rows, std::uint32_t dim) {
    assert(rows >= 1 && rows <= kMaxRows && dim >= 1 && dim <= kMaxDim);
    ModelWriter writer;
    writer.rows_ = rows;
    writer.dim_ = dim;
    writer.values_path_ = path + "/" + kValuesFile;
    writer.keys_path_ = path + "/" + kKeysFile;
    auto values = create_model_file(directory_fd, kValuesFile, writer.values_path_);
    if (!values) return values.error();
    writer.values_fd_ = *std::move(values);
    if (Status marked = mark_model_file(writer.values_fd_.get(), kMagic, writer.values_path_);
        !marked) {
        return marked.error();
    }
    auto keys = create_model_file(directory_fd, kKeysFile, writer.keys_path_);
    if (!keys) return keys.error();
    writer.keys_fd_ = *std::move(keys);

    std::uint64_t offset = kHeaderBytes;
    const auto lay = [&](Cursor& cursor, std::string_view name, ElementType type,
                         std::uint64_t bytes) {
        cursor.section.name = name;
        cursor.section.type = type;
        cursor.section.offset = offset;
        cursor.section.bytes = bytes;
        offset = aligned(offset + bytes);
    };
    lay(writer.norms_, kNorms, ElementType::float64, rows * sizeof(double));
    lay(writer.vectors_, kVectors, ElementType::float32, rows * dim * sizeof(float));
    lay(writer.ranks_, kRanks, ElementType::uint32, rows * sizeof(std::uint32_t));
    writer.file_bytes_ = offset;
    // Sets the full size first: gaps between sections read as zeros.
    if (::ftruncate(writer.values_fd_.get(), static_cast<off_t>(offset)) != 0)
        return system_error(writer.values_path_, "cannot set the size", errno);
    return writer;
}

Status ModelWriter::append(Cursor& cursor, std::span<const std::byte> bytes) {
    assert(bytes.size() <= cursor.section.bytes - cursor.written);
    cursor.checksum.update(bytes);
    Status written =
        write_all_at(values_fd_.get(), bytes, cursor.section.offset + cursor.written, values_path_);
    cursor.written += bytes.size();
    return written;
}

Status ModelWriter::write_vectors(std::uint64_t first, std::span<const float> values) const {
    const std::uint64_t offset = first * dim_ * sizeof(float);
    assert(offset + values.size_bytes() <= vectors_.section.bytes);
    return write_all_at(values_fd_.get(), std::as_bytes(values), vectors_.section.offset + offset,
                        values_path_);
}

void ModelWriter::hash_vectors(std::span<const float> values) {
    assert(values.size_bytes() <= vectors_.section.bytes - vectors_.written);
    vectors_.checksum.update(std::as_bytes(values));
    vectors_.written += values.size_bytes();
}

Status ModelWriter::append_vectors(std::span<const float> values) {
    const std::uint64_t first = vectors_.written / (dim_ * sizeof(float));
    hash_vectors(values);
    return write_vectors(first, values);
}
Status ModelWriter::append_norms(std::span<const double> norms) {
    return append(norms_, std::as_bytes(norms));
}
Status ModelWriter::append_ranks(std::span<const std::uint32_t> ranks) {
    return append(ranks_, std::as_bytes(ranks));
}

Status ModelWriter::append_key(std::string_view key) {
    assert(last_key_ < key &&
           key.find_first_of(std::string_view("\0\t\n\r", 4)) == std::string_view::npos);
    last_key_ = key;
    keys_buffer_ += key;
    keys_buffer_ += '\n';
    ++keys_written_;
    if (keys_buffer_.size() >= kKeysBufferBytes) return flush_keys();
    return {};
}

Status ModelWriter::flush_keys() {
    const auto bytes = std::as_bytes(std::span(keys_buffer_));
    keys_checksum_.update(bytes);
    Status written = write_all_at(keys_fd_.get(), bytes, keys_bytes_, keys_path_);
    keys_bytes_ += bytes.size();
    keys_buffer_.clear();
    return written;
}

Result<Header> ModelWriter::finish() {
    if (Status flushed = flush_keys(); !flushed) return flushed.error();
    assert(keys_written_ == rows_);
    Header header;
    header.rows = rows_;
    header.dim = dim_;
    header.keys_bytes = keys_bytes_;
    header.keys_checksum = keys_checksum_.value();
    header.file_bytes = file_bytes_;
    for (Cursor* cursor : {&norms_, &vectors_, &ranks_}) {
        assert(cursor->written == cursor->section.bytes);
        cursor->section.checksum = cursor->checksum.value();
        header.sections.push_back(cursor->section);
    }
    header.generation = compute_generation(header);
    const auto bytes = encode_header(header);
    if (Status written = write_all_at(values_fd_.get(), bytes, 0, values_path_); !written)
        return written.error();
    if (Status sealed = seal_model_file(values_fd_.get(), values_path_); !sealed)
        return sealed.error();
    if (Status sealed = seal_model_file(keys_fd_.get(), keys_path_); !sealed) return sealed.error();
    return header;
}

Result<PlanesWriter> PlanesWriter::create(UniqueFd file, const std::string& path,
                                          std::uint64_t rows, std::uint32_t dim,
                                          std::uint64_t generation) {
    assert(rows >= 1 && rows <= kMaxRows && dim >= 1 && dim <= kMaxDim);
    PlanesWriter writer;
    writer.header_ = {rows, dim, generation, 0};
    writer.path_ = path;
    writer.fd_ = std::move(file);
    if (Status marked = mark_model_file(writer.fd_.get(), kPlanesMagic, path); !marked)
        return marked.error();
    // Sets the full size first: the padding of the last page reads as zeros.
    if (::ftruncate(writer.fd_.get(), static_cast<off_t>(writer.header_.file_bytes())) != 0)
        return system_error(writer.path_, "cannot set the size", errno);
    return writer;
}

Status PlanesWriter::write_groups(std::uint64_t first, std::span<const std::byte> groups) const {
    const std::uint64_t offset = first * shape().group_bytes();
    assert(offset + groups.size() <= shape().bytes());
    return write_all_at(fd_.get(), groups, kHeaderBytes + offset, path_);
}

void PlanesWriter::hash_groups(std::span<const std::byte> groups) {
    checksum_.update(groups);
    hashed_ += groups.size();
}

Status PlanesWriter::finish() {
    assert(hashed_ == shape().bytes());
    header_.checksum = checksum_.value();
    if (Status written = write_all_at(fd_.get(), encode_planes_header(header_), 0, path_); !written)
        return written;
    return seal_model_file(fd_.get(), path_);
}

}  // namespace gloved::format
