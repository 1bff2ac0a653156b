#include "common/format/publish.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>

#include "common/access.hpp"
#include "common/error_with.hpp"
#include "common/format/layout.hpp"
#include "common/format/own_files.hpp"
#include "common/format/publish_target.hpp"

namespace gloved::format {
namespace {

/// Names tried before giving up.
constexpr int kMaxAttempts = 100;

std::string stray_prefix(const std::string& target_name) { return "." + target_name + ".gloved-"; }

/// Locks a descriptor's file unless another process holds the lock; −1 and errno otherwise.
int lock_now(int fd) {
    int result = 0;
    do {
        result = ::flock(fd, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    return result;
}

/// Whether `name` in the directory is the file that `fd` has open. If not, errno is 0, unless the
/// system refused to say.
bool is_named(int directory, const char* name, int fd) {
    struct stat open {};
    struct stat named {};
    if (::fstat(fd, &open) != 0) return false;
    if (::fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) errno = 0;
        return false;
    }
    errno = 0;
    return open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Suffix that publish() appends to a staging directory's name «.NAME.gloved-PID-N» for an old
/// model moved aside.
constexpr std::string_view kAsideSuffix = "-0";
/// Maximum length added to a target's name: the affixes, two numbers of ten digits, and the suffix.
constexpr std::size_t kMaxAround = 1 + 8 + 10 + 1 + 10 + kAsideSuffix.size();
constexpr std::size_t kMaxTargetName = NAME_MAX - kMaxAround;

/// Whether `name` is that of an old model moved aside: three numbers after the prefix, not two.
bool is_aside(std::string_view name, std::size_t prefix_length) {
    return std::count(name.begin() + static_cast<std::ptrdiff_t>(prefix_length), name.end(), '-') ==
           2;
}

/// Whether another process is making a model in directory `name`.
bool is_being_made(int parent, const std::string& name) {
    const UniqueFd made = open_directory_at(parent, name);
    return made ? lock_now(made.get()) != 0 : errno != ENOENT;
}

/// Restores the name of an old model that was moved aside if its process died before the new one
/// had the name: it is the only model left. Returns whether the old model is obsolete, because
/// there is a new one.
bool give_name_back(int parent, const std::string& aside, const std::string& target_name) {
    if (is_being_made(parent, aside.substr(0, aside.size() - kAsideSuffix.size()))) return false;
    const UniqueFd old = open_directory_at(parent, aside);
    if (!old) return false;
    // Somebody else may have put it there, to have a model of that name.
    const auto around = file_status(parent, aside);
    const auto status = file_status(old.get(), aside);
    if (!around || !status || !check_replaceable(*around, *status, aside)) return false;
    if (!is_model(old.get())) return true;
    // Fails if the name is taken by a directory that is not empty.
    return ::renameat(parent, aside.c_str(), parent, target_name.c_str()) != 0 &&
           (errno == EEXIST || errno == ENOTEMPTY);
}

/// Removes the target's strays: entries with their name, gloved's by content, locked by nobody.
Status sweep_strays(int parent, const std::string& parent_path, const std::string& target_name) {
    const auto names = list_directory(parent, parent_path);
    if (!names) return names.error();
    const std::string prefix = stray_prefix(target_name);
    for (const std::string& name : *names) {
        if (name.rfind(prefix, 0) != 0) continue;
        if (name.find_first_not_of("0123456789-", prefix.size()) != std::string::npos) continue;
        const bool aside = is_aside(name, prefix.size());
        if (aside && !give_name_back(parent, name, target_name)) continue;
        const UniqueFd stray = open_directory_at(parent, name);
        // An old model is not locked: anyone who may read it could hold that lock.
        if (!stray || (!aside && lock_now(stray.get()) != 0)) continue;
        const std::string path = fmt::format("{}/{}", parent_path, name);
        const auto foreign = find_foreign_entry(stray.get(), path);
        if (!foreign || *foreign) continue;
        // What cannot be removed (another user's, say) stays; it is harmless.
        (void)remove_own_directory(parent, name, path, Look::at_contents);
    }
    return {};
}

/// Opens a file of a model; no descriptor if there is none.
Result<UniqueFd> open_if_there(int directory, const char* name, const std::string& path) {
    UniqueFd fd(::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno != ENOENT) return system_error(path, "cannot open", errno);
    return fd;
}

/// Copies the access of the old model's file of that name, or else of its values, to a new file.
/// Nobody may write it.
Status keep_file_access(int old_directory, const char* name, int made, const std::string& path) {
    for (const char* like : {name, kValuesFile}) {
        const auto old = open_if_there(old_directory, like, path);
        if (!old) return old.error();
        if (*old) return keep_access(old->get(), made, 0777 & ~mode_t{0222}, path);
    }
    return {};
}

/// Calls `warn`. Out of memory is ignored: what has been done stays done.
void call_warn(const std::function<void(const std::string&)>& warn, const std::string& message,
               const char* more = "") {
    try {
        warn(message + more);
    } catch (const std::bad_alloc&) {
    }
}

/// Refuses a file that gloved did not make.
Status check_own(int directory, const char* name, const std::string& path) {
    const std::string file = path + "/" + name;
    const auto own = is_own_file(directory, name, file);
    if (!own) return own.error();
    if (*own) return {};
    return conflict("{}: gloved did not make this file, so it is left alone; move or remove it",
                    file);
}

Error being_made(const AddedFile& added, const std::string& path) {
    return conflict("{}: another {} makes {} there (lsof tells which)", path, added.maker,
                    added.name);
}

/// Removes an abandoned new file. Refuses (conflict) one that is in use or not gloved's.
Status remove_stale(int directory, const AddedFile& added, const std::string& path) {
    const std::string file = path + "/" + added.new_name;
    struct stat status {};
    if (::fstatat(directory, added.new_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return {};
        return system_error(file, "cannot stat", errno);
    }
    if (Status checked = check_own(directory, added.new_name, path); !checked) return checked;
    // A finished one is read-only and renamed at once: this one's maker is dead. Its lock proves
    // nothing, since anyone can open it.
    const bool finished = (status.st_mode & 0222) == 0;
    UniqueFd fd;
    if (!finished) {
        fd = UniqueFd(
            ::openat(directory, added.new_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (!fd && errno == ENOENT) return {};
        if (!fd)
            return system_error(file, "cannot open what another user has begun or left", errno);
        if (lock_now(fd.get()) != 0) {
            if (errno == EWOULDBLOCK) return being_made(added, path);
            return system_error(file, "cannot lock", errno);
        }
        if (!is_named(directory, added.new_name, fd.get())) {
            if (errno != 0) return system_error(file, "cannot stat", errno);
            return {};
        }
    }
    if (::unlinkat(directory, added.new_name, 0) != 0 && errno != ENOENT) {
        return system_error(file, "cannot remove", errno);
    }
    return {};
}

}  // namespace

Result<Staging> Staging::open_parent(const std::string& target) {
    std::string trimmed = target;
    while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
    const std::size_t slash = trimmed.rfind('/');
    Staging staging;
    staging.target_ = trimmed;
    staging.parent_path_ = slash == std::string::npos ? "."
                           : slash == 0               ? "/"
                                                      : trimmed.substr(0, slash);
    staging.target_name_ = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
    if (staging.target_name_.empty() || staging.target_name_ == "." ||
        staging.target_name_ == "..") {
        return conflict("'{}': a model directory needs a name of its own, such as models/glove",
                        target);
    }
    if (staging.target_name_.size() > kMaxTargetName) {
        return conflict("{}: the last part of this name has {} bytes, and a model's has {} at most",
                        target, staging.target_name_.size(), kMaxTargetName);
    }
    auto parent = open_directory(staging.parent_path_);
    if (!parent) return parent.error();
    staging.parent_ = *std::move(parent);
    if (Status checked = check_target(staging.parent_.get(), staging.target_name_, trimmed);
        !checked) {
        return checked.error();
    }

    if (::faccessat(staging.parent_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
        return system_error(staging.parent_path_, "cannot create a directory in it", errno);
    }
    return staging;
}

Status Staging::check(const std::string& target) {
    const auto place = open_parent(target);
    return place ? Status() : Status(place.error());
}

Result<Staging> Staging::create(const std::string& target) {
    auto place = open_parent(target);
    if (!place) return place.error();
    Staging staging = *std::move(place);
    if (Status swept =
            sweep_strays(staging.parent_.get(), staging.parent_path_, staging.target_name_);
        !swept) {
        return swept.error();
    }
    const auto around = file_status(staging.parent_.get(), staging.parent_path_);
    if (!around) return around.error();
    for (int attempt = 0; attempt <= kMaxAttempts; ++attempt) {
        // Makes all names before the directory: if memory runs out here, no directory is left
        // behind.
        staging.name_ =
            fmt::format("{}{}-{}", stray_prefix(staging.target_name_), ::getpid(), attempt);
        staging.aside_ = staging.name_;
        staging.aside_ += kAsideSuffix;
        staging.path_ = staging.parent_path_ + "/" + staging.name_;
        if (::mkdirat(staging.parent_.get(), staging.name_.c_str(), 0700) != 0) {
            if (errno == EEXIST) continue;
            return system_error(staging.parent_path_, "cannot create a directory in it", errno);
        }
        UniqueFd made = open_directory_at(staging.parent_.get(), staging.name_);
        // Another process may sweep it as a stray before it is locked.
        if (!made && errno == ENOENT) continue;
        const int parent = staging.parent_.get();
        const char* const name = staging.name_.c_str();
        const char* const failed = !made                                 ? "cannot open"
                                   : lock_now(made.get()) != 0           ? "cannot lock"
                                   : !is_named(parent, name, made.get()) ? "cannot stat"
                                                                         : nullptr;
        if (failed != nullptr) {
            const int reason = errno;
            if (reason == EWOULDBLOCK || reason == 0) continue;
            (void)::unlinkat(parent, name, AT_REMOVEDIR);
            return system_error(staging.path_, failed, reason);
        }
        staging.directory_ = std::move(made);
        if (::fchmod(staging.directory_.get(), unfinished_directory_mode(*around)) != 0) {
            return system_error(staging.path_, "cannot set the mode", errno);
        }
        return staging;
    }
    return conflict("{}: directories of the names {}{}-… are there already; remove them",
                    staging.parent_path_, stray_prefix(staging.target_name_), ::getpid());
}

Staging::~Staging() {
    if (!directory_ || name_.empty()) return;
    (void)remove_own_directory(parent_.get(), name_, path_, Look::at_names);
}

bool Staging::rename_in_parent(const std::string& from, const std::string& to, unsigned flags) {
    const int parent = parent_.get();
    // Not every filesystem knows renameat2.
    return (flags == 0 ? ::renameat(parent, from.c_str(), parent, to.c_str())
                       : ::renameat2(parent, from.c_str(), parent, to.c_str(), flags)) == 0;
}

bool Staging::put_new_where_nothing_is() {
    return rename_in_parent(name_, target_name_, RENAME_NOREPLACE);
}

bool Staging::exchange() { return rename_in_parent(name_, target_name_, RENAME_EXCHANGE); }

bool Staging::move_old_aside() { return rename_in_parent(target_name_, aside_, 0); }

bool Staging::put_new() { return rename_in_parent(name_, target_name_, 0); }

bool Staging::take_new_back() { return rename_in_parent(target_name_, name_, 0); }

bool Staging::move_old_back() { return rename_in_parent(aside_, target_name_, 0); }

bool Staging::undo(Replaced replaced) {
    // Another process may have published since. Its model is not ours to move.
    if (!is_named(parent_.get(), target_name_.c_str(), directory_.get())) return false;
    switch (replaced) {
        case Replaced::by_exchange:
            return exchange();
        case Replaced::by_moving_aside:
            return take_new_back() && move_old_back();
        case Replaced::nothing:
            break;
    }
    return take_new_back();
}

Status Staging::set_final_access() {
    const auto around = file_status(parent_.get(), parent_path_);
    if (!around) return around.error();
    const UniqueFd old = open_directory_at(parent_.get(), target_name_);
    if (!old) {
        if (errno != ENOENT) return system_error(target_, "cannot open the directory", errno);
        if (::fchmod(directory_.get(), model_directory_mode(*around)) != 0) {
            return system_error(path_, "cannot set the mode", errno);
        }
        return {};
    }
    // Checked again: another user may have made it since.
    const auto status = file_status(old.get(), target_);
    if (!status) return status.error();
    if (Status replaceable = check_replaceable(*around, *status, target_); !replaceable)
        return replaceable;
    for (const OwnFile& file : own_files()) {
        const std::string path = path_ + "/" + file.name;
        const auto made = open_if_there(directory_.get(), file.name, path);
        if (!made) return made.error();
        if (!*made) continue;
        if (Status kept = keep_file_access(old.get(), file.name, made->get(), path); !kept)
            return kept;
        if (Status synced = sync_to_disk(made->get(), path); !synced) return synced;
    }
    return keep_access(old.get(), directory_.get(), 07777, path_);
}

Result<Staging::Replaced> Staging::take_target_name(
    const std::function<void(const std::string&)>& warn) {
    if (put_new_where_nothing_is()) return Replaced::nothing;
    if (errno != EEXIST && errno != EINVAL && errno != ENOSYS)
        return system_error(target_, "cannot publish", errno);
    if (exchange()) return Replaced::by_exchange;
    if (errno == EXDEV) {
        return conflict(
            "{}: lies in a lower layer of an overlay file system, which cannot "
            "exchange it; choose another name, or remove it first",
            target_);
    }
    if (errno != EINVAL && errno != ENOSYS && errno != ENOENT)
        return system_error(target_, "cannot exchange with the old model", errno);
    return take_target_name_by_moving_aside(warn);
}

Result<Staging::Replaced> Staging::take_target_name_by_moving_aside(
    const std::function<void(const std::string&)>& warn) {
    // A sweep between the two renames spares the old model: the new one is still locked. The
    // warning is made first, so that running out of memory cannot come between them.
    const std::string warning = fmt::format(
        "{}: this filesystem cannot exchange directories; the old model was moved aside first, so "
        "the name was missing for a moment",
        target_);
    const bool is_aside = move_old_aside();
    if (!is_aside && errno != ENOENT)
        return system_error(target_, "cannot move the old model aside", errno);
    if (!put_new()) {
        const int reason = errno;
        if (is_aside) (void)move_old_back();
        return system_error(target_, "cannot publish", reason);
    }
    if (!is_aside) return Replaced::nothing;
    call_warn(warn, warning);
    return Replaced::by_moving_aside;
}

void Staging::remove_old(const std::string& old, const std::string& path,
                         const std::function<void(const std::string&)>& warn) {
    try {
        const Status removed = remove_own_directory(parent_.get(), old, path, Look::at_contents);
        if (removed) return;
        call_warn(warn, removed.error().message, "; the next conversion to this name sweeps it");
    } catch (const std::bad_alloc&) {
        call_warn(warn, path, ": memory ran out; the next conversion to this name sweeps it");
    }
}

Status Staging::publish(const std::function<void(const std::string&)>& warn) {
    const int parent = parent_.get();
    // Checked again: the first check may be hours ago.
    if (Status checked = check_target(parent, target_name_, target_); !checked) return checked;
    if (Status settled = set_final_access(); !settled) return settled;
    if (Status synced = sync_to_disk(directory_.get(), path_); !synced) return synced;
    // All strings are there before the first rename, so that running out of memory cannot interrupt
    // the renames. The old model is called `old` once the new one has its name.
    std::string old = aside_;
    std::string old_path = path_;
    old_path += kAsideSuffix;
    const auto taken = take_target_name(warn);
    if (!taken) return taken.error();
    const Replaced replaced = *taken;
    if (replaced == Replaced::by_exchange) {
        old.resize(name_.size());
        old_path.resize(path_.size());
    }
    // After an error the old model gets its name back. If that fails, both stay, and the next run
    // sweeps the one without the name.
    const auto give_back = [&] {
        if (!undo(replaced)) name_.clear();
    };
    Status settled;
    try {
        // What was put there since the last check must not be removed.
        if (replaced != Replaced::nothing) settled = check_old(parent, old, old_path, target_);
        // Without this sync a power cut could undo the rename after the program reported success.
        // The old model is removed only afterwards: until then a power cut may bring its name back.
        // After a failed one nobody knows what a power cut would leave.
        if (settled) settled = sync_to_disk(parent, parent_path_);
    } catch (const std::bad_alloc&) {
        give_back();
        throw;
    }
    if (!settled) {
        give_back();
        return settled;
    }
    name_.clear();
    if (replaced != Replaced::nothing) remove_old(old, old_path, warn);
    return {};
}

Result<AddedFileStaging> AddedFileStaging::create(const std::string& model_dir,
                                                  const AddedFile& added) {
    auto directory = open_directory(model_dir);
    if (!directory) return directory.error();
    AddedFileStaging staging(added);
    staging.directory_ = *std::move(directory);
    staging.path_ = model_dir;
    while (staging.path_.size() > 1 && staging.path_.back() == '/') staging.path_.pop_back();
    staging.new_path_ = staging.path_ + "/" + added.new_name;
    const int parent = staging.directory_.get();
    const auto around = file_status(parent, staging.path_);
    if (!around) return around.error();
    if (Status checked = check_own(parent, added.name, staging.path_); !checked)
        return checked.error();
    struct stat old {};
    if (::fstatat(parent, added.name, &old, AT_SYMLINK_NOFOLLOW) == 0) {
        const std::string path = staging.path_ + "/" + added.name;
        if (Status replaceable = check_replaceable(*around, old, path); !replaceable)
            return replaceable.error();
    }
    for (int attempt = 0; attempt <= kMaxAttempts; ++attempt) {
        UniqueFd file(
            ::openat(parent, added.new_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!file) {
            if (errno != EEXIST) return system_error(staging.new_path_, "cannot create", errno);
            if (Status removed = remove_stale(parent, added, staging.path_); !removed)
                return removed.error();
            continue;
        }
        // Another process may have removed it as abandoned before it was locked.
        const char* const failed = lock_now(file.get()) != 0                       ? "cannot lock"
                                   : !is_named(parent, added.new_name, file.get()) ? "cannot stat"
                                                                                   : nullptr;
        if (failed != nullptr) {
            const int reason = errno;
            if (reason == EWOULDBLOCK || reason == 0) continue;
            (void)::unlinkat(parent, added.new_name, 0);
            return system_error(staging.new_path_, failed, reason);
        }
        staging.file_ = std::move(file);
        if (::fchmod(staging.file_.get(), unfinished_file_mode(*around)) != 0) {
            return system_error(staging.new_path_, "cannot set the mode", errno);
        }
        return staging;
    }
    return being_made(added, staging.path_);
}

AddedFileStaging::~AddedFileStaging() {
    if (file_ && is_still_ours()) (void)::unlinkat(directory_.get(), added_.new_name, 0);
}

bool AddedFileStaging::is_still_ours() const {
    return is_named(directory_.get(), added_.new_name, file_.get());
}

Result<UniqueFd> AddedFileStaging::file() const {
    UniqueFd copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return system_error(new_path_, "cannot open once more", errno);
    return copy;
}

Status AddedFileStaging::publish() {
    const int directory = directory_.get();
    struct stat ours {};
    struct stat named {};
    if (::fstat(directory, &ours) != 0) return system_error(path_, "cannot stat", errno);
    if (::stat(path_.c_str(), &named) != 0) return system_error(path_, "cannot stat", errno);
    if (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino) {
        return conflict("{}: the model was replaced while its {} were made; try again", path_,
                        added_.name);
    }
    if (!is_still_ours()) {
        return conflict("{}: was removed while it was made; try again", new_path_);
    }
    if (Status checked = check_own(directory, added_.name, path_); !checked) return checked;
    if (Status kept = keep_file_access(directory, added_.name, file_.get(), new_path_); !kept)
        return kept;
    if (Status synced = sync_to_disk(file_.get(), new_path_); !synced) return synced;
    if (::renameat(directory, added_.new_name, directory, added_.name) != 0) {
        return system_error(new_path_, fmt::format("cannot rename to '{}'", added_.name), errno);
    }
    return sync_to_disk(directory, path_);
}

}  // namespace gloved::format
