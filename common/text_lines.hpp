// TextLines: reads a file of words or lines, in pieces. All programs read their word files with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/input_file.hpp"
#include "common/result.hpp"

namespace gloved {

/// The bytes with which some editors begin a text in UTF-8. They are no part of it.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// Maximum length of a line, without its end: no word of a model, and no request, is longer.
inline constexpr std::size_t kMaxTextLineBytes = std::size_t{64} << 10;

/// How many bytes come before the first line of a text that begins with `head`: those of
/// kByteOrderMark, or 0. Error: bad_source if it is UTF-16 or UTF-32, with the remedy; `name` is
/// the file's.
Result<std::size_t> begin_of_text(std::string_view head, const std::string& name);

/// Reads all of the text file `path`, at most `max_bytes`, for a program that nobody watches
/// (NoWriter::refuse). Drops a byte order mark. Errors: those of InputFile and begin_of_text.
Result<std::string> read_text(const std::string& path, std::size_t max_bytes);

/// Reads lines in bounded memory. Drops a byte order mark, and the CR of a CR LF. A last line may
/// lack its LF. Not safe for concurrent use.
class TextLines {
  public:
    /// Fills the buffer with some of the next bytes, and returns their number; 0 is the end.
    using Read = std::function<Result<std::size_t>(std::span<char> buffer)>;

    /// `name` is the file's in messages.
    TextLines(std::string name, Read read, std::size_t max_line_bytes = kMaxTextLineBytes)
        : name_(std::move(name)), read_(std::move(read)), max_line_bytes_(max_line_bytes) {}
    /// The lines of `file`, which must outlive them.
    explicit TextLines(InputFile& file, std::size_t max_line_bytes = kMaxTextLineBytes);
    /// The lines of `text`, which must outlive them.
    TextLines(std::string name, std::string_view text);

    /// The next line, also if it is empty; nullopt at the end. The view is valid until the next
    /// call. Errors: those of `read`; bad_source, which names file and line, for a NUL byte, a line
    /// of more than `max_line_bytes`, or UTF-16.
    Result<std::optional<std::string_view>> next();
    /// As `next`, but without empty lines.
    Result<std::optional<std::string_view>> next_word();

    const std::string& name() const { return name_; }
    /// The number of the line that `next` returned last, from 1.
    std::uint64_t number() const { return number_; }
    /// «NAME: line NUMBER: WHAT», a bad_source about that line.
    Error fault(std::string_view what) const;
    /// What to tell the user if line 1, returned last, is «word» or «words», as a table's heading
    /// is: that it was taken for a word. Otherwise nothing.
    std::optional<std::string> heading_note(std::string_view line) const;

  private:
    Status read_more();
    Result<std::optional<std::string_view>> take(std::size_t end);

    std::string name_;
    Read read_;
    std::size_t max_line_bytes_;
    std::string buffer_;
    std::size_t begin_ = 0;    // of the next line
    std::size_t scanned_ = 0;  // no LF from `begin_` to here
    std::uint64_t number_ = 0;
    bool is_begun_ = false;
    bool is_ended_ = false;
};

}  // namespace gloved
