// gloved-eval: asks a daemon questions with known answers and prints how many it gets right.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "cli/command_line.hpp"
#include "cli/signals.hpp"
#include "client/eval/asker.hpp"
#include "client/eval/evaluation.hpp"
#include "client/eval/letter_case.hpp"
#include "client/eval/questions.hpp"
#include "client/eval/report.hpp"
#include "client/peer_options.hpp"
#include "client/retrying_connection.hpp"
#include "common/input_file.hpp"
#include "common/program_main.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "common/terminal.hpp"
#include "common/text_lines.hpp"

namespace {

using namespace gloved;
using cli::WrongUsage;

constexpr cli::Program kProgram = {"gloved-eval",
                                   R"(Usage: gloved-eval [options] analogies FILE
       gloved-eval [options] pairs FILE

Measures how well a model agrees with people. Needs a gloved daemon that serves
it. FILE may be - for stdin.

analogies  A line of FILE has four words, e.g. Athens Greece Oslo Norway: the
           model has to find the fourth. A line ": NAME" begins a section.
           Prints how many answers are correct in each section.
pairs      A line of FILE has two words and a score: how similar people found
           them. Prints Pearson's and Spearman's correlation of the scores with
           the words' cosines.

)",
                                   R"(
Examples:
  gloved-eval analogies questions-words.txt     (comes with word2vec)
  gloved-eval pairs wordsim353.tsv
  gloved-eval --case exact --top 400000 --json analogies questions-words.txt

Exit status:
  0  the figures are printed
  1  FILE cannot be used, or the daemon refused or could not be reached
  2  wrong usage
)"};

struct Settings {
    bool analogies = false;  ///< else pairs
    std::string file;
    std::string model;
    bool json = false;
    client::PeerSettings peer;
    client::EvaluationSettings evaluation;
};

cli::Options describe_options() {
    cli::Options options;
    client::add_peer_options(options);
    cli::OptionAdder{options.shown}                                              //
    ("model", cli::value("NAME"), "model to ask (default: the daemon's first)")  //
        ("top", cli::value("N", "300000"),
         "use only the N most frequent words: skip lines with any other, and take answers "
         "from these words")  //
        ("method", cli::value("add|mul", "add"),
         "analogies: add the words' vectors (3CosAdd), or multiply their cosines (3CosMul)")  //
        ("case", cli::value("ignore|exact", "ignore"),
         "exact looks words up as written; ignore tries them as written, in lower case, "
         "in capitals and capitalised (oslo, OSLO, Oslo), and takes the most frequent")  //
        ("json", "print one JSON object instead of a table");
    options.operands = {"task", "file"};
    return options;
}

Settings read_settings(const cli::CommandLine& line) {
    Settings settings;
    const std::string task = line.text("task");
    settings.file = line.text("file");
    if (task.empty() || settings.file.empty())
        throw WrongUsage("a task and a file are needed: analogies FILE, or pairs FILE");
    settings.analogies = task == "analogies";
    if (!settings.analogies && task != "pairs")
        throw WrongUsage("the task is analogies or pairs, not " + printable(task));
    if (!settings.analogies && line.given("method")) throw WrongUsage("--method needs analogies");
    settings.model = line.nonempty("model", "a name");
    settings.json = line.given("json");
    settings.peer = client::peer_settings(line, true);
    settings.evaluation = {
        static_cast<std::uint32_t>(line.count("top", 1, std::numeric_limits<std::uint32_t>::max())),
        line.choice<const char*>("method", {{"add", "add"}, {"mul", "mul"}}),
        line.choice<client::LetterCase>("case", {{"ignore", client::LetterCase::ignore},
                                                 {"exact", client::LetterCase::exact}})};
    return settings;
}

/// A progress line that starts once the number of questions is known.
class QuestionProgress {
  public:
    void update(std::uint64_t done, std::uint64_t total) {
        if (!line_) line_.emplace("asking", total, ProgressUnit{"questions", 1});
        line_->update(done);
    }

  private:
    std::optional<Progress> line_;
};

/// Runs an evaluation and formats its result.
template <class Questions, class Evaluate>
Result<std::string> report(const Settings& settings, const Questions& questions,
                           Evaluate evaluate) {
    client::RetryingConnection peer(settings.peer);
    client::Asker asker(peer, settings.model);
    QuestionProgress progress;
    const auto score =
        evaluate(asker, questions, settings.evaluation,
                 [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
    if (!score) return score.error();
    if (score->hint) kProgram.say(*score->hint);
    return settings.json
               ? client::json({asker.model(), asker.generation(), settings.evaluation}, *score)
               : client::table(*score);
}

Result<std::string> evaluate_file(const Settings& settings) {
    auto file = InputFile::open(settings.file, NoWriter::wait);
    if (!file) return file.error();
    const std::string name = settings.file == "-" ? "stdin" : settings.file;
    TextLines lines(name, [&](std::span<char> buffer) { return file->read(buffer); });
    if (settings.analogies) {
        const auto sections = client::parse_analogies(lines);
        if (!sections) return sections.error();
        return report(settings, *sections, client::evaluate_analogies);
    }
    const auto pairs = client::parse_pairs(lines);
    if (!pairs) return pairs.error();
    if (!pairs->header.empty()) {
        kProgram.say(fmt::format("{}: {} is taken for a header and skipped", name,
                                 printable(pairs->header)));
    }
    return report(settings, pairs->pairs, client::evaluate_pairs);
}

int run_program(int argc, char** argv) {
    cli::let_writes_fail();
    const TerminalOutput terminal_output;
    return cli::run(kProgram, describe_options(), cli::arguments_of(argc, argv),
                    [](const cli::CommandLine& line) {
                        const auto text = evaluate_file(read_settings(line));
                        if (!text) {
                            kProgram.say(text.error().message);
                            return cli::kFault;
                        }
                        std::cout << *text;
                        return cli::kDone;
                    });
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-eval", run_program, argc, argv);
}
