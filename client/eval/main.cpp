// gloved-eval: asks a daemon questions whose answers are known, and says how many it gets right.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "client/eval/asker.hpp"
#include "client/eval/evaluation.hpp"
#include "client/eval/questions.hpp"
#include "client/eval/report.hpp"
#include "client/option_values.hpp"
#include "client/patient_connection.hpp"
#include "client/peer_options.hpp"
#include "common/files.hpp"
#include "common/program_main.hpp"
#include "common/progress.hpp"
#include "common/quoting.hpp"
#include "common/terminal.hpp"
#include "common/version.hpp"

namespace {

namespace po = boost::program_options;
using namespace gloved;

constexpr int kDone = 0;
constexpr int kAtFault = 1;
constexpr int kUsage = 2;

/// Of questions: word2vec's have 600 KB.
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

constexpr const char* kSynopsis = R"(Usage: gloved-eval [OPTIONS] analogies|pairs FILE
Asks a gloved questions whose answers are known, and says how many it gets right. FILE is - for stdin.

)";

constexpr const char* kExamples = R"(
  gloved-eval analogies questions-words.txt    word2vec's questions: «: section» lines, four words a line
  gloved-eval pairs wordsim353.tsv             word, word and score a line: correlation with SIM
  gloved-eval --case exact --top 400000 --json analogies questions-words.txt

Exit status: 0 done, 1 the file or the daemon is at fault, 2 wrong usage.
)";

struct Settings {
    client::PeerOptions peer_options;
    std::string model;
    std::string top = "300000";
    std::string method = "add";
    std::string letter_case = "ignore";
    bool json = false;
    std::string task;
    std::string file;
    client::PeerSettings peer;
    client::EvaluationSettings evaluation;
};

void say(const std::string& message) { say_on_stderr("gloved-eval", message); }

int fail(int code, const std::string& message) {
    say(message);
    return code;
}

po::options_description describe_options(Settings& settings) {
    po::options_description options("Options");
    settings.peer_options.add_to(options);
    auto add = options.add_options();
    add("model", po::value(&settings.model)->value_name("NAME"),
        "which model of the daemon; default: its first");
    add("top", po::value(&settings.top)->value_name("N"),
        "only the N most frequent words count, as questions and as answers; default 300000");
    add("method", po::value(&settings.method)->value_name("add|mul"),
        "how an analogy's words are put together: 3CosAdd or 3CosMul; default add");
    add("case", po::value(&settings.letter_case)->value_name("ignore|exact"),
        "whether words that differ in case alone are the same; default ignore");
    add("json", po::bool_switch(&settings.json), "one JSON object instead of a table");
    add("help", "this text");
    add("version", "the version");
    return options;
}

/// Texts of options to settings. Error: the user's to mend.
Status understand(Settings& settings, bool method_given) {
    const auto wrong = [](const std::string& message) {
        return Error{ErrorCode::bad_request, message};
    };
    const auto one_of = [&](const char* option, const std::string& value,
                            std::array<const char*, 2> values) -> Status {
        if (value == values[0] || value == values[1]) return {};
        return wrong(
            fmt::format("{} is {} or {}, not {}", option, values[0], values[1], printable(value)));
    };
    if (settings.task.empty() || settings.file.empty()) {
        return wrong(
            "what to evaluate and a file are needed: analogies FILE, or pairs FILE; try --help");
    }
    for (const Status& valid : {one_of("the evaluation", settings.task, {"analogies", "pairs"}),
                                one_of("--method", settings.method, {"add", "mul"}),
                                one_of("--case", settings.letter_case, {"ignore", "exact"})}) {
        if (!valid) return valid;
    }
    if (method_given && settings.task == "pairs") return wrong("--method goes with analogies");
    const auto top = client::parse_whole_number("--top", settings.top,
                                                std::numeric_limits<std::uint32_t>::max());
    if (!top) return top.error();
    auto peer = settings.peer_options.settings(true);
    if (!peer) return peer.error();
    settings.peer = *std::move(peer);
    settings.evaluation = {
        static_cast<std::uint32_t>(*top), settings.method,
        settings.letter_case == "exact" ? client::LetterCase::exact : client::LetterCase::ignore};
    return {};
}

/// A progress line that begins when the number of questions is known.
class QuestionProgress {
  public:
    void update(std::uint64_t done, std::uint64_t total) {
        if (!line_) line_.emplace("asking", total, ProgressUnit{"questions", 1});
        line_->update(done);
    }

  private:
    std::optional<Progress> line_;
};

/// The report of an evaluation, or why there is none.
template <class Questions, class Evaluate>
Result<std::string> report(const Settings& settings, const Questions& questions,
                           Evaluate evaluate) {
    client::PatientConnection peer(settings.peer);
    client::Asker asker(peer, settings.model);
    QuestionProgress progress;
    const auto score =
        evaluate(asker, questions, settings.evaluation,
                 [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
    if (!score) return score.error();
    return settings.json
               ? client::json({asker.model(), asker.generation(), settings.evaluation}, *score)
               : client::table(*score);
}

Result<std::string> evaluate_file(const Settings& settings) {
    const bool from_stdin = settings.file == "-";
    const std::string name = from_stdin ? "stdin" : settings.file;
    const auto text = from_stdin ? read_whole(STDIN_FILENO, name, kMaxFileBytes)
                                 : read_whole_file(settings.file, kMaxFileBytes);
    if (!text) return text.error();
    if (settings.task == "analogies") {
        const auto sections = client::parse_analogies(*text, name);
        if (!sections) return sections.error();
        return report(settings, *sections, client::evaluate_analogies);
    }
    const auto pairs = client::parse_pairs(*text, name);
    if (!pairs) return pairs.error();
    if (!pairs->header.empty()) {
        say(fmt::format("{}: {} is taken for a header and passed over", name,
                        printable(pairs->header)));
    }
    return report(settings, pairs->pairs, client::evaluate_pairs);
}

int run_program(int argc, char** argv) {
    // A peer that goes away is an error to report, not a reason to die silently.
    ::signal(SIGPIPE, SIG_IGN);
    const TerminalOutput terminal_output;

    Settings settings;
    const po::options_description options = describe_options(settings);
    po::options_description all;
    all.add(options).add_options()("task", po::value(&settings.task))("file",
                                                                      po::value(&settings.file));
    po::positional_options_description operands;
    operands.add("task", 1).add("file", 1);
    po::variables_map given;
    try {
        const int style =
            po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(argc, argv)
                      .options(all)
                      .positional(operands)
                      .style(style)
                      .run(),
                  given);
        po::notify(given);
    } catch (const po::error& error) {
        return fail(kUsage, fmt::format("{}; try --help", error.what()));
    }
    if (given.count("help") != 0) {
        std::cout << kSynopsis << options << kExamples;
        return kDone;
    }
    if (given.count("version") != 0) {
        std::cout << "gloved-eval " << kProgramVersion << '\n';
        return kDone;
    }
    if (given.count("model") != 0 && settings.model.empty())
        return fail(kUsage, "--model needs a name");
    if (const Status understood = understand(settings, given.count("method") != 0); !understood) {
        return fail(kUsage, understood.error().message);
    }

    const auto text = evaluate_file(settings);
    if (!text) return fail(kAtFault, text.error().message);
    std::cout << *text;
    return kDone;
}

}  // namespace

int main(int argc, char** argv) {
    return gloved::program_main("gloved-eval", run_program, argc, argv);
}
