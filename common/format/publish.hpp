// Publishes a model under its name: completely and durably, or not at all.
#pragma once

#include <functional>
#include <string>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// The directory in which a model is made, hidden beside the target, whose name it finally takes.
///
/// The directory is `.NAME.gloved-PID-N`. Until it is published, only those who may replace the
/// model can open it. It is held under an exclusive flock, so that a later run can tell the stray
/// of a dead process from one in use. Creating a Staging sweeps the target's strays whose content
/// is gloved's.
///
/// A process killed at any instruction leaves the old or the new model under the target's name,
/// complete, and at most one stray. Not safe for concurrent use; several processes may stage for
/// one target, and the last to publish wins.
class Staging {
  public:
    /// Sweeps strays and creates the directory. Refuses (conflict) a target that is neither a model
    /// nor an empty directory, is a mount point, or may not be removed by this user.
    static Result<Staging> create(const std::string& target);

    /// Returns the error that create() would, without changing anything. Errors: conflict, io.
    static Status check(const std::string& target);

    Staging(Staging&&) noexcept = default;
    Staging& operator=(Staging&&) = delete;
    /// Removes the directory unless it was published.
    ~Staging();

    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }

    /// Makes the directory durable and gives it the target's name, by renaming it, or by exchanging
    /// it with the existing model (renameat2 RENAME_EXCHANGE), which is then removed. A new model
    /// has the modes of common/access.hpp; one that replaces another copies its mode, group, owner
    /// and access control lists (keep_access), file by file.
    ///
    /// If the filesystem cannot exchange, the old model is renamed aside first and `warn` is
    /// called: the target is missing between the two renames. The writers of the files have synced
    /// them. The target is checked again as in create(), before the exchange and after it. After an
    /// error the name leads to what it did before, unless another process has published meanwhile
    /// or the filesystem refuses to rename back: then both models stay.
    Status publish(const std::function<void(const std::string&)>& warn);

  private:
    /// How the name passed from the old model to the new one.
    enum class Replaced { nothing, by_exchange, by_moving_aside };

    Staging() = default;
    /// Opens the parent directory and checks the target.
    static Result<Staging> open_parent(const std::string& target);
    /// Sets the final access of the directory and its files.
    Status set_final_access();
    /// Renames the directory to the target's name. If the filesystem cannot exchange it with an old
    /// model, that is renamed to `aside` first.
    Result<Replaced> take_target_name(const std::string& aside,
                                      const std::function<void(const std::string&)>& warn);
    /// Undoes the renames of publish(): the new model is called name_ again, and the old one, now
    /// called `old`, has the target's name. False if that failed or the target is not the new model
    /// any more.
    bool undo_renames(const std::string& old, Replaced replaced);

    std::string target_;
    std::string parent_path_;
    std::string target_name_;
    std::string name_;
    std::string path_;
    UniqueFd parent_;
    UniqueFd directory_;
};

/// A new planes file for a published model, made in its directory as kNewPlanesFile.
///
/// The file is held under an exclusive flock, and only those who may replace it can open it, so
/// that two processes do not write one file. The next process removes what a dead one left. A
/// process killed at any instruction leaves the model as it was or with the new planes, complete,
/// and at most that one file, which readers ignore and a conversion removes with the model. Not
/// safe for concurrent use.
class PlanesStaging {
  public:
    /// Creates and locks the file. Errors: io; conflict, if another process is making one, or if a
    /// file of that name or of kPlanesFile is not gloved's.
    static Result<PlanesStaging> create(const std::string& model_dir);

    PlanesStaging(PlanesStaging&&) noexcept = default;
    PlanesStaging& operator=(PlanesStaging&&) = delete;
    /// Removes the new file unless it was published.
    ~PlanesStaging();

    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }
    /// The new file, empty, for a PlanesWriter. The lock stays here. Error: io.
    Result<UniqueFd> file() const;

    /// Durably renames the new file, synced by its writer, to kPlanesFile and copies the access of
    /// the file it replaces, or else of the values file. Errors: io; conflict, if another model has
    /// taken the directory's name meanwhile, or if kPlanesFile is not gloved's. After an error the
    /// old file is unchanged, except when the last sync failed: then the new one is there,
    /// complete, but a power cut may bring the old one back.
    Status publish();

  private:
    PlanesStaging() = default;
    /// Whether kNewPlanesFile still is the file that this object made.
    bool is_still_ours() const;

    UniqueFd directory_;
    UniqueFd file_;
    std::string path_;
    std::string new_path_;
};

}  // namespace gloved::format
