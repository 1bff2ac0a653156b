#include "tools/convert/zip_member.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/quoting.hpp"

namespace gloved::convert {
namespace {

constexpr std::size_t kListedMembers = 20;

/// A fault that libzip reports; `what` is the sentence for it when it is the archive's, not the system's.
Error zip_fault(const std::string& path, zip_error_t* error, const std::string& what) {
    const bool of_system = ::zip_error_system_type(error) == ZIP_ET_SYS && ::zip_error_code_system(error) != 0;
    if (of_system) return system_error(path, "cannot read the zip archive", ::zip_error_code_system(error));
    return {ErrorCode::bad_source,
            fmt::format("{}: {} ({}); fetch the download again", path, what, ::zip_error_strerror(error))};
}

struct Member {
    zip_uint64_t index;
    std::string name;
    zip_stat_t status;
};

/// The files of an archive, without directories and without the companions that macOS adds to each.
Result<std::vector<Member>> files_of(zip_t* archive, const std::string& path) {
    std::vector<Member> files;
    const zip_int64_t entries = ::zip_get_num_entries(archive, 0);
    for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(entries); ++i) {
        Member member{i, {}, {}};
        if (::zip_stat_index(archive, i, ZIP_FL_ENC_RAW, &member.status) != 0) {
            return zip_fault(path, ::zip_get_error(archive), "the zip archive's directory is damaged");
        }
        if (member.status.name != nullptr) member.name = member.status.name;
        if (member.name.ends_with('/') || member.name.starts_with("__MACOSX/")) continue;
        files.push_back(std::move(member));
    }
    return files;
}

/// «"a.txt" (12 bytes), "b.txt" (7 bytes)», and how many more there are.
std::string list_of(const std::vector<Member>& files) {
    std::string list;
    for (std::size_t i = 0; i < std::min(files.size(), kListedMembers); ++i) {
        list += fmt::format("{}{} ({} bytes)", i == 0 ? "" : ", ", printable(files[i].name, 255), files[i].status.size);
    }
    if (files.size() > kListedMembers) list += fmt::format(", and {} more", files.size() - kListedMembers);
    return list;
}

Result<const Member*> choose(const std::vector<Member>& files, const std::string& path, const std::string& wanted) {
    const auto bad_source = [&](const std::string& what) {
        return Error{ErrorCode::bad_source, fmt::format("{}: {}", path, what)};
    };
    if (files.empty()) return bad_source("the zip archive holds no files; fetch the download again");
    if (wanted.empty()) {
        if (files.size() == 1) return &files.front();
        return bad_source(fmt::format("the zip archive holds {} files; --member NAME takes one of them: {}",
                                      files.size(), list_of(files)));
    }
    const auto found =
        std::find_if(files.begin(), files.end(), [&](const Member& member) { return member.name == wanted; });
    if (found != files.end()) return &*found;
    return bad_source(
        fmt::format("the zip archive holds no member {}; it holds {}", printable(wanted, 255), list_of(files)));
}

/// Why a member cannot be read here, although it is whole.
std::optional<std::string> obstacle(const zip_stat_t& status) {
    if (status.encryption_method != ZIP_EM_NONE) {
        return "is encrypted; unpack it with its password first: unzip -p FILE MEMBER | gloved-convert - MODEL_DIR";
    }
    if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE) {
        return fmt::format(
            "is packed by method {}, and only stored and deflated ones are taken; unpack it first: "
            "7z e -so FILE MEMBER | gloved-convert - MODEL_DIR",
            status.comp_method);
    }
    return std::nullopt;
}

}  // namespace

void ZipMember::Discard::operator()(zip* archive) const { ::zip_discard(archive); }
void ZipMember::Close::operator()(zip_file* file) const { ::zip_fclose(file); }

Result<ZipMember> ZipMember::open(int fd, const std::string& path, const std::string& member) {
    // libzip closes what it is given.
    UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own) return system_error(path, "cannot open the zip archive", errno);
    ZipMember opened;
    opened.path_ = path;
    int code = 0;
    opened.archive_.reset(::zip_fdopen(own.get(), 0, &code));
    if (opened.archive_ == nullptr) {
        zip_error_t error;
        ::zip_error_init_with_code(&error, code);
        const Error fault = zip_fault(path, &error,
                                      "this begins like a zip archive, but its directory, which stands at its end, is "
                                      "missing or damaged: the download is not complete");
        ::zip_error_fini(&error);
        return fault;
    }
    (void)own.release();

    auto files = files_of(opened.archive_.get(), path);
    if (!files) return files.error();
    const auto chosen = choose(*files, path, member);
    if (!chosen) return chosen.error();
    const auto& [index, name, status] = **chosen;
    if (const auto refusal = obstacle(status)) {
        return Error{ErrorCode::bad_source, fmt::format("{}: the member {} {}", path, printable(name, 255), *refusal)};
    }
    opened.name_ = name;
    opened.packed_bytes_ = status.comp_size;
    opened.text_bytes_ = status.size;
    opened.crc32_ = status.crc;
    opened.file_.reset(::zip_fopen_index(opened.archive_.get(), index, 0));
    if (opened.file_ == nullptr) {
        return zip_fault(path, ::zip_get_error(opened.archive_.get()),
                         fmt::format("the member {} of the zip archive is damaged", printable(name, 255)));
    }
    return opened;
}

Result<std::size_t> ZipMember::read(std::span<char> buffer) {
    const zip_int64_t got = ::zip_fread(file_.get(), buffer.data(), buffer.size());
    if (got < 0) {
        return zip_fault(path_, ::zip_file_get_error(file_.get()),
                         fmt::format("the member {} of the zip archive is damaged or cut, found at byte {} of its text",
                                     printable(name_, 255), position_));
    }
    position_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
}

std::uint64_t ZipMember::packed_position() const {
    if (position_ >= text_bytes_) return packed_bytes_;
    return static_cast<std::uint64_t>(static_cast<double>(packed_bytes_) * static_cast<double>(position_) /
                                      static_cast<double>(text_bytes_));
}

}  // namespace gloved::convert
