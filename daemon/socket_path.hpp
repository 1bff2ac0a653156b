// ListeningSocket: the daemon's Unix socket, bound to a path or passed by systemd. Never removes a
// file that it did not make.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::daemon {

/// A listening socket. If `bind` made it, the destructor removes its path.
class ListeningSocket {
  public:
    /// Makes a socket with mode 0660 at `path` and listens. Replaces a socket of this user on which
    /// no process listens (its daemon was killed). Anything else at the path stays: a socket in use
    /// or of another user, a symlink, a file; so does a PATH.lock of another user, or one that is
    /// no empty file. Holds a lock on PATH.lock while the object lives: otherwise two daemons that
    /// start at once could each take the other's new socket for a dead one. Errors: conflict, if
    /// something else is there; io, with the remedy.
    static Result<ListeningSocket> bind(const std::string& path);

    /// Takes a listening socket that another process has bound (systemd); its path is never
    /// removed.
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
    /// Gives the descriptor to the caller. The object still removes the path in the end.
    int release_fd() { return fd_.release(); }
    /// Whether `bind` made the socket, so that no other process listens on it.
    bool is_own() const { return !lock_path_.empty(); }
    /// The path at which the socket listens, for messages.
    const std::string& address() const { return address_; }
    /// Removes the path, unless somebody has replaced the socket, and the lock file.
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
