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
                                   R"(Usage: gloved-make-text --rows N --dim D [options] > FILE

Writes text of the shape of a GloVe download.

)",
                                   R"(
Example:
  gloved-make-text --rows 2196017 --dim 300 > glove.txt
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
    const auto text_format = tests::text_format_from(line.text("format"));
    if (!text_format) line.no_such_choice("format", {"glove", "word2vec", "word2vec-bin", "norms"});
    shape.format = *text_format;
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
    options.shown.add_options()                                                             //
        ("rows", cli::value("N"), "number of words; from 64 on, one of them occurs twice")  //
        ("dim", cli::value("D"), "numbers per word")                                        //
        ("seed", cli::value("S", "1"), "seed of the text")                                  //
        ("format", cli::value("glove|word2vec|word2vec-bin|norms", "glove"),
         "format of the text")  //
        ("out", cli::value("FILE"), "write to FILE, not to stdout");
    return cli::run(kProgram, options, cli::arguments_of(argc, argv), run);
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-make-text", run_program, argc, argv);
}
