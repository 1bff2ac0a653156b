// Escapes text for terminals. Words, names and messages may hold any bytes of files and peers. On a
// terminal these must not act as control sequences, and on stderr not look like further lines.
#pragma once

#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace gloved {

/// Formats «PROGRAM: MESSAGE» and LF, for stderr, as one line of valid UTF-8
/// (without_control_bytes).
std::string message_line(std::string_view program, std::string_view message);

/// Escapes text for a terminal, which may come in pieces. LF and TAB stay; other control bytes and
/// invalid UTF-8 become \xHH.
class TerminalText {
  public:
    /// Appends `bytes`, escaped, to `out`. If they end within a UTF-8 character, its first bytes
    /// are kept for the next call; without a next call they are lost.
    void append(std::string& out, std::string_view bytes);

  private:
    std::string partial_character_;  // its bytes so far
};

/// While it lives, all output of std::cout is escaped by TerminalText if stdout is a terminal.
/// Files and pipes get the bytes unchanged. One per program, in main.
class TerminalOutput {
  public:
    TerminalOutput();
    TerminalOutput(const TerminalOutput&) = delete;
    TerminalOutput& operator=(const TerminalOutput&) = delete;
    ~TerminalOutput();

  private:
    std::unique_ptr<std::streambuf> buffer_;
    std::streambuf* replaced_ = nullptr;
};

}  // namespace gloved
