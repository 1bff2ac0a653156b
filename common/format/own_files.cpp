#include "common/format/own_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/neighbors.hpp"
#include "common/format/planes.hpp"

namespace gloved::format {
namespace {

std::string_view text(std::span<const unsigned char> magic) {
    return {reinterpret_cast<const char*>(magic.data()), magic.size()};
}

const std::array<OwnFile, 8> kOwnFiles = {{
    {kSpoolFile, KnownBy::emptiness, {}},
    {kReportFile, KnownBy::beginning, kReportBeginning},
    {kNewNeighborsFile, KnownBy::beginning, text(kNeighborsMagic)},
    {kNeighborsFile, KnownBy::beginning, text(kNeighborsMagic)},
    {kNewPlanesFile, KnownBy::beginning, text(kPlanesMagic)},
    {kPlanesFile, KnownBy::beginning, text(kPlanesMagic)},
    {kKeysFile, KnownBy::values_there, {}},
    {kValuesFile, KnownBy::beginning, text(kMagic)},
}};
constexpr std::size_t kMaxBeginning = 64;

/// Opens any kind of file without following a link or blocking.
UniqueFd open_for_a_look(int directory_fd, const char* name) {
    return UniqueFd(
        ::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
}

enum class Content { none, empty, own, foreign };

/// The kind of a regular file by its beginning.
Result<Content> content_of(int fd, std::string_view beginning, const std::string& path) {
    const auto status = file_status(fd, path);
    if (!status) return status.error();
    if (!S_ISREG(status->st_mode)) return Content::foreign;
    if (status->st_size == 0) return Content::empty;
    if (static_cast<std::size_t>(status->st_size) < beginning.size()) return Content::foreign;
    std::array<char, kMaxBeginning> bytes{};
    assert(beginning.size() <= bytes.size());
    const std::span<char> read(bytes.data(), beginning.size());
    if (Status done = read_all_at(fd, std::as_writable_bytes(read), 0, path); !done)
        return done.error();
    return std::equal(read.begin(), read.end(), beginning.begin()) ? Content::own
                                                                   : Content::foreign;
}

const OwnFile* find_own_file(std::string_view name) {
    const auto* const found =
        std::ranges::find_if(kOwnFiles, [&](const OwnFile& file) { return name == file.name; });
    return found == kOwnFiles.end() ? nullptr : found;
}

/// The kind of the file `name`; none if there is no such file.
Result<Content> content_of_file(int directory_fd, const char* name, std::string_view beginning,
                                const std::string& path) {
    const UniqueFd fd = open_for_a_look(directory_fd, name);
    if (fd) return content_of(fd.get(), beginning, path);
    if (errno == ENOENT) return Content::none;
    if (errno == ELOOP || errno == ENXIO) return Content::foreign;  // a link; a socket
    return system_error(path, "cannot open", errno);
}

Result<bool> is_own(int directory_fd, const OwnFile& file, const std::string& path) {
    const auto content = content_of_file(directory_fd, file.name, file.beginning, path);
    if (!content) return content.error();
    if (*content != Content::own) return *content != Content::foreign;
    switch (file.known_by) {
        case KnownBy::beginning:
            return true;
        case KnownBy::values_there:
            return is_model(directory_fd);
        case KnownBy::emptiness:
            break;
    }
    return false;
}

}  // namespace

std::span<const OwnFile> own_files() { return kOwnFiles; }

bool is_model(int directory_fd) {
    const UniqueFd fd = open_for_a_look(directory_fd, kValuesFile);
    if (!fd) return false;
    const auto content = content_of(fd.get(), text(kMagic), kValuesFile);
    return content && *content == Content::own;
}

Result<bool> is_own_file(int directory_fd, std::string_view name, const std::string& path) {
    const OwnFile* const file = find_own_file(name);
    if (file == nullptr) return false;
    return is_own(directory_fd, *file, path);
}

Result<bool> begins_with(int directory_fd, const std::string& name, const std::string& path,
                         std::span<const unsigned char> magic) {
    const auto content = content_of_file(directory_fd, name.c_str(), text(magic), path);
    if (!content) return content.error();
    return *content != Content::foreign;
}

Result<std::optional<std::string>> find_foreign_entry(int directory_fd, const std::string& path) {
    const auto names = list_directory(directory_fd, path);
    if (!names) return names.error();
    for (const std::string& name : *names) {
        const auto own = is_own_file(directory_fd, name, fmt::format("{}/{}", path, name));
        if (!own) return own.error();
        if (!*own) return std::optional(name);
    }
    return std::optional<std::string>();
}

Status remove_own_directory(int parent_fd, const std::string& name, const std::string& path,
                            Look look) {
    const UniqueFd directory(
        ::openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    // Another process may be sweeping it.
    if (!directory && errno == ENOENT) return {};
    if (!directory) return system_error(path, "cannot open for removal", errno);
    for (const OwnFile& file : kOwnFiles) {
        if (look == Look::at_contents) {
            const auto own = is_own(directory.get(), file, path);
            if (!own) return own.error();
            if (!*own) {
                return conflict("{}: holds \"{}\", which gloved did not make, and stays", path,
                                file.name);
            }
        }
        if (::unlinkat(directory.get(), file.name, 0) != 0 && errno != ENOENT) {
            return system_error(path, fmt::format("cannot remove '{}' in it", file.name), errno);
        }
    }
    if (::unlinkat(parent_fd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        return system_error(path, "cannot remove", errno);
    return {};
}

Result<std::vector<std::string>> list_directory(int fd, const std::string& path) {
    // A second open, because fdopendir takes over the descriptor and moves its position.
    UniqueFd own(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!own) return system_error(path, "cannot list", errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(own.get()), ::closedir);
    if (!directory) return system_error(path, "cannot list", errno);
    own.release();
    std::vector<std::string> names;
    for (;;) {
        errno = 0;  // the only way to tell an error from the end
        const dirent* entry = ::readdir(directory.get());
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return system_error(path, "cannot list", errno);
    return names;
}

}  // namespace gloved::format
