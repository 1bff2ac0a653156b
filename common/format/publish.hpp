// How a model appears under its name: all at once and durably, or not at all.
#pragma once

#include <functional>
#include <string>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// A hidden directory beside the target, in which a model is made, and which then takes the
/// target's name.
///
/// The directory is `.NAME.gloved-PID-N`. Until it is published only those who may replace the
/// model can open it, and it is held under an exclusive flock, so that a later run can tell a stray
/// of a dead process from one that is being written. Creating a Staging sweeps the strays of its
/// target: those whose content is gloved's. A process that is killed at any instruction leaves the
/// old model or the new one under the target's name, whole, and at most one stray. Not safe for
/// concurrent use; several processes may stage for one target at once, the last to publish wins.
class Staging {
  public:
    /// Sweeps strays and creates the directory. Refuses (conflict) a target that exists and is
    /// neither a model nor an empty directory, one that is a mount point, and one that this user
    /// may not remove.
    static Result<Staging> create(const std::string& target);

    /// What create() would refuse, at once and without changing anything. Errors: conflict, io.
    static Status check(const std::string& target);

    Staging(Staging&&) noexcept = default;
    Staging& operator=(Staging&&) = delete;
    /// Removes the directory, unless it was published.
    ~Staging();

    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }

    /// Makes the directory durable and gives it the target's name: by renaming, or by exchanging it
    /// with the model that is there (renameat2 RENAME_EXCHANGE), which is then removed. A new model
    /// has the modes of common/access.hpp; one that replaces another takes its mode, group, owner
    /// and access control lists (keep_access), file by file. Where the filesystem refuses to
    /// exchange, the old one is renamed aside first and `warn` is told: between two renames the
    /// target is missing then. The files in it must have been synced by who wrote them. The target
    /// is checked again as create() does, before the exchange and after it. After an error the name
    /// leads to what it led to before, unless another process has published meanwhile or the
    /// filesystem refuses to rename back: both models stay then.
    Status publish(const std::function<void(const std::string&)>& warn);

  private:
    /// How the old model lost its name to the new one.
    enum class Replaced { nothing, by_exchange, by_moving_aside };

    Staging() = default;
    /// Opens the parent and checks the target.
    static Result<Staging> open_place(const std::string& target);
    /// Gives the directory and its files the access that they are to have under the target's name.
    Status settle_access();
    /// Undoes the renames of publish(): the new model is called name_ again, and the old one, now
    /// called `old`, has the target's name. False when it could not, or when the target is no
    /// longer the new model.
    bool take_back(const std::string& old, Replaced replaced);

    std::string target_;
    std::string parent_path_;
    std::string target_name_;
    std::string name_;
    std::string path_;
    UniqueFd parent_;
    UniqueFd directory_;
};

/// A new planes file for a model that is published already, made in its directory as
/// kNewPlanesFile.
///
/// The file is held under an exclusive flock meanwhile, and only those who may replace it can open
/// it, so that two processes do not write one file. What a process that died has left is removed by
/// the next. A process that is killed at any instruction leaves the model as it was or with the new
/// planes, whole, and at most that one file, which readers pass over and a conversion removes with
/// the model. Not safe for concurrent use.
class PlanesStaging {
  public:
    /// Creates and locks the file. Errors: io; conflict, where somebody else is at it, or where a
    /// file of that name or of kPlanesFile is not gloved's.
    static Result<PlanesStaging> create(const std::string& model_dir);

    PlanesStaging(PlanesStaging&&) noexcept = default;
    PlanesStaging& operator=(PlanesStaging&&) = delete;
    /// Removes the new file, unless it was published.
    ~PlanesStaging();

    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }
    /// The new file, empty, for a PlanesWriter. The lock stays here. Error: io.
    Result<UniqueFd> file() const;

    /// Gives the new file the name kPlanesFile, durably, and the access of the file that it
    /// replaces, or of the values file. It must have been synced by who wrote it. Errors: conflict,
    /// where another model has taken the directory's name meanwhile, or a file that is not gloved's
    /// that of kPlanesFile; io. After an error the old file is there as before, unless it was the
    /// last sync that failed: the new one is then, whole, but a power cut may bring the old one
    /// back.
    Status publish();

  private:
    PlanesStaging() = default;
    /// Whether kNewPlanesFile still is the file that this object has made.
    bool is_there() const;

    UniqueFd directory_;
    UniqueFd file_;
    std::string path_;
    std::string new_path_;
};

}  // namespace gloved::format
