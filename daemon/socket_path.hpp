// A Unix socket bound to a path, without harm to whatever else may be there.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "common/files.hpp"
#include "common/result.hpp"

namespace gloved::daemon {

/// A listening socket at a path. At its end the path is removed, if it still is this very socket.
class ListeningSocket {
  public:
    /// Binds and listens, mode 0660. What stands at the path decides:
    ///  - nothing: it is taken;
    ///  - a socket of this user that nobody listens on (its daemon was killed): it is replaced;
    ///  - a socket that somebody listens on, another user's, or what is no socket (a symlink, say):
    ///    left alone, conflict.
    /// Daemons of one path are kept apart by a lock on the file PATH.lock, held for life: without
    /// it two that start at once could each take the other's fresh socket for a dead one. Errors:
    /// conflict, or io with the remedy.
    static Result<ListeningSocket> bind(const std::string& path);

    /// Takes over a socket that somebody else has bound, and whose path is theirs to remove.
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
    /// Whether `bind` made it: nobody else listens on it.
    bool is_own() const { return !lock_path_.empty(); }
    /// Where it listens, for people.
    const std::string& address() const { return address_; }
    /// Removes the path if it still is this socket, and the lock's file; once.
    void remove_path();

  private:
    ListeningSocket() = default;

    std::string address_;
    std::string path_;       // to be removed at the end; empty when there is nothing to remove
    std::string lock_path_;  // empty if adopted
    UniqueFd lock_;
    UniqueFd fd_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace gloved::daemon
