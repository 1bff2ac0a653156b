#include "daemon/socket_path.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/error_with.hpp"

namespace gloved::daemon {
namespace {

std::string lock_path(const std::string& path) { return path + ".lock"; }

/// Whether a process listens at the address.
bool is_listening(const sockaddr_un& address) {
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return true;
    // EAGAIN: its backlog is full. EPROTOTYPE: a datagram socket. Only ECONNREFUSED means dead.
    return errno != ECONNREFUSED && errno != ENOENT;
}

Error in_use(const std::string& path) {
    return conflict("{}: another daemon uses this socket; stop it or choose another --socket",
                    path);
}

/// Creates and locks PATH.lock. (Every user who may read the directory could lock that.)
Result<UniqueFd> lock(const std::string& path, const sockaddr_un& address) {
    const std::string file = lock_path(path);
    while (true) {
        UniqueFd fd(
            ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
        const int reason = errno;
        struct stat locked {};
        if (!fd && ::lstat(file.c_str(), &locked) != 0)
            return system_error(file, "cannot create beside the socket", reason);
        if (fd && ::fstat(fd.get(), &locked) != 0) return system_error(file, "cannot stat", errno);
        // The lock is removed with the socket, so only an empty file is taken for one.
        if (!S_ISREG(locked.st_mode) || locked.st_size != 0) {
            return conflict("{}: exists and is not a gloved lock file; choose another --socket",
                            file);
        }
        // In a directory for everybody (/tmp), any user may make such a file and lock it.
        if (locked.st_uid != ::geteuid()) {
            if (is_listening(address)) return in_use(path);
            return conflict(
                "{}: belongs to user {}, and no daemon listens on {}; remove it if "
                "nothing uses it, or choose another --socket",
                file, locked.st_uid, path);
        }
        if (!fd) return system_error(file, "cannot open", reason);
        // Whatever the umask: the next daemon must be able to open it if this one is killed.
        (void)::fchmod(fd.get(), 0600);
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
            return errno == EWOULDBLOCK ? in_use(path) : system_error(file, "cannot lock", errno);
        // The last holder may have removed the file after we opened it: check that it is there.
        struct stat named {};
        if (::lstat(file.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
            locked.st_dev == named.st_dev) {
            return fd;
        }
    }
}

Status clear_path(const std::string& path, const sockaddr_un& address) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return {};
        return system_error(path, "cannot stat", errno);
    }
    if (!S_ISSOCK(status.st_mode)) {
        return conflict("{}: exists and is not a socket; choose another --socket", path);
    }
    if (is_listening(address)) return in_use(path);
    if (status.st_uid != ::geteuid()) {
        return conflict("{}: stale socket of user {}; remove it if nothing uses it", path,
                        status.st_uid);
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
        return system_error(path, "cannot remove the stale socket", errno);
    return {};
}

}  // namespace

Result<ListeningSocket> ListeningSocket::bind(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        return error_with(ErrorCode::io, "{}: a socket path must have 1 to {} bytes, not {}", path,
                          sizeof address.sun_path - 1, path.size());
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);

    auto held = lock(path, address);
    if (!held) return held.error();
    ListeningSocket socket;
    socket.address_ = path;
    socket.path_ = path;
    socket.lock_path_ = lock_path(path);
    socket.lock_ = *std::move(held);
    if (Status cleared = clear_path(path, address); !cleared) return cleared.error();

    socket.fd_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.fd_) return system_error(path, "cannot create a socket", errno);
    // By the umask: with chmod after bind, any user could connect in between.
    const mode_t old_mask = ::umask(0117);
    const int bound =
        ::bind(socket.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int reason = errno;
    ::umask(old_mask);
    if (bound != 0) return system_error(path, "cannot bind", reason);

    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return system_error(path, "cannot stat", errno);
    socket.device_ = status.st_dev;
    socket.inode_ = status.st_ino;
    if (::listen(socket.fd_.get(), SOMAXCONN) != 0)
        return system_error(path, "cannot listen", errno);
    return socket;
}

ListeningSocket ListeningSocket::adopt(UniqueFd fd) {
    ListeningSocket socket;
    sockaddr_un address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        size > offsetof(sockaddr_un, sun_path)) {
        socket.address_.assign(address.sun_path,
                               ::strnlen(address.sun_path, size - offsetof(sockaddr_un, sun_path)));
    }
    if (socket.address_.empty()) socket.address_ = "a socket without a path";
    socket.fd_ = std::move(fd);
    return socket;
}

void ListeningSocket::remove_path() {
    if (path_.empty()) return;
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
        status.st_ino == inode_) {
        ::unlink(path_.c_str());
    }
    ::unlink(lock_path_.c_str());
    lock_.reset();
    path_.clear();
}

}  // namespace gloved::daemon
