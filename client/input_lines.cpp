#include "client/input_lines.hpp"

#include <algorithm>

namespace gloved::client {

void InputLines::append(std::string_view bytes) {
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    if (scanned_ == buffer_.size() && scanned_ > kKept) {
        // The buffer holds only the beginning of a line that is too long.
        buffer_.resize(kKept);
        scanned_ = kKept;
    }
    buffer_ += bytes;
}

std::optional<std::string> InputLines::next() {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end == std::string::npos) {
        scanned_ = buffer_.size();
        return std::nullopt;
    }
    std::string line = buffer_.substr(begin_, std::min(end - begin_, kKept));
    begin_ = scanned_ = end + 1;
    return line;
}

std::optional<std::string> InputLines::finish() {
    if (begin_ == buffer_.size()) return std::nullopt;
    std::string line = buffer_.substr(begin_, kKept);
    begin_ = scanned_ = buffer_.size();
    return line;
}

}  // namespace gloved::client
