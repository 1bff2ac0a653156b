#include "tests/integration/client_fake_daemon.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "common/wire/line_splitter.hpp"

namespace gloved::tests {

UniqueFd listen_at(const std::string& path, int backlog) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw std::runtime_error("socket path too long: " + path);
    path.copy(address.sun_path, path.size());
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), backlog) != 0) {
        throw std::runtime_error("cannot listen at " + path);
    }
    return listener;
}

UniqueFd accept_from(const UniqueFd& listener) {
    pollfd waiting{listener.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 10000) != 1) return UniqueFd();
    return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

FakeDaemon::FakeDaemon(const std::string& path, Script script)
    : script_(std::move(script)), listener_(listen_at(path, 16)) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    stop_read_ = UniqueFd(ends[0]);
    stop_write_ = UniqueFd(ends[1]);
    thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
    stop_write_.reset();
    thread_.join();
}

std::vector<std::string> FakeDaemon::lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
}

/// Waits for `fd`; false when the fake is to end.
bool FakeDaemon::readable(int fd) const {
    std::array<pollfd, 2> waiting = {pollfd{fd, POLLIN, 0}, pollfd{stop_read_.get(), POLLIN, 0}};
    ::poll(waiting.data(), waiting.size(), -1);
    return waiting[1].revents == 0;
}

void FakeDaemon::serve() {
    while (readable(listener_.get())) {
        const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (connection) converse(connection.get());
    }
}

void FakeDaemon::converse(int fd) {
    wire::LineSplitter splitter;
    std::array<char, 4096> chunk;
    while (readable(fd)) {
        const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), 0);
        if (got <= 0) return;
        splitter.append({chunk.data(), static_cast<std::size_t>(got)});
        while (true) {
            auto line = splitter.next();
            // What begins a line that is too long stands for it. A script closes after it, as the
            // daemon does.
            if (!line && splitter.too_long()) line = splitter.partial();
            if (!line) break;
            const std::string request(*line);
            {
                const std::lock_guard lock(mutex_);
                lines_.push_back(request);
            }
            const Action action = script_(request);
            if (::send(fd, action.send.data(), action.send.size(), MSG_NOSIGNAL) < 0) return;
            if (action.then_close) return;
        }
    }
}

}  // namespace gloved::tests
