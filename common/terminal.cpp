#include "common/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>

#include "common/quoting.hpp"

namespace gloved {
namespace {

/// Number of bytes at the end of `text` that may begin an unfinished UTF-8 character.
std::size_t begun_character_bytes(std::string_view text) {
    for (std::size_t length = 1; length <= std::min<std::size_t>(3, text.size()); ++length) {
        const auto lead = static_cast<unsigned char>(text[text.size() - length]);
        if (lead < 0x80) return 0;
        if (lead < 0xC0) continue;
        const std::size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
        return length < whole ? length : 0;
    }
    return 0;
}

class TerminalBuffer : public std::streambuf {
  public:
    explicit TerminalBuffer(std::streambuf* terminal) : terminal_(terminal) {}

  protected:
    std::streamsize xsputn(const char* bytes, std::streamsize count) override {
        std::string shown;
        text_.append(shown, {bytes, static_cast<std::size_t>(count)});
        const auto size = static_cast<std::streamsize>(shown.size());
        return terminal_->sputn(shown.data(), size) == size ? count : 0;
    }
    int_type overflow(int_type byte) override {
        const char single = traits_type::to_char_type(byte);
        return xsputn(&single, 1) == 1 ? traits_type::not_eof(byte) : traits_type::eof();
    }
    int sync() override { return terminal_->pubsync(); }

  private:
    TerminalText text_;
    std::streambuf* const terminal_;
};

}  // namespace

std::string message_line(std::string_view program, std::string_view message) {
    return std::string(program) + ": " + without_control_bytes(message) + "\n";
}

void TerminalText::append(std::string& out, std::string_view bytes) {
    const std::string text = partial_character_.append(bytes);
    const std::size_t begun = begun_character_bytes(text);
    partial_character_ = text.substr(text.size() - begun);
    for (std::size_t at = 0; at < text.size() - begun;) {
        if (text[at] == '\n' || text[at] == '\t') {
            out += text[at++];
        } else {
            at = append_visible(out, text, at);
        }
    }
}

TerminalOutput::TerminalOutput() {
    if (::isatty(STDOUT_FILENO) != 1) return;
    buffer_ = std::make_unique<TerminalBuffer>(std::cout.rdbuf());
    replaced_ = std::cout.rdbuf(buffer_.get());
}

TerminalOutput::~TerminalOutput() {
    if (replaced_ != nullptr) std::cout.rdbuf(replaced_);
}

}  // namespace gloved
