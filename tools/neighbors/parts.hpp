// The parts of a neighbors file while it is computed: files that appear whole, in a directory of
// their own, so that many processes can make them and a killed one can go on.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/neighbors.hpp"
#include "common/result.hpp"

namespace gloved::neighbors {

/// Rows of a part, but for the last one and for tests. A GPU computes them in tens of milliseconds,
/// two cores in a minute or two.
inline constexpr std::size_t kPartRows = 16384;

/// Who else may work in the directory at the same time.
enum class Access {
    shared,           ///< others that compute parts
    shared_existing,  ///< the same; the directory has to be there
    alone
};

/// The parts' directory of a model and one k. The parts of another k are other files, and stay. Not
/// safe for concurrent use; several processes may use one directory.
///
/// Whoever can write a part decides about answers, since its checksum is no secret. So the
/// directory is used only if no other user could have put parts there (describe_distrust), and so
/// is each part in it. In a directory that is shared by its group, parts of all its members are
/// used.
///
/// A file in the directory is locked (flock), which strangers cannot open: whoever can read a
/// directory can lock it.
class Parts {
  public:
    /// Parts of `part_rows` rows. Creates the directory, with mode 0700, unless it is there, or
    /// fails if `access` is shared_existing. Locks it. `directory` is MODEL.neighbors-parts if
    /// empty; then Access::alone also removes the parts of other generations: the model that had
    /// them was replaced. The model must outlive the Parts. Errors: io; conflict, if another
    /// process has locked the directory or other users may write to it.
    static Result<Parts> open(const format::Model& model, std::size_t k, std::size_t part_rows,
                              const std::string& directory, Access access);

    const std::string& path() const { return path_; }
    std::size_t count() const { return (model_->rows() + part_rows_ - 1) / part_rows_; }
    /// The rows of part `number`, from 0.
    format::RowRange range(std::size_t number) const;
    std::string path_of(std::size_t number) const;

    /// Opens a part and checks all of it; nothing if there is no such file. Errors: io, damaged,
    /// mismatch, unsupported; conflict, if another user may have written it.
    Result<std::optional<format::Neighbors>> read(std::size_t number) const;
    /// Refuses (conflict) a file with this part's name that gloved did not make. No file passes.
    Status check_ours(std::size_t number) const;
    /// Writes a part, durably: it appears whole, and replaces a damaged one. `lists` has k numbers
    /// for each row of its range. Errors: io; conflict, for a file that gloved did not make.
    Status write(std::size_t number, std::span<const format::Row> lists) const;
    /// Removes all parts, those of a smaller k too, what killed processes left of them, and the
    /// lock. Call it once the lists are stored: they begin with those of a smaller k. Removes the
    /// directory too if it has the default name and is empty. What cannot be removed stays; it is
    /// harmless.
    void remove() const;

    /// Removes what a process left that was killed after it had published the file. Does nothing if
    /// there is no directory or another process works there.
    static void sweep(const format::Model& model, std::size_t k, std::size_t part_rows,
                      const std::string& directory);

  private:
    Parts(const format::Model& model, std::size_t k, std::size_t part_rows)
        : model_(&model), k_(k), part_rows_(part_rows) {}
    /// Opens the directory, which is there, and checks whose it is.
    Status open_directory();
    /// Opens and locks the file of the lock. False if another process has removed it meanwhile.
    Result<bool> lock(Access access);
    std::string name_of(std::size_t number) const;
    /// Whether the file begins as a neighbors file, or is empty.
    Result<bool> is_ours(const std::string& name) const;
    /// Removes gloved's files whose names `is_meant` accepts.
    void remove_files(const std::function<bool(std::string_view name)>& is_meant) const;

    const format::Model* model_;
    std::size_t k_;
    std::size_t part_rows_;
    std::string path_;
    bool has_default_name_ = false;
    bool is_group_trusted_ = false;  ///< the directory's group may write parts
    UniqueFd directory_;
    UniqueFd lock_;
};

}  // namespace gloved::neighbors
