// gloved-make-hard-model: a model on which bounds are worth little, for gloved-verify --engines.
// The work is in hard_model.cpp.
#include <boost/program_options.hpp>
#include <cstdint>
#include <iostream>
#include <string>

#include "common/program_main.hpp"
#include "tests/support/hard_model.hpp"
#include "tests/support/small_model.hpp"

namespace {

namespace po = boost::program_options;

int complain(const std::string& what, int status) {
    gloved::say_on_stderr("gloved-make-hard-model", what);
    return status;
}

int run_program(int argc, char** argv) {
    std::int64_t rows = 0;
    std::int64_t dim = 0;
    std::uint64_t seed = 1;
    std::string directory;
    po::options_description options(
        "gloved-make-hard-model --rows N --dim D [--seed S] --out MODEL_DIR");
    options.add_options()  //
        ("rows", po::value(&rows)->required()->value_name("N"),
         "words, up to 10,000,000; all in memory")                                           //
        ("dim", po::value(&dim)->required()->value_name("D"), "numbers a word, up to 4096")  //
        ("seed", po::value(&seed)->default_value(1)->value_name("S"),
         "another model of the same kind")                                                   //
        ("out", po::value(&directory)->required()->value_name("MODEL_DIR"), "what is made")  //
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
    if (rows < 1 || rows > 10'000'000) return complain("--rows is out of range", 2);
    if (dim < 1 || dim > 4096) return complain("--dim is out of range", 2);
    const auto entries = gloved::tests::hard_entries(static_cast<std::size_t>(rows),
                                                     static_cast<std::size_t>(dim), seed);
    gloved::tests::make_model(directory, entries);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-make-hard-model", run_program, argc, argv);
}
