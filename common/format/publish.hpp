// Makes a model, or a file that is added to one, under a temporary name and publishes it under its
// own: completely and durably, or not at all.
#pragma once

#include <functional>
#include <string>

#include "common/files.hpp"
#include "common/format/neighbors.hpp"
#include "common/format/planes.hpp"
#include "common/result.hpp"

namespace gloved::format {

/// The directory in which a new model is made. It is hidden beside the target, the model's final
/// path, and takes the target's name when it is published.
///
/// The directory is `.NAME.gloved-PID-N`. Until it is published, only users who may replace the
/// model can open it. It is locked (flock) while the Staging lives. So a later run can tell a
/// stray, the directory of a killed process, from one in use. `create` removes the target's strays
/// if their content is gloved's (own_files.hpp).
///
/// A process killed at any instruction leaves the old or the new model under the target's name,
/// complete, and at most one stray. One exception: on a filesystem that cannot exchange names, a
/// kill between two renames leaves no target; the next `create` gives the old model its name back.
/// Not safe for concurrent use; several processes may stage for one target, and the last to publish
/// wins.
class Staging {
  public:
    /// Removes strays and creates the directory. Errors: io; conflict, for a target that is neither
    /// a model nor an empty directory, is a mount point, or may not be removed by this user.
    static Result<Staging> create(const std::string& target);

    /// Returns the error that create() would, without changing anything. Errors: conflict, io.
    static Status check(const std::string& target);

    Staging(Staging&&) noexcept = default;
    Staging& operator=(Staging&&) = delete;
    /// Removes the directory unless it was published.
    ~Staging();

    /// The new directory.
    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }

    /// Makes the directory durable and gives it the target's name, by renaming it. An existing
    /// model is exchanged with it (renameat2 RENAME_EXCHANGE) and then removed. A new model has the
    /// modes of common/access.hpp. One that replaces another copies the access of each of its files
    /// (keep_access).
    ///
    /// If the filesystem cannot exchange, the old model is renamed aside first and `warn` is called
    /// with a message: the target is missing between the two renames. The caller has synced all
    /// files. The target is checked again as in create(), before the exchange and after it. After
    /// an error the target is what it was before, unless another process has published meanwhile or
    /// the filesystem refuses to rename back: then both models stay. Errors: io, conflict.
    Status publish(const std::function<void(const std::string&)>& warn);

  private:
    /// The three names, in one directory, and which model has each; each arrow is one rename, which
    /// a function below makes. A kill leaves one of these states.
    ///
    ///     target  name_  aside_
    ///     -       new    -       ──put_new_where_nothing_is──▶  new  -    -
    ///     old     new    -       ──exchange──────────────────▶  new  old  -
    ///     old     new    -       ──move_old_aside────────────▶  -    new  old
    ///     -       new    old     ──put_new───────────────────▶  new  -    old
    ///
    /// How publish() came to a state where the new model has the target's name:
    enum class Replaced { nothing, by_exchange, by_moving_aside };

    Staging() = default;
    /// Opens the parent directory and checks the target.
    static Result<Staging> open_parent(const std::string& target);
    /// Sets the final access of the directory and its files.
    Status set_final_access();
    /// One rename each: false and errno if it failed, and nothing has changed then. exchange() is
    /// its own inverse; take_new_back() is that of the two that put the new model there.
    bool put_new_where_nothing_is();
    bool exchange();
    bool move_old_aside();
    bool put_new();
    bool take_new_back();
    bool move_old_back();
    bool rename_in_parent(const std::string& from, const std::string& to, unsigned flags);
    /// Goes through the states to one where the new model has the target's name.
    Result<Replaced> take_target_name(const std::function<void(const std::string&)>& warn);
    /// The same where the filesystem cannot exchange names.
    Result<Replaced> take_target_name_by_moving_aside(
        const std::function<void(const std::string&)>& warn);
    /// Goes back to the state before take_target_name. False if that failed or the target is not
    /// the new model any more.
    bool undo(Replaced replaced);
    /// Removes the old model after the new one has its name. What cannot be removed stays.
    void remove_old(const std::string& old, const std::string& path,
                    const std::function<void(const std::string&)>& warn);

    std::string target_;
    std::string parent_path_;
    std::string target_name_;
    std::string name_;   // while it is made
    std::string aside_;  // of the old model, where names cannot be exchanged
    std::string path_;
    UniqueFd parent_;
    UniqueFd directory_;
};

/// A file that is made for a model that already has its name. Readers ignore it while it has its
/// temporary name.
struct AddedFile {
    const char* name;
    const char* new_name;  ///< its temporary name
    const char* maker;     ///< the program, for messages
};

inline constexpr AddedFile kAddedPlanes = {kPlanesFile, kNewPlanesFile, "gloved-convert"};
inline constexpr AddedFile kAddedNeighbors = {kNeighborsFile, kNewNeighborsFile,
                                              "gloved-neighbors"};

/// A new file for a published model, made in its directory.
///
/// The file is locked (flock), and only users who may replace it can open it: two processes cannot
/// write one file. A process killed at any instruction leaves the model as it was or with the new
/// file, complete. At most it leaves the file with its temporary name. The next AddedFileStaging
/// removes that, and a conversion removes it with the model. Not safe for concurrent use.
class AddedFileStaging {
  public:
    /// Creates and locks the file. Errors: io; conflict, if another process is making one, or if a
    /// file of either name is not gloved's.
    static Result<AddedFileStaging> create(const std::string& model_dir, const AddedFile& added);

    AddedFileStaging(AddedFileStaging&&) noexcept = default;
    AddedFileStaging& operator=(AddedFileStaging&&) = delete;
    /// Removes the new file unless it was published.
    ~AddedFileStaging();

    /// The model's directory.
    int directory_fd() const { return directory_.get(); }
    const std::string& path() const { return path_; }
    /// A further descriptor of the new file, which is empty, for its writer. The AddedFileStaging
    /// keeps the lock. Error: io.
    Result<UniqueFd> file() const;

    /// Durably renames the new file, which its writer has synced, to its final name. Copies the
    /// access (keep_access) of the file that it replaces, or of the values file if there is none.
    /// Errors: io; conflict, if another model has taken the directory's name meanwhile, or if the
    /// file of the final name is not gloved's. After an error the old file is unchanged, except
    /// when the last sync failed: then the new one is there, complete, but a power cut may bring
    /// the old one back.
    Status publish();

  private:
    explicit AddedFileStaging(const AddedFile& added) : added_(added) {}
    /// Whether the temporary name still is that of the file that this object made.
    bool is_still_ours() const;

    AddedFile added_;
    UniqueFd directory_;
    UniqueFd file_;
    std::string path_;
    std::string new_path_;
};

}  // namespace gloved::format
