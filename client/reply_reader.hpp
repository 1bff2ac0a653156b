// Splits the bytes that a client receives into replies, text or JSON, in bounded memory.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/reply_framer.hpp"

namespace gloved::client {

/// A complete reply, or a piece of a large one. Views the reader's memory: valid until the next
/// call of the reader.
struct ReplyPiece {
    std::string_view bytes;  ///< as received, with line ends
    bool first = true;       ///< the reply begins here
    bool last = true;        ///< the reply ends here; with `first`: it is complete
    /// The status line of a text reply. For JSON: `ok`, `code` and `message` of the object. Its
    /// `lines` is the number of lines after the first, 0 for JSON.
    const wire::StatusLine* status = nullptr;
};

/// Append bytes as they arrive, then take replies until `next` returns nullopt.
class ReplyReader {
  public:
    /// Adds bytes.
    void append(std::string_view bytes);

    /// Whether all bytes were taken.
    bool empty() const { return begin_ == buffer_.size(); }
    /// Takes the next complete reply. If `max_bytes` of an incomplete reply have arrived, takes
    /// these as a piece. nullopt if more bytes must arrive first. Error: bad_request if the peer
    /// does not speak the protocol, or a line of text is too long; the reader cannot be used
    /// afterwards.
    Result<std::optional<ReplyPiece>> next(
        std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

  private:
    void discard_taken();
    Result<bool> read_status(bool ended);
    ReplyPiece take(bool last);

    std::string buffer_;
    std::size_t begin_ = 0;    ///< of the bytes that are not taken yet
    std::size_t scanned_ = 0;  ///< the framer has seen the bytes before it
    wire::ReplyFramer framer_;
    bool has_status_ = false;  ///< `status_` is the status of the current reply
    bool partly_taken_ = false;
    wire::StatusLine status_;
};

}  // namespace gloved::client
