// A Unix socket bound to a path; never removes what is not its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::daemon {

/// A listening socket at a path. Its destructor removes the path if it is still this socket.
class ListeningSocket {
  public:
    /// Binds and listens, mode 0660. Replaces a socket of this user that no process listens on (its
    /// daemon was killed). Leaves anything else at the path alone: a socket in use or of another
    /// user, a symlink, a file. Locks PATH.lock for life: two daemons that start at once could each
    /// take the other's new socket for a dead one. Errors: conflict, or io with the remedy.
    static Result<ListeningSocket> bind(const std::string& path);

    /// Takes over a socket that another process has bound; its path stays.
    static ListeningSocket adopt(UniqueFd fd);

    ListeningSocket(ListeningSocket&& other) noexcept
        : address_(std::move(other.address_)),
          path_(std::exchange(other.path_, {})),
          lock_path_(std::move(other.lock_path_)),
          lock_(std::move(other.lock_)),
          fd_(std::move(other.fd_)),
          device_(other.device_),
          inode_(other.inode_) {}
    ListeningSocket& operator=(ListeningSocket&&) = delete;
    ~ListeningSocket() { remove_path(); }

    int fd() const { return fd_.get(); }
    /// Hands the descriptor over; the path stays this object's to remove.
    int release_fd() { return fd_.release(); }
    /// Whether `bind` made it: no other process listens on it.
    bool is_own() const { return !lock_path_.empty(); }
    /// Where it listens, for messages.
    const std::string& address() const { return address_; }
    /// Removes the path if it is still this socket, and the lock file.
    void remove_path();

  private:
    ListeningSocket() = default;

    std::string address_;
    std::string path_;       // to be removed; empty when there is nothing to remove
    std::string lock_path_;  // empty if adopted
    UniqueFd lock_;
    UniqueFd fd_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace gloved::daemon
