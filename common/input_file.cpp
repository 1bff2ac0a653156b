#include "common/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "common/error_with.hpp"
#include "common/program_main.hpp"

namespace gloved {
namespace {

constexpr int kPollMs = 200;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

}  // namespace

Result<InputFile> InputFile::open(const std::string& path, NoWriter no_writer,
                                  const std::atomic<bool>* stop) {
    InputFile file(path);
    file.stop_ = stop;
    file.no_writer_ = no_writer;
    file.fd_ = STDIN_FILENO;
    if (path != "-") {
        // O_NONBLOCK: opening a FIFO without a writer would block for ever.
        file.owned_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
        if (!file.owned_) return system_error(path, "cannot open", errno);
        file.fd_ = file.owned_.get();
    }
    auto status = file_status(file.fd_, path);
    if (!status) return status.error();
    if (S_ISDIR(status->st_mode))
        return error_with(ErrorCode::io, "{}: is a directory, not a file", path);
    file.status_ = *status;
    file.awaits_writer_ = file.owned_ && S_ISFIFO(status->st_mode);
    return file;
}

std::uint64_t InputFile::size_bytes() const {
    return is_regular() ? static_cast<std::uint64_t>(status_.st_size) : 0;
}

Result<std::size_t> InputFile::read(std::span<char> buffer) {
    for (;;) {
        if (stop_ != nullptr && stop_->load(std::memory_order_relaxed))
            return Error{ErrorCode::interrupted, "interrupted"};
        // With a time limit: a signal between the check of the flag and the call would otherwise be
        // noticed only when the pipe has data.
        pollfd waiting{fd_, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, kPollMs);
        if (ready < 0 && errno != EINTR) return system_error(name_, "cannot read", errno);
        // Linux reports no end on a FIFO until the first writer has come and gone.
        if (ready <= 0 && !awaits_writer_) continue;
        const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
        if (got > 0) {
            awaits_writer_ = false;
            return static_cast<std::size_t>(got);
        }
        if (got == 0 && (ready > 0 || !awaits_writer_)) return std::size_t{0};
        if (got == 0) {
            if (Status waits = report_no_writer(); !waits) return waits.error();
        } else if (errno == EAGAIN) {
            awaits_writer_ = false;  // it is there, and has written nothing yet
        } else if (errno != EINTR) {
            return system_error(name_, "cannot read", errno);
        }
    }
}

Result<std::string> InputFile::read_all(std::size_t max_bytes) {
    std::string text;
    for (;;) {
        const std::size_t held = text.size();
        text.resize(held + kPieceBytes);
        const auto got = read(std::span(text).subspan(held));
        if (!got) return got.error();
        text.resize(held + *got);
        if (*got == 0) return text;
        if (text.size() > max_bytes)
            return error_with(ErrorCode::io, "{}: more than {} bytes", name_, max_bytes);
    }
}

Status InputFile::check_unchanged() const {
    if (!is_regular()) return {};
    const auto now = file_status(fd_, name_);
    if (!now) return now.error();
    if (now->st_size == status_.st_size && now->st_mtim.tv_sec == status_.st_mtim.tv_sec &&
        now->st_mtim.tv_nsec == status_.st_mtim.tv_nsec)
        return {};
    return error_with(ErrorCode::io,
                      "{}: was written to while it was read; write a new file, and rename it to "
                      "this name",
                      name_);
}

Status InputFile::report_no_writer() {
    const auto now = std::chrono::steady_clock::now();
    if (!waiting_since_) waiting_since_ = now;
    if (has_told_ || now - *waiting_since_ < kMaxWriterWait) return {};
    if (no_writer_ == NoWriter::refuse) {
        return error_with(ErrorCode::io,
                          "{}: is a FIFO that no program writes to; start its writer first, or "
                          "give a file",
                          name_);
    }
    has_told_ = true;
    say_on_stderr(program_name(),
                  fmt::format("{}: waiting for a program that writes to this FIFO", name_));
    return {};
}

}  // namespace gloved
