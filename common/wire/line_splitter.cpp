#include "common/wire/line_splitter.hpp"

namespace gloved::wire {

void LineSplitter::append(std::string_view bytes) {
    if (too_long_) return;
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    buffer_ += bytes;
}

std::optional<std::string_view> LineSplitter::next() {
    if (too_long_) return std::nullopt;
    const std::size_t end = buffer_.find('\n', scanned_);
    const std::size_t length = (end == std::string::npos ? buffer_.size() : end) - begin_;
    if (length > max_line_bytes_) {
        too_long_ = true;
        return std::nullopt;
    }
    if (end == std::string::npos) {
        scanned_ = buffer_.size();
        // Frees the buffer, since ten thousand idle connections would hold a lot. Assigning an
        // empty string would keep it.
        if (begin_ == buffer_.size()) {
            std::string().swap(buffer_);
            begin_ = scanned_ = 0;
        }
        return std::nullopt;
    }
    std::string_view line(buffer_.data() + begin_, length);
    begin_ = scanned_ = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
}

std::optional<std::string> LineSplitter::take_rest() {
    if (too_long_ || begin_ == buffer_.size()) return std::nullopt;
    std::string rest = buffer_.substr(begin_);
    buffer_.clear();
    begin_ = scanned_ = 0;
    if (rest.back() == '\r') rest.pop_back();
    return rest;
}

}  // namespace gloved::wire
