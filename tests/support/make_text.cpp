// gloved-make-text: text of the shape of a GloVe download on stdout. The work is in text_maker.cpp.
#include <fcntl.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "common/format/layout.hpp"
#include "common/program_main.hpp"
#include "tests/support/text_maker.hpp"

namespace {

using namespace gloved;
namespace po = boost::program_options;

int complain(const std::string& what, int status) {
    say_on_stderr("gloved-make-text", what);
    return status;
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

int run_program(int argc, char** argv) {
    tests::TextShape shape;
    std::int64_t rows = 0;
    std::int64_t dim = 0;
    std::string format;
    std::string path;
    po::options_description options("gloved-make-text --rows N --dim D [options] > FILE");
    options.add_options()  //
        ("rows", po::value(&rows)->required()->value_name("N"),
         "words; from 64 on, one of them twice")                                 //
        ("dim", po::value(&dim)->required()->value_name("D"), "numbers a word")  //
        ("seed", po::value(&shape.seed)->default_value(1)->value_name("S"),
         "another text of the same shape")  //
        ("format",
         po::value(&format)->default_value("glove")->value_name(
             "glove|word2vec|word2vec-bin|norms"),
         "what the text is like")                                                    //
        ("out", po::value(&path)->value_name("FILE"), "write there, not to stdout")  //
        ("help", "show this");
    po::variables_map values;
    try {
        po::store(po::parse_command_line(argc, argv, options), values);
        if (values.count("help") != 0) {
            std::cout << options;
            return 0;
        }
        po::notify(values);
    } catch (const po::error& error) {
        return complain(error.what(), 2);
    }
    const auto wanted = tests::text_format_from(format);
    if (!wanted) return complain("--format is glove, word2vec, word2vec-bin or norms", 2);
    if (rows < 1 || static_cast<std::uint64_t>(rows) > format::kMaxRows)
        return complain("--rows is out of range", 2);
    if (dim < 1 || dim > format::kMaxDim) return complain("--dim is out of range", 2);
    shape.rows = static_cast<std::uint64_t>(rows);
    shape.dim = static_cast<std::size_t>(dim);
    shape.format = *wanted;

    const int fd = path.empty()
                       ? STDOUT_FILENO
                       : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return complain(path + ": cannot create: " + std::strerror(errno), 1);
    bool written = true;
    tests::make_text(shape, [&](std::string_view piece) { return written = write_all(fd, piece); });
    if (!written || ::close(fd) != 0)
        return complain(std::string("cannot write: ") + std::strerror(errno), 1);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-make-text", run_program, argc, argv);
}
