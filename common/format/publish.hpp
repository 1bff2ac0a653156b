// How a model appears under its name: all at once and durably, or not at all.
#pragma once

#include <functional>
#include <string>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// A hidden directory beside the target, in which a model is made, and which then takes the target's name.
///
/// The directory is `.NAME.gloved-PID-N` and is held under an exclusive flock, so that a later run can tell a stray of
/// a dead process from one that is being written. Creating a Staging sweeps the strays of its target. A process that is
/// killed at any instruction leaves the old model or the new one under the target's name, whole, and at most one stray.
/// Not safe for concurrent use; several processes may stage for one target at once, the last to publish wins.
class Staging {
  public:
    /// Sweeps strays and creates the directory. Refuses (conflict) a target that exists and is not a directory, or that
    /// holds files of a kind that no model has: publishing would remove them.
    static Result<Staging> create(const std::string& target);

    Staging(Staging&&) noexcept = default;
    Staging& operator=(Staging&&) = delete;
    /// Removes the directory, unless it was published.
    ~Staging();

    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }

    /// Makes the directory durable and gives it the target's name: by renaming, or by exchanging it with the model that
    /// is there (renameat2 RENAME_EXCHANGE), which is then removed. Where the filesystem refuses to exchange, the old
    /// one is renamed aside first and `warn` is told: between two renames the target is missing then. The files in it
    /// must have been synced by who wrote them. After an error the name leads to what it led to before, unless another process has
    /// published meanwhile or the filesystem refuses to rename back: both models stay then.
    Status publish(const std::function<void(const std::string&)>& warn);

  private:
    /// How the old model lost its name to the new one.
    enum class Replaced { nothing, by_exchange, by_moving_aside };

    Staging() = default;
    /// Undoes the renames of publish(): the new model is called name_ again, and the old one, now called `old`, has the target's
    /// name. False when it could not, or when the target is no longer the new model.
    bool take_back(const std::string& old, Replaced replaced);

    std::string target_;
    std::string parent_path_;
    std::string target_name_;
    std::string name_;
    std::string path_;
    UniqueFd parent_;
    UniqueFd directory_;
};

/// A new planes file for a model that is published already, made in its directory as kNewPlanesFile.
///
/// The directory is held under an exclusive flock meanwhile, so that two processes do not write one file, and what a process that
/// died has left is removed by the next. A process that is killed at any instruction leaves the model as it was or with the new
/// planes, whole, and at most that one file, which readers pass over and a conversion removes with the model. Not safe for
/// concurrent use.
class PlanesStaging {
  public:
    /// Opens and locks the directory, and removes what a dead process has left there. Errors: io; conflict, where somebody holds the
    /// lock.
    static Result<PlanesStaging> create(const std::string& model_dir);

    PlanesStaging(PlanesStaging&&) noexcept = default;
    PlanesStaging& operator=(PlanesStaging&&) = delete;
    /// Removes the new file, unless it was published.
    ~PlanesStaging();

    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }

    /// Gives the new file the name kPlanesFile, durably. It must have been synced by who wrote it. Errors: conflict, where another
    /// model has taken the directory's name meanwhile; io. After an error the old file is there as before, unless it was the last
    /// sync that failed: the new one is then, whole, but a power cut may bring the old one back.
    Status publish();

  private:
    PlanesStaging() = default;

    UniqueFd directory_;
    std::string path_;
    std::string new_path_;
    bool is_ours_ = false;
};

}  // namespace gloved::format
