#include "client/lines_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "client/input_lines.hpp"
#include "client/pipeline.hpp"
#include "client/reply_reader.hpp"
#include "common/error_with.hpp"
#include "common/files.hpp"
#include "common/terminal.hpp"

namespace gloved::client {
namespace {

/// Output is buffered up to this size: a write per short reply would take longer than the replies.
constexpr std::size_t kMaxBufferedBytes = 65536;

constexpr int kNoInput = -1;

class LinesRun {
  public:
    /// Appends to the output what is to be written of a piece of a reply.
    using Render = std::function<Status(const ReplyPiece& piece, std::string& output)>;

    LinesRun(RetryingConnection& peer, int output_fd, Render render)
        : pipeline_(peer, [this](const ReplyPiece& piece) { return take(piece); }),
          render_(std::move(render)),
          output_fd_(output_fd),
          to_terminal_(::isatty(output_fd) == 1) {}

    void ask(std::string line) { pipeline_.push(std::move(line)); }

    /// Runs until the requests of `ask` and of `input_fd` have their replies.
    Result<bool> answer(int input_fd) {
        bool open = input_fd != kNoInput;
        while (true) {
            if (Status filled = fill(open); !filled) return filled.error();
            if (!open && !pipeline_.has_pending()) return all_ok_;
            const auto readable =
                pipeline_.step(open && pipeline_.has_room() ? input_fd : kNoInput);
            if (Status flushed = flush(); !flushed) return flushed.error();
            if (!readable)
                return input_fd == kNoInput ? readable.error() : with_count(readable.error());
            if (!*readable) continue;
            const auto more = read(input_fd);
            if (!more) return with_count(more.error());
            open = *more;
        }
    }

  private:
    /// Pushes the lines read so far, while there is room.
    Status fill(bool open) {
        while (pipeline_.has_room()) {
            auto line = lines_.next();
            if (line && !*line && !open) line = lines_.finish();
            if (!line) return line.error();
            if (!*line) return {};
            pipeline_.push(**std::move(line));
        }
        return {};
    }

    /// Reads a chunk. Returns false at the end of the input.
    Result<bool> read(int fd) {
        std::array<char, 65536> chunk;
        const ssize_t got = ::read(fd, chunk.data(), chunk.size());
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return system_error("the input", "cannot be read", errno);
        if (got > 0) lines_.append({chunk.data(), static_cast<std::size_t>(got)});
        return got != 0;
    }

    Status take(const ReplyPiece& piece) {
        all_ok_ = all_ok_ && piece.status->ok;
        if (Status rendered = render_(piece, output_); !rendered) return rendered;
        if (piece.last) ++answered_;
        return output_.size() < kMaxBufferedBytes ? Status() : flush();
    }

    Status flush() {
        std::string shown;
        if (to_terminal_) terminal_text_.append(shown, output_);
        std::string_view left = to_terminal_ ? shown : output_;
        while (!left.empty()) {
            const ssize_t written = ::write(output_fd_, left.data(), left.size());
            if (written >= 0) {
                left.remove_prefix(static_cast<std::size_t>(written));
            } else if (errno == EAGAIN) {
                pollfd waiting{output_fd_, POLLOUT, 0};
                ::poll(&waiting, 1, -1);
            } else if (errno != EINTR) {
                return system_error("the answers", "cannot be written", errno);
            }
        }
        output_.clear();
        return {};
    }

    Error with_count(Error error) const {
        error.message += fmt::format("; {} {} complete", answered_,
                                     answered_ == 1 ? "answer is" : "answers are");
        return error;
    }

    Pipeline pipeline_;
    Render render_;
    InputLines lines_;
    std::string output_;
    int output_fd_;
    bool to_terminal_;
    TerminalText terminal_text_;
    std::uint64_t answered_ = 0;
    bool all_ok_ = true;
};

/// The bytes of a text reply without those of its status line, which is all that an ERR has.
std::string_view without_status(const ReplyPiece& piece) {
    return piece.bytes.substr(piece.first ? piece.bytes.find('\n') + 1 : 0);
}

/// Sends one request and calls `render` with its reply. Returns the reply's status.
Result<wire::StatusLine> answer(RetryingConnection& peer, std::string line, int output_fd,
                                const LinesRun::Render& render) {
    wire::StatusLine status;
    LinesRun run(peer, output_fd, [&](const ReplyPiece& piece, std::string& output) {
        if (piece.first) status = *piece.status;
        return render(piece, output);
    });
    run.ask(std::move(line));
    if (const auto answered = run.answer(kNoInput); !answered) return answered.error();
    return status;
}

}  // namespace

Result<bool> run_lines(RetryingConnection& peer, int input_fd, int output_fd) {
    // Connects first, so that a user who types the requests learns at once if no daemon is there.
    if (const auto connected = peer.connect(); !connected) return connected.error();
    const auto render = [](const ReplyPiece& piece, std::string& output) -> Status {
        output += piece.bytes;
        return {};
    };
    return LinesRun(peer, output_fd, render).answer(input_fd);
}

Result<wire::StatusLine> print_answer(RetryingConnection& peer, std::string line, int output_fd) {
    const auto render = [&](const ReplyPiece& piece, std::string& output) -> Status {
        output += peer.settings().json ? piece.bytes : without_status(piece);
        return {};
    };
    return answer(peer, std::move(line), output_fd, render);
}

Result<wire::StatusLine> print_table(RetryingConnection& peer, std::string line, ReplyTable table,
                                     int output_fd) {
    std::string generation;  // of the model that the first request asked
    if (!table.first_request().empty()) {
        const auto take = [&](const ReplyPiece& piece, std::string&) -> Status {
            table.take_first(without_status(piece));
            return {};
        };
        auto first = answer(peer, table.first_request(), output_fd, take);
        if (!first || !first->ok) return first;
        generation = first->field("generation");
    }
    const auto render = [&](const ReplyPiece& piece, std::string& output) -> Status {
        if (!piece.status->ok) return {};
        if (!generation.empty() && generation != piece.status->field("generation"))
            return conflict("the model was replaced while it was asked; ask again");
        table.take(without_status(piece), output);
        if (piece.last) table.finish(output);
        return {};
    };
    return answer(peer, std::move(line), output_fd, render);
}

}  // namespace gloved::client
