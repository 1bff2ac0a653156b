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
    return error_with(ErrorCode::bad_request,
                      "{} is not a reply; is this the socket of a gloved daemon?", printable(line));
}

Error too_long() {
    return error_with(ErrorCode::bad_request,
                      "a line of more than {} bytes; is this the socket of a gloved daemon?",
                      kMaxReplyLineBytes);
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
    if (!in_reply_) {
        const auto begun = begin_reply();
        if (!begun) return begun.error();
        if (!*begun) return std::optional<ReplyPiece>();
    }
    if (Status scanned = scan_lines(); !scanned) return scanned.error();
    if (lines_left_ == 0) return std::optional(take(scanned_, true));
    // A piece of an unfinished reply may end anywhere.
    if (buffer_.size() - begin_ >= max_bytes) return std::optional(take(buffer_.size(), false));
    return std::optional<ReplyPiece>();
}

/// Erases what was taken once it is half of the buffer, so that the cost stays linear.
void ReplyReader::discard_taken() {
    if (begin_ < buffer_.size() / 2) return;
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
}

/// Reads the status of the next reply. Returns false if more must arrive first.
Result<bool> ReplyReader::begin_reply() {
    if (begin_ == buffer_.size()) return false;
    const auto begun = buffer_[begin_] == '{' ? begin_json() : begin_text();
    if (!begun) return begun.error();
    in_reply_ = *begun;
    return in_reply_;
}

Result<bool> ReplyReader::begin_text() {
    const std::size_t end = buffer_.find('\n', scanned_);
    const std::size_t length = std::min(end, buffer_.size()) - begin_;
    if (length > kMaxReplyLineBytes) return too_long();
    if (end == std::string::npos) {
        scanned_ = buffer_.size();
        return false;
    }
    auto status = wire::parse_status_line(std::string_view(buffer_).substr(begin_, length));
    if (!status) return status.error();
    status_ = *std::move(status);
    lines_left_ = status_.lines;
    is_json_ = false;
    scanned_ = end + 1;
    return true;
}

Result<bool> ReplyReader::begin_json() {
    const std::string_view there = std::string_view(buffer_).substr(begin_);
    const std::size_t end = buffer_.find('\n', begin_);
    if (there.starts_with(kJsonOk)) {
        status_ = {};
        status_.ok = true;
    } else if (end != std::string::npos) {
        auto status = parse_object(there.substr(0, end - begin_));
        if (!status) return status.error();
        status_ = *std::move(status);
    } else if (there.size() >= kMaxReplyLineBytes) {
        return foreign(there);
    } else {
        return false;
    }
    lines_left_ = 1;
    is_json_ = true;
    scanned_ = begin_;
    return true;
}

/// Counts line ends up to the end of the current reply.
Status ReplyReader::scan_lines() {
    while (lines_left_ > 0) {
        const std::size_t found = buffer_.find('\n', scanned_);
        const std::size_t end = std::min(found, buffer_.size());
        line_bytes_ += end - scanned_;
        // An object is a line of any length.
        if (!is_json_ && line_bytes_ > kMaxReplyLineBytes) return too_long();
        scanned_ = end;
        if (found == std::string::npos) return {};
        ++scanned_;
        line_bytes_ = 0;
        --lines_left_;
    }
    return {};
}

ReplyPiece ReplyReader::take(std::size_t end, bool last) {
    const ReplyPiece piece{std::string_view(buffer_).substr(begin_, end - begin_), !partly_taken_,
                           last, &status_};
    begin_ = end;
    partly_taken_ = !last;
    in_reply_ = !last;
    return piece;
}

}  // namespace gloved::client
