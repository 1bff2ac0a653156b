// What people get to see of bytes that come from files and peers.
#include "common/terminal.hpp"

#include "common/files.hpp"
#include "common/program_main.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace gloved {
namespace {

std::string shown(std::initializer_list<std::string_view> pieces) {
    TerminalText text;
    std::string out;
    for (const std::string_view piece : pieces) text.append(out, piece);
    return out;
}

TEST(ProgramMain, SaysThatMemoryIsShortAndWhatToDo) {
    const auto run = [](int, char**) -> int { throw std::bad_alloc(); };
    EXPECT_EXIT(std::exit(program_main("prog", run, 0, nullptr)), testing::ExitedWithCode(1),
                "prog: out of memory: free some, or raise this program's limit");
}

TEST(ProgramMain, TellsARemedyWhereThereIsOne) {
    const auto text_of = [](const std::exception& error) { return std::string(explain(error)); };
    EXPECT_EQ(text_of(std::bad_alloc()).substr(0, 20), "out of memory: free ");
    const std::system_error no_thread(EAGAIN, std::generic_category());
    EXPECT_EQ(text_of(no_thread).substr(0, 39), "no thread can be started: out of memory");
    const std::system_error other(ENOENT, std::generic_category());
    EXPECT_EQ(text_of(other), other.what());
    EXPECT_EQ(text_of(std::runtime_error("cause")), "cause");
    EXPECT_TRUE(system_error("f", "cannot open", EMFILE)
                    .message.ends_with("Too many open files; allow more with ulimit -n, or "
                                       "LimitNOFILE= of the service"));
}

TEST(MessageLine, IsOneLineWhateverIsInIt) {
    EXPECT_EQ(message_line("prog", "a\nprog: forged\x1B[31m\xFF é"),
              "prog: a\\x0Aprog: forged\\x1B[31m\\xFF é\n");
}

TEST(TerminalText, KeepsLinesAndColumnsAndNoOtherControlBytes) {
    EXPECT_EQ(shown({"a\tb\nnaïve «x» \\ \"\n"}), "a\tb\nnaïve «x» \\ \"\n");
    EXPECT_EQ(shown({"\x1B[2J\r\x7F\b\n"}), "\\x1B[2J\\x0D\\x7F\\x08\n");
    EXPECT_EQ(shown({std::string_view("\0", 1)}), "\\x00");
    EXPECT_EQ(shown({"\xC2\x9B"
                     "31m\xFF\xED\xA0\x80\n"}),
              "\\xC2\\x9B31m\\xFF\\xED\\xA0\\x80\n");
}

// Answers come in pieces that end anywhere.
TEST(TerminalText, APieceMayEndInsideACharacter) {
    const std::string_view text = "é «» \xC2\x9B \U0001F600\xF0\x9F\n\xE2\x82\n";
    for (std::size_t first = 0; first <= text.size(); ++first) {
        for (std::size_t second = first; second <= text.size(); ++second) {
            EXPECT_EQ(shown({text.substr(0, first), text.substr(first, second - first),
                             text.substr(second)}),
                      "é «» \\xC2\\x9B \U0001F600\\xF0\\x9F\n\\xE2\\x82\n")
                << first << ' ' << second;
        }
    }
}

}  // namespace
}  // namespace gloved
