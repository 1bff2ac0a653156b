#include "tools/neighbors/parts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/own_files.hpp"
#include "common/output_file.hpp"

namespace gloved::neighbors {
namespace {

using format::RowRange;

constexpr mode_t kDirectoryMode = 0777;  // and the umask

/// What the names of a model's parts of one k have in common.
std::string common_name(const format::Model& model, std::size_t k) {
    return fmt::format("neighbors-{}-k{}-", format::hex(model.generation()), k);
}

/// The parts' directory: `directory`, or that beside the model.
std::string directory_of(const format::Model& model, const std::string& directory) {
    std::string path = directory.empty() ? model.path() : directory;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return directory.empty() ? path + ".neighbors-parts" : path;
}

}  // namespace

Result<Parts> Parts::open(const format::Model& model, std::size_t k, std::size_t part_rows,
                          const std::string& directory, Access access) {
    Parts parts(model, k, part_rows);
    parts.has_default_name_ = directory.empty();
    parts.path_ = directory_of(model, directory);
    for (;;) {
        if (access != Access::shared_existing &&
            ::mkdir(parts.path_.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
            return system_error(parts.path_, "cannot create the directory of the parts", errno);
        auto opened = open_directory(parts.path_);
        if (!opened) return opened.error();
        parts.directory_ = *std::move(opened);
        const int how = access == Access::alone ? LOCK_EX : LOCK_SH;
        if (::flock(parts.directory_.get(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            return error_with(ErrorCode::conflict,
                              "{}: another gloved-neighbors works there (lsof tells which); wait "
                              "for it, or choose another directory with --parts",
                              parts.path_);
        }
        // Whoever had the lock before may have removed the directory.
        struct stat ours {};
        struct stat named {};
        if (::fstat(parts.directory_.get(), &ours) == 0 &&
            ::stat(parts.path_.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
            ours.st_ino == named.st_ino) {
            return parts;
        }
    }
}

RowRange Parts::range(std::size_t number) const {
    return {number * part_rows_, std::min((number + 1) * part_rows_, model_->rows())};
}

std::string Parts::name_of(std::size_t number) const {
    const RowRange rows = range(number);
    return fmt::format("{}{}-{}", common_name(*model_, k_), rows.first, rows.last);
}

std::string Parts::path_of(std::size_t number) const { return path_ + "/" + name_of(number); }

Result<std::optional<format::Neighbors>> Parts::read(std::size_t number) const {
    const std::string name = name_of(number);
    const std::string path = path_of(number);
    struct stat status {};
    if (::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return std::optional<format::Neighbors>();
        return system_error(path, "cannot stat", errno);
    }
    auto part = format::Neighbors::open_part(directory_.get(), name.c_str(), path, *model_);
    if (!part) return part.error();
    if (part->range() != range(number) || part->k() != k_) {
        return error_with(ErrorCode::mismatch,
                          "{}: holds {} neighbours of rows {} to {}, which is another part's "
                          "content; remove it",
                          path, part->k(), part->range().first, part->range().last - 1);
    }
    if (Status sound = part->verify(); !sound) return sound.error();
    return std::optional(*std::move(part));
}

Status Parts::check_ours(std::size_t number) const {
    const auto ours = is_ours(name_of(number));
    if (!ours) return ours.error();
    if (*ours) return {};
    return error_with(ErrorCode::conflict,
                      "{}: gloved did not make this file, so it is left alone; move or remove it",
                      path_of(number));
}

Status Parts::write(std::size_t number, std::span<const format::Row> lists,
                    const std::atomic<bool>& stop) const {
    if (Status ours = check_ours(number); !ours) return ours;
    const format::NeighborsHeader header{
        model_->rows(),       static_cast<std::uint32_t>(model_->dim()),
        model_->generation(), static_cast<std::uint32_t>(k_),
        range(number),        format::checksum(std::as_bytes(lists))};
    const auto head = format::encode_neighbors_header(header);
    std::string content(header.file_bytes(), '\0');
    std::memcpy(content.data(), head.data(), head.size());
    std::memcpy(content.data() + head.size(), lists.data(), lists.size_bytes());
    auto output = OutputFile::create(path_of(number), stop);
    if (!output) return output.error();
    if (Status written = output->write(content); !written) return written;
    if (Status synced = output->sync(); !synced) return synced;
    return output->publish();
}

Result<bool> Parts::is_ours(const std::string& name) const {
    return format::begins_with(directory_.get(), name, path_ + "/" + name, format::kNeighborsMagic);
}

void Parts::remove() const {
    const auto names = format::list_directory(directory_.get(), path_);
    if (!names) return;
    const std::string common = common_name(*model_, k_);
    for (const std::string& name : *names) {
        // A killed process leaves .NAME.gloved-PID-N (OutputFile).
        if (!name.starts_with(common) && !name.starts_with("." + common)) continue;
        const auto ours = is_ours(name);
        if (ours && *ours) (void)::unlinkat(directory_.get(), name.c_str(), 0);
    }
    if (has_default_name_) (void)::rmdir(path_.c_str());
}

void Parts::sweep(const format::Model& model, std::size_t k, std::size_t part_rows,
                  const std::string& directory) {
    if (::access(directory_of(model, directory).c_str(), F_OK) != 0) return;
    const auto parts = open(model, k, part_rows, directory, Access::alone);
    if (parts) parts->remove();
}

}  // namespace gloved::neighbors
