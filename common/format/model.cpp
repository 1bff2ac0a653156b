#include "common/format/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/quoting.hpp"

namespace gloved::format {
namespace {

Error with_path(const std::string& path, Error error) {
    error.message = path + ": " + error.message;
    return error;
}

}  // namespace

Result<Model> Model::open(const std::string& path) {
    auto directory = open_directory(path);
    if (!directory) return directory.error();
    const std::string values_path = path + "/" + kValuesFile;
    const std::string keys_path = path + "/" + kKeysFile;

    Model model;
    model.path_ = path;

    auto values_fd = open_file_at(directory->get(), kValuesFile, values_path);
    if (!values_fd) return values_fd.error();
    auto values_status = file_status(values_fd->get(), values_path);
    if (!values_status) return values_status.error();
    const auto values_size = static_cast<std::uint64_t>(values_status->st_size);
    if (values_size < kHeaderBytes) {
        return Error{ErrorCode::damaged, fmt::format("{}: {} bytes are too few for a header of {}; convert the download again",
                                                     values_path, values_size, kHeaderBytes)};
    }
    auto values = MappedFile::map(values_fd->get(), values_size, values_path);
    if (!values) return values.error();
    model.values_ = *std::move(values);

    auto header = decode_header(model.values_.bytes());
    if (!header) return with_path(values_path, header.error());
    model.header_ = *std::move(header);
    if (model.header_.file_bytes != values_size) {
        return Error{ErrorCode::damaged,
                     fmt::format("{}: the file has {} bytes, its header says {} (truncated or appended to); convert the "
                                 "download again",
                                 values_path, values_size, model.header_.file_bytes)};
    }
    model.norms_ = model.header_.find(kNorms);
    model.vectors_ = model.header_.find(kVectors);
    model.ranks_ = model.header_.find(kRanks);

    auto keys_fd = open_file_at(directory->get(), kKeysFile, keys_path);
    if (!keys_fd) return keys_fd.error();
    auto keys_status = file_status(keys_fd->get(), keys_path);
    if (!keys_status) return keys_status.error();
    const auto keys_size = static_cast<std::uint64_t>(keys_status->st_size);
    if (keys_size != model.header_.keys_bytes) {
        return Error{ErrorCode::mismatch,
                     fmt::format("{}: {} bytes, but {} belongs to a keys file of {} bytes: keys and values are not of one "
                                 "model",
                                 keys_path, keys_size, values_path, model.header_.keys_bytes)};
    }
    auto keys = MappedFile::map(keys_fd->get(), keys_size, keys_path);
    if (!keys) return keys.error();
    model.keys_ = *std::move(keys);

    const auto computed = checksum(model.keys_.bytes());
    if (computed != model.header_.keys_checksum) {
        return Error{ErrorCode::mismatch,
                     fmt::format("{}: checksum {}, but {} belongs to keys of checksum {}: the file is damaged or of "
                                 "another model",
                                 keys_path, hex(computed), values_path, hex(model.header_.keys_checksum))};
    }
    if (Status indexed = model.index_keys(); !indexed) return with_path(keys_path, indexed.error());
    return model;
}

Status Model::index_keys() {
    const std::string_view text = keys_.text();
    const std::size_t rows = this->rows();
    // A key and its LF take two bytes at least: this bounds the allocation by the file's true size.
    if (text.size() / 2 < rows) {
        return Error{ErrorCode::damaged, fmt::format("{} bytes cannot hold {} words", text.size(), rows)};
    }
    starts_.clear();
    starts_.reserve(rows + 1);
    starts_.push_back(0);
    std::string_view previous;
    for (std::size_t at = 0; at < text.size();) {
        const auto* end = static_cast<const char*>(std::memchr(text.data() + at, '\n', text.size() - at));
        if (end == nullptr) return Error{ErrorCode::damaged, "the last line has no LF"};
        const std::string_view key(text.data() + at, static_cast<std::size_t>(end - (text.data() + at)));
        const std::size_t row = starts_.size() - 1;
        if (row == rows) return Error{ErrorCode::damaged, fmt::format("more than the header's {} lines", rows)};
        // An empty first line equals the empty `previous`, so this finds empty keys too.
        if (!(previous < key)) {
            return Error{ErrorCode::damaged,
                         fmt::format("line {}: {} does not sort after {}", row + 1, printable(key), printable(previous))};
        }
        previous = key;
        at += key.size() + 1;
        starts_.push_back(at);
    }
    if (starts_.size() != rows + 1) {
        return Error{ErrorCode::damaged, fmt::format("{} lines, the header says {}", starts_.size() - 1, rows)};
    }
    return {};
}

std::optional<Row> Model::find(std::string_view word) const {
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
    const auto computed = checksum(section_bytes(section));
    if (computed != section.checksum) {
        return Error{ErrorCode::damaged, fmt::format("{}/{}: section '{}' has checksum {}, its bytes give {}", path_,
                                                     kValuesFile, section.name, hex(section.checksum), hex(computed))};
    }
    return {};
}

}  // namespace gloved::format
