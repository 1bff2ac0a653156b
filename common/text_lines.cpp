#include "common/text_lines.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/case_fold.hpp"
#include "common/error_with.hpp"
#include "common/quoting.hpp"

namespace gloved {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
/// Bytes that tell a byte order mark.
constexpr std::size_t kHeadBytes = 3;

}  // namespace

Result<std::size_t> begin_of_text(std::string_view head, const std::string& name) {
    if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) {
        return bad_source("{}: is UTF-16 text, or UTF-32; convert it: iconv -f UTF-16 -t UTF-8",
                          name);
    }
    return head.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

Result<std::string> read_text(const std::string& path, std::size_t max_bytes) {
    auto file = InputFile::open(path, NoWriter::refuse);
    if (!file) return file.error();
    auto text = file->read_all(max_bytes);
    if (!text) return text;
    const auto begin = begin_of_text(*text, path);
    if (!begin) return begin.error();
    text->erase(0, *begin);
    return text;
}

TextLines::TextLines(InputFile& file, std::size_t max_line_bytes)
    : TextLines(
          file.name(), [&file](std::span<char> buffer) { return file.read(buffer); },
          max_line_bytes) {}

TextLines::TextLines(std::string name, std::string_view text)
    : TextLines(std::move(name), [text](std::span<char> buffer) mutable {
          const std::size_t count = text.copy(buffer.data(), buffer.size());
          text.remove_prefix(count);
          return Result<std::size_t>(count);
      }) {}

Status TextLines::read_more() {
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    do {
        const std::size_t held = buffer_.size();
        buffer_.resize(held + kPieceBytes);
        const auto got = read_(std::span(buffer_).subspan(held));
        buffer_.resize(held + (got ? *got : 0));
        if (!got) return got.error();
        is_ended_ = *got == 0;
    } while (!is_begun_ && !is_ended_ && buffer_.size() < kHeadBytes);
    if (is_begun_) return {};
    is_begun_ = true;
    const auto begin = begin_of_text(buffer_, name_);
    if (!begin) return begin.error();
    begin_ = scanned_ = *begin;
    return {};
}

Result<std::optional<std::string_view>> TextLines::next() {
    for (;;) {
        const std::size_t end = buffer_.find('\n', scanned_);
        if (end != std::string::npos) return take(end);
        if (is_ended_) {
            if (begin_ == buffer_.size()) return std::optional<std::string_view>();
            return take(buffer_.size());
        }
        scanned_ = buffer_.size();
        // One byte more may be the CR of a CR LF.
        if (scanned_ - begin_ > max_line_bytes_ + 1) return take(scanned_);
        if (Status read = read_more(); !read) return read.error();
    }
}

Result<std::optional<std::string_view>> TextLines::take(std::size_t end) {
    std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = scanned_ = std::min(end + 1, buffer_.size());
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find('\0') != std::string_view::npos) {
        return fault(
            "holds a NUL byte, as no text does; if it is UTF-16, convert it: iconv -f UTF-16LE -t "
            "UTF-8");
    }
    if (line.size() > max_line_bytes_) {
        return fault(fmt::format("is longer than {} KiB, the limit of a line; is this the file?",
                                 max_line_bytes_ >> 10));
    }
    return std::optional(line);
}

Result<std::optional<std::string_view>> TextLines::next_word() {
    for (;;) {
        auto line = next();
        if (!line || !*line || !(*line)->empty()) return line;
    }
}

Error TextLines::fault(std::string_view what) const {
    return bad_source("{}: line {}: {}", name_, number_, what);
}

std::optional<std::string> TextLines::heading_note(std::string_view line) const {
    if (number_ != 1 || line.size() > kHeadBytes + 2) return std::nullopt;
    const std::string folded = fold_case(line);
    if (folded != "word" && folded != "words") return std::nullopt;
    return fmt::format("{}: line 1: {} is taken for a word; if it is a heading, remove it", name_,
                       printable(line));
}

}  // namespace gloved
