// Text on its way to people. Words, names and messages come from files and peers: none of their
// bytes may control a terminal, and none may forge a line.
#pragma once

#include <ios>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace gloved {

/// «PROGRAM: MESSAGE» and LF, for standard error. The message is made one line of valid UTF-8.
std::string message_line(std::string_view program, std::string_view message);

/// Makes text fit for a terminal. LF and TAB stay; other control bytes, and bytes that are no
/// UTF-8, become \xHH.
class TerminalText {
  public:
    /// Appends what the terminal gets for `bytes`. The bytes of a character that ends in the next
    /// call wait for it.
    void append(std::string& out, std::string_view bytes);

  private:
    std::string begun_;  // the first bytes of a character
};

/// While it lives, std::cout writes TerminalText where standard output is a terminal. To a file or
/// a pipe bytes go as they are.
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
