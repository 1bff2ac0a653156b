#include "client/input_lines.hpp"

#include <algorithm>
#include <utility>

#include "common/text_lines.hpp"

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

Result<std::optional<std::string>> InputLines::next() {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) return take(end);
    scanned_ = buffer_.size();
    return std::optional<std::string>();
}

Result<std::optional<std::string>> InputLines::finish() {
    if (begin_ == buffer_.size()) return std::optional<std::string>();
    return take(buffer_.size());
}

Result<std::optional<std::string>> InputLines::take(std::size_t end) {
    if (std::exchange(is_first_, false)) {
        const auto mark = begin_of_text(std::string_view(buffer_).substr(begin_), "the input");
        if (!mark) return mark.error();
        begin_ += *mark;
    }
    std::string line = buffer_.substr(begin_, std::min(end - begin_, kKept));
    begin_ = scanned_ = std::min(end + 1, buffer_.size());
    return std::optional(std::move(line));
}

}  // namespace gloved::client
