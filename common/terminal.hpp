// Escapes text for terminals. Words, names and messages come from files and peers: their bytes must
// not control a terminal or forge a line.
#pragma once

#include <ios>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace gloved {

/// «PROGRAM: MESSAGE» and LF, for stderr, as one line of valid UTF-8.
std::string message_line(std::string_view program, std::string_view message);

/// Escapes text for a terminal. LF and TAB stay; other control bytes and invalid UTF-8 become \xHH.
class TerminalText {
  public:
    /// Appends the escaped `bytes`. Keeps the first bytes of a character that continues in the next
    /// call.
    void append(std::string& out, std::string_view bytes);

  private:
    std::string partial_character_;  // first bytes of an unfinished one
};

/// Makes std::cout write TerminalText during its lifetime if stdout is a terminal. Files and pipes
/// get the bytes unchanged.
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
