// gloved-make-hard-model: a model on which bounds are worth little, for gloved-verify engines.
// The work is in hard_model.cpp.
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/command_line.hpp"
#include "common/program_main.hpp"
#include "tests/support/hard_model.hpp"
#include "tests/support/small_model.hpp"

namespace {

using namespace gloved;

constexpr cli::Program kProgram = {
    "gloved-make-hard-model",
    R"(Usage: gloved-make-hard-model --rows N --dim D [--seed S] --out MODEL_DIR

Makes up a model that is hard to search, for tests: many vectors are equal or
nearly equal, zero, or of extreme length.

)",
    R"(
Example:
  gloved-make-hard-model --rows 50000 --dim 100 --out hard
  gloved-verify engines hard
)"};

int run(const cli::CommandLine& line) {
    const std::size_t rows = line.count("rows", 1, 10'000'000);
    const std::size_t dim = line.count("dim", 1, 4096);
    const std::string directory = line.text("out");
    if (directory.empty()) throw cli::WrongUsage("--out is needed");
    tests::make_model(directory, tests::hard_entries(rows, dim, line.count("seed", 0, UINT64_MAX)));
    return cli::kDone;
}

int run_program(int argc, char** argv) {
    cli::Options options;
    cli::OptionAdder add(options.shown);
    add("rows", cli::value("N"), "number of words, up to 10,000,000");
    add("dim", cli::value("D"), "numbers per word, up to 4096");
    add("seed", cli::value("S", "1"), "seed of the model");
    add("out", cli::value("MODEL_DIR"), "directory of the model to write");
    return cli::run(kProgram, options, cli::arguments_of(argc, argv), run);
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-make-hard-model", run_program, argc, argv);
}
