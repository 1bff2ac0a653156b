#include "tests/support/daemon.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "common/wire/reply.hpp"

namespace gloved::tests {

std::string without_us(const std::string& text) {
    return std::regex_replace(text, std::regex("( us=|\"us\":)[0-9]+"), "$1N");
}

std::string field(const ReplyText& reply, std::string_view key) {
    const auto status = wire::parse_status_line(reply.status);
    return status ? std::string(status->field(key)) : "";
}

std::string ReplyText::normalised() const {
    std::string text = without_us(status);
    for (const std::string& line : lines) text += "\n" + line;
    return text;
}

Connection::Connection(const std::string& socket_path, std::chrono::seconds timeout) {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
    const timeval wait{timeout.count(), 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd_);
        throw std::runtime_error("cannot connect to " + socket_path + ": " + std::strerror(errno));
    }
}

Connection::~Connection() { ::close(fd_); }

bool Connection::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

std::optional<std::string> Connection::read_line() {
    while (true) {
        if (const auto end = buffer_.find('\n', begin_); end != std::string::npos) {
            std::string line = buffer_.substr(begin_, end - begin_);
            begin_ = end + 1;
            return line;
        }
        buffer_.erase(0, begin_);
        begin_ = 0;
        char bytes[65536];
        const ssize_t size = ::recv(fd_, bytes, sizeof bytes, 0);
        if (size <= 0) return std::nullopt;
        buffer_.append(bytes, static_cast<std::size_t>(size));
    }
}

ReplyText Connection::read_reply() {
    ReplyText reply;
    const auto first = read_line();
    if (!first) {
        ADD_FAILURE() << "the stream ended where a reply should start";
        return reply;
    }
    reply.status = *first;
    if (first->starts_with('{')) return reply;  // after FORMAT json a reply is one line
    const auto status = wire::parse_status_line(*first);
    if (!status) {
        ADD_FAILURE() << status.error().message;
        return reply;
    }
    for (std::size_t i = 0; i < status->lines; ++i) {
        const auto line = read_line();
        if (!line) {
            ADD_FAILURE() << "the stream ended after line " << i << " of " << status->lines;
            return reply;
        }
        reply.lines.push_back(*line);
    }
    return reply;
}

ReplyText Connection::ask(const std::string& line) {
    EXPECT_TRUE(send(line + "\n"));
    return read_reply();
}

void Connection::finish_sending() { ::shutdown(fd_, SHUT_WR); }

bool Connection::closed_by_peer() {
    if (begin_ < buffer_.size()) return false;
    char byte;
    const ssize_t size = ::recv(fd_, &byte, 1, 0);
    return size == 0 || (size < 0 && errno == ECONNRESET);
}

std::string Connection::read_to_end() {
    char bytes[65536];
    ssize_t size = 0;
    while ((size = ::recv(fd_, bytes, sizeof bytes, 0)) > 0) {
    }
    return size == 0 ? "the end" : std::strerror(errno);
}

Daemon::Daemon(const std::string& model, std::vector<std::string> options) {
    socket_path_ = dir_ / "gloved.sock";
    std::vector<std::string> arguments = {program("gloved"), "--model", model, "--socket",
                                          socket_path_};
    const char* const threads = std::getenv("GLOVED_TEST_IO_THREADS");
    if (threads != nullptr && std::ranges::find(options, "--io-threads") == options.end())
        arguments.insert(arguments.end(), {"--io-threads", threads});
    arguments.insert(arguments.end(), options.begin(), options.end());
    process_ = std::make_unique<Background>(arguments);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
        try {
            Connection(socket_path_).ask("PING");
            return;
        } catch (const std::runtime_error&) {
            if (!process_->running() || std::chrono::steady_clock::now() > deadline) {
                throw std::runtime_error("gloved did not start:\n" + process_->output());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }
}

Finished Daemon::stop() {
    stopped_ = true;
    process_->signal(SIGTERM);
    return process_->wait(std::chrono::seconds(30));
}

Daemon::~Daemon() {
    if (stopped_) return;
    const Finished finished = stop();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

const std::string& sample_model() {
    static const TempDir dir;
    static const std::string path = [] {
        const std::string target = dir / "glove";
        const Finished finished = run(
            {program("gloved-convert"), source_path("data/glove.6B.100d.sample.txt.gz"), target});
        if (finished.exit_code != 0)
            throw std::runtime_error("gloved-convert failed: " + finished.err);
        return target;
    }();
    return path;
}

}  // namespace gloved::tests
