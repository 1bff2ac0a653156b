// gloved-make-text: text of the shape of a GloVe download on stdout. The work is in text_maker.cpp.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "cli/command_line.hpp"
#include "common/format/layout.hpp"
#include "common/program_main.hpp"
#include "tests/support/text_maker.hpp"

namespace {

using namespace gloved;

constexpr cli::Program kProgram = {"gloved-make-text",
                                   R"(Usage: gloved-make-text --rows N --dim D [options]

Makes up words and random vectors, in the format of a download, for tests. The
same options give the same bytes.

)",
                                   R"(
Example:
  gloved-make-text --rows 2196017 --dim 300 > glove.txt

Exit status:
  0  success
  1  the output cannot be written
  2  wrong usage
)"};

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

int run(const cli::CommandLine& line) {
    tests::TextShape shape;
    shape.rows = line.count("rows", 1, format::kMaxRows);
    shape.dim = line.count("dim", 1, format::kMaxDim);
    shape.seed = line.count("seed", 0, UINT64_MAX);
    shape.format = *tests::text_format_from(line.word("format"));
    const auto fail = [](const std::string& message) {
        kProgram.say(message + std::strerror(errno));
        return cli::kFault;
    };
    const std::string path = line.text("out");
    const int fd = path.empty()
                       ? STDOUT_FILENO
                       : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return fail(path + ": cannot create: ");
    bool written = true;
    tests::make_text(shape, [&](std::string_view piece) { return written = write_all(fd, piece); });
    if (!written || ::close(fd) != 0) return fail("cannot write: ");
    return cli::kDone;
}

int run_program(int argc, char** argv) {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("rows", cli::value("N"),
        "number of lines; from 64 on one word occurs twice, with different numbers");
    add("dim", cli::value("D"), "numbers per word");
    add("seed", cli::value("S", "1"), "seed of the words and numbers");
    add("format", cli::value("glove|word2vec|word2vec-bin|norms", "glove"),
        "format to write; norms is glove with each vector's norm before its numbers");
    add("out", cli::value("FILE"), "write to FILE instead of stdout");
    return cli::run(kProgram, options, cli::arguments_of(argc, argv), run);
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-make-text", run_program, argc, argv);
}
