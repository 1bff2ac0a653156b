#include "daemon/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace gloved::daemon {
namespace {

/// What a model keeps open: keys, values, planes and neighbors. A reload opens them again.
constexpr std::size_t kFilesOfModel = 4;
/// Files that are open for a moment: lists, reports, the system's.
constexpr std::size_t kOtherFiles = 4;
/// Of few descriptors, refused connections get this part.
constexpr std::size_t kPartForRefused = 8;

}  // namespace

std::optional<Descriptors> count_descriptors() {
    rlimit limit{};
    std::error_code error;
    std::filesystem::directory_iterator open("/proc/self/fd", error);
    if (error || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    // One of them is the iterator's own.
    const auto taken = static_cast<std::size_t>(std::distance(begin(open), end(open))) - 1;
    const std::size_t all = limit.rlim_cur;
    return Descriptors{all, all - std::min(all, taken)};
}

ConnectionRoom room_for_connections(ConnectionRoom wanted, std::size_t free, std::size_t models) {
    const std::size_t kept = kFilesOfModel * models + kOtherFiles;
    const std::size_t room = free - std::min(free, kept);
    ConnectionRoom granted;
    granted.refused = std::clamp<std::size_t>(room / kPartForRefused, 1, wanted.refused);
    granted.served =
        std::clamp<std::size_t>(room - std::min(room, granted.refused), 1, wanted.served);
    return granted;
}

void ReserveDescriptor::refill() {
    if (!reserve_) reserve_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool ReserveDescriptor::refuse_connection(int listening, std::string_view line) {
    reserve_.reset();
    UniqueFd connection(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool accepted = static_cast<bool>(connection);
    // A new connection has room for a line.
    if (accepted) (void)::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL);
    connection.reset();
    refill();
    return accepted;
}

}  // namespace gloved::daemon
