#include "client/reply_reader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved::client {
namespace {

/// The beginning of an OK reply in JSON (PROTOCOL.md fixes the order of the members). With it, a
/// large reply need not be parsed. Other spellings are parsed.
constexpr std::string_view kJsonOk = R"({"ok":true)";

Error foreign(std::string_view line) {
    return bad_request("{} is not a reply; is this the socket of a gloved daemon?",
                       printable(line));
}

/// Parses ok, code and message of a JSON reply.
Result<wire::StatusLine> parse_object(std::string_view line) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) return foreign(line);
    wire::StatusLine status;
    const auto ok = object.find("ok");
    status.ok = ok != object.end() && *ok == true;
    if (status.ok) return status;
    const auto code = object.find("code");
    const auto message = object.find("message");
    if (ok == object.end() || *ok != false || code == object.end() || !code->is_string() ||
        message == object.end() || !message->is_string()) {
        return foreign(line);
    }
    status.code = code->get<std::string>();
    status.message = message->get<std::string>();
    return status;
}

}  // namespace

void ReplyReader::append(std::string_view bytes) {
    discard_taken();
    buffer_ += bytes;
}

Result<std::optional<ReplyPiece>> ReplyReader::next(std::size_t max_bytes) {
    const char* const arrived = buffer_.data() + buffer_.size();
    const char* const end = framer_.take(buffer_.data() + scanned_, arrived);
    scanned_ = static_cast<std::size_t>((end != nullptr ? end : arrived) - buffer_.data());
    if (framer_.line_too_long()) {
        return bad_request("a line of more than {} bytes; is this the socket of a gloved daemon?",
                           wire::kMaxReplyLineBytes);
    }
    if (!has_status_) {
        const auto read = read_status(end != nullptr);
        if (!read) return read.error();
        has_status_ = *read;
    }
    if (end != nullptr) return std::optional(take(true));
    // A piece of an unfinished reply may end anywhere.
    if (has_status_ && scanned_ - begin_ >= max_bytes) return std::optional(take(false));
    return std::optional<ReplyPiece>();
}

/// Erases what was taken once it is half of the buffer, so that the cost stays linear.
void ReplyReader::discard_taken() {
    if (begin_ < buffer_.size() / 2) return;
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
}

/// Reads the status of the current reply; `ended`: the framer has found its end. Returns false if
/// more must arrive first.
Result<bool> ReplyReader::read_status(bool ended) {
    const std::string_view there = std::string_view(buffer_).substr(begin_, scanned_ - begin_);
    if (there.starts_with(kJsonOk)) {
        status_ = {};
        status_.ok = true;
        return true;
    }
    const bool is_json = there.starts_with('{');
    const bool is_there = ended || framer_.broken() || (framer_.in_reply() && !is_json);
    if (!is_there && (!is_json || there.size() < wire::kMaxReplyLineBytes)) return false;
    const std::string_view line = there.substr(0, there.find('\n'));
    auto status = is_json ? parse_object(line) : wire::parse_status_line(line);
    if (!status) return status.error();
    if (framer_.broken()) return foreign(line);
    status_ = *std::move(status);
    return true;
}

/// Takes what the framer has seen.
ReplyPiece ReplyReader::take(bool last) {
    const ReplyPiece piece{std::string_view(buffer_).substr(begin_, scanned_ - begin_),
                           !partly_taken_, last, &status_};
    begin_ = scanned_;
    partly_taken_ = !last;
    has_status_ = !last;
    return piece;
}

}  // namespace gloved::client
