// Cuts what the daemon sends into replies, as text or as JSON, in bounded memory. No sockets here.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "common/wire/reply.hpp"

namespace gloved::client {

/// The longest first line of a text reply that is believed; status lines have a few hundred bytes.
inline constexpr std::size_t kMaxStatusLineBytes = std::size_t{4} << 20;

/// A whole reply, or a part of a large one. Everything in it is valid until the reader is used
/// again.
struct ReplyPiece {
    std::string_view bytes;  ///< as they came, line ends and all
    bool first = true;       ///< the reply begins here
    bool last = true;        ///< the reply ends here; with `first`: this is all of it
    /// Of a text reply its status line, of a JSON object what that line would say: `ok`, `code` and
    /// `message`. `lines` is how many lines follow the first.
    const wire::StatusLine* status = nullptr;
};

/// Feed it what arrives, take replies out. Whether a reply is text or JSON shows in its first byte,
/// so that a FORMAT request needs no attention here.
class ReplyReader {
  public:
    /// Adds bytes.
    void append(std::string_view bytes);

    /// Whether nothing is here that was not taken.
    bool empty() const { return begin_ == buffer_.size(); }
    /// The next whole reply; or, when a reply has begun of which `max_bytes` or more are there,
    /// those, to be passed on before its end; nothing when more must arrive first. Error:
    /// bad_request, when the peer does not speak the protocol; there is no going on after it.
    Result<std::optional<ReplyPiece>> next(
        std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

  private:
    void discard_taken();
    Result<bool> begin_reply();
    Result<bool> begin_text();
    Result<bool> begin_json();
    void scan_lines();
    ReplyPiece take(std::size_t end, bool last);

    std::string buffer_;
    std::size_t begin_ = 0;    ///< of what has not been taken
    std::size_t scanned_ = 0;  ///< the line ends before it are counted
    bool in_reply_ = false;    ///< the first line is read, `status_` is that of the reply at hand
    bool partly_taken_ = false;
    std::size_t lines_left_ = 0;
    wire::StatusLine status_;
};

}  // namespace gloved::client
