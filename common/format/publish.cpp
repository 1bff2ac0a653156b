#include "common/format/publish.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "common/format/layout.hpp"
#include "common/format/planes.hpp"

namespace gloved::format {
namespace {

/// Every file that a model or a staging directory may hold. Nothing else is ever removed.
constexpr std::array<std::string_view, 6> kOwnFiles = {kKeysFile,   kValuesFile,    kReportFile,
                                                       kPlanesFile, kNewPlanesFile, "spool"};

bool is_own_file(std::string_view name) {
    return std::find(kOwnFiles.begin(), kOwnFiles.end(), name) != kOwnFiles.end();
}

Result<std::vector<std::string>> list_directory(int fd, const std::string& path) {
    // A second open: fdopendir takes the descriptor over and moves its position.
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

/// Removes the directory `name` and the model files in it. A directory that holds anything else stays, with that
/// content.
Status remove_model_directory(int parent, const std::string& name, const std::string& path) {
    const UniqueFd directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    // Another process may be sweeping it.
    if (!directory && errno == ENOENT) return {};
    if (!directory) return system_error(path, "cannot open for removal", errno);
    for (const std::string_view file : kOwnFiles) {
        if (::unlinkat(directory.get(), std::string(file).c_str(), 0) != 0 && errno != ENOENT) {
            return system_error(path, fmt::format("cannot remove '{}' in it", file), errno);
        }
    }
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
        return system_error(path, "cannot remove", errno);
    }
    return {};
}

std::string stray_prefix(const std::string& target_name) { return "." + target_name + ".gloved-"; }

/// We hold a parent's lock for microseconds; whoever holds it longer is not one of us.
constexpr std::chrono::seconds kLockPatience{10};

/// Locks a descriptor's file if nobody else holds its lock; −1 and errno otherwise.
int lock_now(int fd) {
    int result = 0;
    do {
        result = ::flock(fd, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    return result;
}

/// Locks a directory until the result is destroyed. Advisory; a second open, because a lock belongs to one. Anybody who may
/// read the directory can hold its lock, so waiting has an end.
Result<UniqueFd> lock_directory(int fd, const std::string& path) {
    UniqueFd lock(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock) return system_error(path, "cannot open for locking", errno);
    const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
    while (lock_now(lock.get()) != 0) {
        if (errno != EWOULDBLOCK) return system_error(path, "cannot lock", errno);
        if (std::chrono::steady_clock::now() >= deadline) {
            return Error{ErrorCode::conflict,
                         fmt::format("{}: another program holds a lock on this directory (lsof tells which)", path)};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return lock;
}

/// What publish() appends to a staging directory's name «.NAME.gloved-PID-N» for an old model that it moves aside.
constexpr std::string_view kAsideSuffix = "-0";

/// Whether `name` is that of an old model moved aside: three numbers behind the prefix, not two.
bool is_aside(std::string_view name, std::size_t prefix_length) {
    return std::count(name.begin() + static_cast<std::ptrdiff_t>(prefix_length), name.end(), '-') == 2;
}

/// A staging directory whose maker is gone, locked by us.
struct Stray {
    std::string name;
    UniqueFd lock;
};

/// The strays of this target: nobody holds their lock. The parent is locked. An old model that was moved aside by a process
/// that died before the new one had the name gets the name back: it is the only one there is.
Result<std::vector<Stray>> claim_strays(int parent, const std::string& parent_path, const std::string& target_name) {
    std::vector<Stray> strays;
    const auto names = list_directory(parent, parent_path);
    if (!names) return names.error();
    const std::string prefix = stray_prefix(target_name);
    for (const std::string& name : *names) {
        if (name.rfind(prefix, 0) != 0) continue;
        if (name.find_first_not_of("0123456789-", prefix.size()) != std::string::npos) continue;
        UniqueFd lock(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        if (!lock || lock_now(lock.get()) != 0) continue;
        // Fails where the name is taken by a directory that is not empty.
        if (is_aside(name, prefix.size()) && ::renameat(parent, name.c_str(), parent, target_name.c_str()) == 0)
            continue;
        strays.push_back({name, std::move(lock)});
    }
    return strays;
}

/// Removes the strays of this target. The parent is locked only while they are claimed: removing takes as long as it takes.
Status sweep_strays(int parent, const std::string& parent_path, const std::string& target_name) {
    auto lock = lock_directory(parent, parent_path);
    if (!lock) return lock.error();
    const auto strays = claim_strays(parent, parent_path, target_name);
    if (!strays) return strays.error();
    lock->reset();
    for (const Stray& stray : *strays) {
        // What cannot be removed (another user's, say) is left: it is in nobody's way.
        (void)remove_model_directory(parent, stray.name, fmt::format("{}/{}", parent_path, stray.name));
    }
    return {};
}

Status check_target(int parent, const std::string& name, const std::string& target) {
    struct stat status {};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return {};
        return system_error(target, "cannot stat", errno);
    }
    if (!S_ISDIR(status.st_mode)) {
        return Error{ErrorCode::conflict,
                     fmt::format("{}: exists and is not a directory; choose another name or remove it", target)};
    }
    const UniqueFd directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!directory) return system_error(target, "cannot open the directory", errno);
    const auto names = list_directory(directory.get(), target);
    if (!names) return names.error();
    for (const std::string& entry : *names) {
        if (!is_own_file(entry)) {
            return Error{
                ErrorCode::conflict,
                fmt::format("{}: exists and holds '{}', which is no part of a model; choose another directory, "
                            "replacing this one would remove it",
                            target, entry)};
        }
    }
    return {};
}

/// Warns, unless there is no memory for it: what has been done stays done.
void tell(const std::function<void(const std::string&)>& warn, const std::string& message, const char* more = "") {
    try {
        warn(message + more);
    } catch (const std::bad_alloc&) {
    }
}

}  // namespace

Result<Staging> Staging::create(const std::string& target) {
    std::string trimmed = target;
    while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
    const std::size_t slash = trimmed.rfind('/');
    Staging staging;
    staging.target_ = trimmed;
    staging.parent_path_ = slash == std::string::npos ? "." : slash == 0 ? "/" : trimmed.substr(0, slash);
    staging.target_name_ = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
    if (staging.target_name_.empty() || staging.target_name_ == "." || staging.target_name_ == "..") {
        return Error{ErrorCode::conflict,
                     fmt::format("'{}': a model directory needs a name of its own, such as models/glove", target)};
    }
    auto parent = open_directory(staging.parent_path_);
    if (!parent) return parent.error();
    staging.parent_ = *std::move(parent);
    if (Status checked = check_target(staging.parent_.get(), staging.target_name_, trimmed); !checked) {
        return checked.error();
    }

    if (Status swept = sweep_strays(staging.parent_.get(), staging.parent_path_, staging.target_name_); !swept) {
        return swept.error();
    }
    // Under the parent's lock: otherwise another process could take the new directory for a stray in the moment between its
    // making and its locking.
    const auto lock = lock_directory(staging.parent_.get(), staging.parent_path_);
    if (!lock) return lock.error();
    for (int attempt = 0;; ++attempt) {
        // Both names before there is a directory: without memory for them it would be left behind.
        staging.name_ = fmt::format("{}{}-{}", stray_prefix(staging.target_name_), ::getpid(), attempt);
        staging.path_ = staging.parent_path_ + "/" + staging.name_;
        if (::mkdirat(staging.parent_.get(), staging.name_.c_str(), 0755) == 0) break;
        if (errno != EEXIST || attempt == 100) {
            return system_error(staging.parent_path_, "cannot create a directory in it", errno);
        }
    }
    staging.directory_ = UniqueFd(
        ::openat(staging.parent_.get(), staging.name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!staging.directory_) {
        const int reason = errno;
        (void)::unlinkat(staging.parent_.get(), staging.name_.c_str(), AT_REMOVEDIR);
        return system_error(staging.path_, "cannot open", reason);
    }
    if (lock_now(staging.directory_.get()) != 0) return system_error(staging.path_, "cannot lock", errno);
    return staging;
}

Staging::~Staging() {
    if (!directory_ || name_.empty()) return;
    (void)remove_model_directory(parent_.get(), name_, path_);
}

bool Staging::take_back(const std::string& old, Replaced replaced) {
    // Another process may have published since. Its model is not ours to move.
    struct stat ours {};
    struct stat theirs {};
    const int parent = parent_.get();
    if (::fstat(directory_.get(), &ours) != 0 ||
        ::fstatat(parent, target_name_.c_str(), &theirs, AT_SYMLINK_NOFOLLOW) != 0 || ours.st_dev != theirs.st_dev ||
        ours.st_ino != theirs.st_ino) {
        return false;
    }
    if (replaced == Replaced::by_exchange) {
        return ::renameat2(parent, old.c_str(), parent, target_name_.c_str(), RENAME_EXCHANGE) == 0;
    }
    if (::renameat(parent, target_name_.c_str(), parent, name_.c_str()) != 0) return false;
    return replaced == Replaced::nothing || ::renameat(parent, old.c_str(), parent, target_name_.c_str()) == 0;
}

Status Staging::publish(const std::function<void(const std::string&)>& warn) {
    if (Status synced = sync_to_disk(directory_.get(), path_); !synced) return synced;
    const int parent = parent_.get();
    Replaced replaced = Replaced::nothing;
    // From the first rename on nothing may fail for want of memory: what is to be said and called is made before.
    std::string old = name_;  // what the old model is called once the new one has its name
    std::string old_path = path_;
    if (::renameat2(parent, name_.c_str(), parent, target_name_.c_str(), RENAME_NOREPLACE) != 0) {
        if (errno != EEXIST && errno != EINVAL && errno != ENOSYS)
            return system_error(target_, "cannot publish", errno);
        // Looked at again: hours may have passed since the first look.
        if (Status checked = check_target(parent, target_name_, target_); !checked) return checked;
        if (::renameat2(parent, name_.c_str(), parent, target_name_.c_str(), RENAME_EXCHANGE) == 0) {
            replaced = Replaced::by_exchange;
        } else if (errno == EINVAL || errno == ENOSYS || errno == ENOENT) {
            // A sweep between the two renames would give the old model its name back.
            const auto lock = lock_directory(parent, parent_path_);
            if (!lock) return lock.error();
            old += kAsideSuffix;
            old_path += kAsideSuffix;
            const std::string warning = fmt::format(
                "{}: this filesystem cannot exchange directories; the old model was moved aside first, so "
                "the name was missing for a moment",
                target_);
            if (::renameat(parent, target_name_.c_str(), parent, old.c_str()) == 0) {
                replaced = Replaced::by_moving_aside;
            } else if (errno != ENOENT) {
                return system_error(target_, "cannot move the old model aside", errno);
            }
            if (::renameat(parent, name_.c_str(), parent, target_name_.c_str()) != 0) {
                const int reason = errno;
                if (replaced != Replaced::nothing) {
                    (void)::renameat(parent, old.c_str(), parent, target_name_.c_str());
                }
                return system_error(target_, "cannot publish", reason);
            }
            if (replaced != Replaced::nothing) tell(warn, warning);
        } else {
            return system_error(target_, "cannot exchange with the old model", errno);
        }
    }
    // Without this a power cut could lose the rename after the program said that it was done.
    // The old model is removed only after that: until then a power cut may still bring its name back.
    Status synced = sync_to_disk(parent, parent_path_);
    if (!synced) {
        // What a power cut would leave nobody knows then. What programs see is at least what the error says: the old model.
        // Where that cannot be had, both stay: the one without the name is swept by the next run.
        if (!take_back(old, replaced)) name_.clear();
        return synced;
    }
    name_.clear();
    if (replaced != Replaced::nothing) {
        if (Status removed = remove_model_directory(parent, old, old_path); !removed) {
            tell(warn, removed.error().message, "; the next conversion to this name sweeps it");
        }
    }
    return {};
}

Result<PlanesStaging> PlanesStaging::create(const std::string& model_dir) {
    auto directory = open_directory(model_dir);
    if (!directory) return directory.error();
    PlanesStaging staging;
    staging.directory_ = *std::move(directory);
    staging.path_ = model_dir;
    while (staging.path_.size() > 1 && staging.path_.back() == '/') staging.path_.pop_back();
    staging.new_path_ = staging.path_ + "/" + kNewPlanesFile;
    if (lock_now(staging.directory_.get()) != 0) {
        if (errno != EWOULDBLOCK) return system_error(staging.path_, "cannot lock", errno);
        return Error{ErrorCode::conflict,
                     fmt::format("{}: another program holds a lock on this directory, a gloved-convert that is at it "
                                 "perhaps (lsof tells which)",
                                 staging.path_)};
    }
    // We hold the lock, so that whoever made this one is gone.
    if (::unlinkat(staging.directory_.get(), kNewPlanesFile, 0) != 0 && errno != ENOENT) {
        return system_error(staging.new_path_, "cannot remove", errno);
    }
    staging.is_ours_ = true;
    return staging;
}

PlanesStaging::~PlanesStaging() {
    if (directory_ && is_ours_) (void)::unlinkat(directory_.get(), kNewPlanesFile, 0);
}

Status PlanesStaging::publish() {
    const int directory = directory_.get();
    struct stat ours {};
    struct stat named {};
    if (::fstat(directory, &ours) != 0) return system_error(path_, "cannot stat", errno);
    if (::stat(path_.c_str(), &named) != 0) return system_error(path_, "cannot stat", errno);
    if (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino) {
        return Error{ErrorCode::conflict,
                     fmt::format("{}: the model was replaced while its planes were made; try again", path_)};
    }
    if (::renameat(directory, kNewPlanesFile, directory, kPlanesFile) != 0) {
        return system_error(new_path_, fmt::format("cannot rename to '{}'", kPlanesFile), errno);
    }
    is_ours_ = false;
    return sync_to_disk(directory, path_);
}

}  // namespace gloved::format
