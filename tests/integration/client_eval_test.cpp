// gloved-eval: against the real daemon with the sample, where every figure follows from single
// answers; and against a scripted one for what a real one does not do on request.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/json_string.hpp"
#include "tests/integration/client_fake_daemon.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using Lines = std::vector<std::string>;

Finished evaluate(const std::string& socket, Lines arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), {program("gloved-eval"), "--socket", socket});
    return run(arguments, input);
}

class EvalProgram : public testing::Test {
  protected:
    static void SetUpTestSuite() { daemon_ = new Daemon(sample_model()); }
    static void TearDownTestSuite() {
        delete daemon_;
        daemon_ = nullptr;
    }

    static Finished eval(Lines arguments, const std::string& input = {}) {
        return evaluate(daemon_->socket_path(), std::move(arguments), input);
    }

    /// The words nearest to unit(b) − unit(a) + unit(c), all of them, best first.
    static Lines nearest(const std::array<std::string, 3>& given, const std::string& options) {
        Connection connection(daemon_->socket_path());
        Lines words;
        for (const std::string& line : connection
                                           .ask("NEAR k=8 norm=unit exclude=none " + options + " " +
                                                given[1] + " - " + given[0] + " + " + given[2])
                                           .lines) {
            const std::string word = line.substr(0, line.find('\t'));
            if (word != given[0] && word != given[1] && word != given[2]) words.push_back(word);
        }
        return words;
    }

    static double similarity(const std::string& a, const std::string& b) {
        Connection connection(daemon_->socket_path());
        return std::strtod(connection.ask("SIM " + a + " " + b).lines.at(0).c_str(), nullptr);
    }

    static Daemon* daemon_;
};

Daemon* EvalProgram::daemon_ = nullptr;

TEST_F(EvalProgram, CountsWhatSingleAnswersSay) {
    const std::vector<std::array<std::string, 3>> given = {{"man", "king", "woman"},
                                                           {"france", "paris", "germany"},
                                                           {"good", "better", "bad"},
                                                           {"walk", "walked", "play"}};
    std::string right = ": capital\n";
    std::string wrong = ": gram1-x\n";
    for (const auto& [a, b, c] : given) {
        const Lines hits = nearest({a, b, c}, "");
        right += a + " " + b + " " + c + " " + hits.at(0) + "\n";
        wrong += a + " " + b + " " + c + " " + hits.at(1) + "\n";
    }
    const std::string file = right + "man king woman xyzzy\n" + wrong + ": empty\n";
    const Finished f = eval({"analogies", "-"}, file);
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out,
              "section\tkind\tcorrect\tasked\tskipped\tpercent\n"
              "capital\tsemantic\t4\t4\t1\t100.00\n"
              "gram1-x\tsyntactic\t0\t4\t0\t0.00\n"
              "empty\tsemantic\t0\t0\t0\t-\n"
              "*\tsemantic\t4\t4\t1\t100.00\n"
              "*\tsyntactic\t0\t4\t0\t0.00\n"
              "*\ttotal\t4\t8\t1\t50.00\n");
    EXPECT_EQ(f.err, "");

    const auto json = nlohmann::json::parse(eval({"--json", "analogies", "-"}, file).out);
    EXPECT_EQ(json.at("model"), "glove");
    EXPECT_EQ(json.at("generation").get<std::string>().size(), 16U);
    EXPECT_EQ(json.at("sections").at(0).at("correct"), 4);
    EXPECT_EQ(json.at("total").at("percent"), 50.0);
}

TEST_F(EvalProgram, CaseIsIgnoredUnlessItCounts) {
    const std::string best = nearest({"man", "king", "woman"}, "").at(0);
    std::string raised = best;
    raised[0] = static_cast<char>(raised[0] - 0x20);
    const std::string file = ": s\nMan KING woman " + raised + "\n";
    const Finished ignored = eval({"analogies", "-"}, file);
    EXPECT_NE(ignored.out.find("*\ttotal\t1\t1\t0\t100.00\n"), std::string::npos)
        << ignored.out << ignored.err;
    const Finished exact = eval({"--case", "exact", "analogies", "-"}, file);
    EXPECT_EQ(exact.exit_code, 1);
    EXPECT_NE(exact.err.find("nothing to ask"), std::string::npos) << exact.err;
    EXPECT_EQ(exact.out, "");
}

TEST_F(EvalProgram, TopLimitsQuestionsAndAnswers) {
    // «berlin» has rank 2368: no answer among the 2,000 most frequent words, and no word of a
    // question.
    const std::array<std::string, 3> given = {"france", "paris", "germany"};
    ASSERT_EQ(nearest(given, "").at(0), "berlin");
    const std::string next = nearest(given, "top=2000").at(0);
    const std::string file =
        ": s\nfrance paris germany " + next + "\nfrance paris germany berlin\n";
    const Finished few = eval({"--top", "2000", "analogies", "-"}, file);
    EXPECT_NE(few.out.find("*\ttotal\t1\t1\t1\t100.00\n"), std::string::npos) << few.out << few.err;
    const Finished all = eval({"analogies", "-"}, file);
    EXPECT_NE(all.out.find("*\ttotal\t1\t2\t0\t50.00\n"), std::string::npos) << all.out << all.err;
}

TEST_F(EvalProgram, MulIsAskedForMul) {
    Connection connection(daemon_->socket_path());
    const auto best = [&](const std::string& method) {
        const std::string hit =
            connection.ask("ANALOGY method=" + method + " k=1 hospital country money").lines.at(0);
        return hit.substr(0, hit.find('\t'));
    };
    ASSERT_NE(best("mul"), best("add"));
    const Finished f =
        eval({"--method", "mul", "analogies", "-"}, ": s\nhospital country money " + best("mul"));
    EXPECT_NE(f.out.find("*\ttotal\t1\t1\t0\t100.00\n"), std::string::npos) << f.out << f.err;
}

TEST_F(EvalProgram, ManyQuestionsKeepTheirOrder) {
    // More than are sent ahead, right and wrong ones in turn.
    const std::string best = nearest({"man", "king", "woman"}, "").at(0);
    std::string file = ": s\n";
    for (int i = 0; i < 1000; ++i)
        file += i % 5 == 0 ? "man king woman snake\n" : "man king woman " + best + "\n";
    const Finished f = eval({"analogies", "-"}, file);
    EXPECT_NE(f.out.find("*\ttotal\t800\t1000\t0\t80.00\n"), std::string::npos) << f.out << f.err;
}

TEST_F(EvalProgram, CorrelatesWithSim) {
    const std::vector<std::pair<std::string, std::string>> words = {{"king", "queen"},
                                                                    {"paris", "france"},
                                                                    {"dog", "cat"},
                                                                    {"snake", "president"},
                                                                    {"music", "guitar"}};
    const std::vector<double> people = {9, 7, 8, 1, 6.5};
    std::string file = "# a comment\nword1\tword2\tscore\n";
    std::vector<double> model;
    for (std::size_t i = 0; i < words.size(); ++i) {
        model.push_back(similarity(words[i].first, words[i].second));
        file += words[i].first + "\t" + words[i].second + "\t" + std::to_string(people[i]) + "\n";
    }
    file += "king\txyzzy\t5\n";
    // Pearson's formula in another form than the program's.
    double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    for (std::size_t i = 0; i < people.size(); ++i) {
        n += 1, a += people[i], b += model[i], aa += people[i] * people[i],
            bb += model[i] * model[i], ab += people[i] * model[i];
    }
    const double expected = (n * ab - a * b) / std::sqrt((n * aa - a * a) * (n * bb - b * b));

    const Finished f = eval({"--json", "pairs", "-"}, file);
    ASSERT_EQ(f.exit_code, 0) << f.err;
    EXPECT_NE(f.err.find("is taken for a header"), std::string::npos) << f.err;
    const auto json = nlohmann::json::parse(f.out);
    EXPECT_EQ(json.at("pairs"), 5);
    EXPECT_EQ(json.at("skipped"), 1);
    EXPECT_NEAR(json.at("pearson").get<double>(), expected, 1e-5) << "SIM as text has six decimals";

    std::string ordered;
    for (std::size_t i = 0; i < words.size(); ++i) {
        ordered +=
            words[i].first + " " + words[i].second + " " + std::to_string(-100 * model[i]) + "\n";
    }
    EXPECT_NE(eval({"pairs", "-"}, ordered).out.find("\n5\t0\t0.00\t-1.000000\t-1.000000\n"),
              std::string::npos);
}

TEST_F(EvalProgram, FaultsOfTheFile) {
    const TempDir dir;
    write_file(dir / "empty", "");
    write_file(dir / "three", ": s\na b c\n");
    write_file(dir / "one", "king queen 5\nking xyzzy 5\n");
    const std::vector<std::pair<Lines, std::string>> faults = {
        {{"analogies", dir / "nix"}, "cannot open"},
        {{"analogies", dir.path()}, "is a directory"},
        {{"analogies", dir / "empty"}, "holds no questions"},
        {{"pairs", dir / "empty"}, "holds no pairs"},
        {{"analogies", dir / "three"}, (dir / "three") + ": line 2: 3 words"},
        {{"pairs", dir / "one"}, "one pair is left"},
        {{"--top", "1", "pairs", dir / "one"}, "nothing to ask"},
        {{"--model", "nix", "pairs", dir / "one"}, "unknown_model"}};
    for (const auto& [arguments, message] : faults) {
        const Finished f = eval(arguments);
        EXPECT_EQ(f.exit_code, 1) << message;
        EXPECT_EQ(f.out, "");
        EXPECT_NE(f.err.find(message), std::string::npos) << f.err;
    }
}

TEST_F(EvalProgram, WrongUsage) {
    const std::vector<Lines> wrong = {{},
                                      {"analogies"},
                                      {"analogies", "a", "b"},
                                      {"synonyms", "f"},
                                      {"--top", "0", "analogies", "f"},
                                      {"--top", "4294967296", "analogies", "f"},
                                      {"--method", "div", "analogies", "f"},
                                      {"--method", "mul", "pairs", "f"},
                                      {"--case", "upper", "analogies", "f"},
                                      {"--timeout", "0", "analogies", "f"},
                                      {"--model=", "analogies", "f"},
                                      {"--nix", "analogies", "f"}};
    for (const Lines& arguments : wrong) {
        const Finished f = eval(arguments);
        EXPECT_EQ(f.exit_code, 2) << testing::PrintToString(arguments);
        EXPECT_EQ(f.out, "");
        EXPECT_EQ(f.err.substr(0, 13), "gloved-eval: ") << f.err;
    }
}

/// A daemon of JSON, for one model of few words: «word → the words that ANALOGY answers».
class EvalAgainstAScript : public testing::Test {
  protected:
    static std::string ok(const std::string& results, const std::string& generation = "01") {
        return "{\"ok\":true,\"us\":1,\"rows\":9,\"model\":\"m\",\"generation\":\"" + generation +
               "\",\"results\":[" + results + "]}\n";
    }

    /// What does not depend on a test: FORMAT, STATS, and HAS, which knows all words but «nix…», in
    /// lower case alone.
    static std::string usual(const std::string& line) {
        if (line == "FORMAT json") return "{\"ok\":true,\"verb\":\"FORMAT\"}\n";
        if (line.starts_with("STATS")) return ok("{\"single_query_us\":100}");
        if (!line.starts_with("HAS ")) return {};
        std::string results;
        std::size_t at = line.find(" \"");
        while (at != std::string::npos) {
            const std::size_t end = line.find('"', at + 2);
            const std::string word = line.substr(at + 2, end - at - 2);
            const bool known = !word.starts_with("nix") && (word[0] < 'A' || word[0] > 'Z');
            results += results.empty() ? "" : ",";
            results += known ? "{\"word\":\"w\",\"known\":true,\"rank\":5}"
                             : "{\"word\":\"w\",\"known\":false}";
            at = line.find(" \"", end + 1);
        }
        return ok(results);
    }

    Finished eval(const Lines& arguments, const std::string& input,
                  const std::function<std::string(const std::string&)>& script) {
        FakeDaemon daemon(dir_ / "s", [&](const std::string& line) {
            const std::string answer = usual(line);
            return Action{answer.empty() ? script(line) : answer};
        });
        Finished f = evaluate(dir_ / "s", arguments, input);
        asked_ = daemon.lines();
        ::unlink((dir_ / "s").c_str());
        return f;
    }

    TempDir dir_;
    Lines asked_;
};

TEST_F(EvalAgainstAScript, AsksWhatTheOptionsSay) {
    const Finished f =
        eval({"--model", "my model", "--top", "77", "--method", "mul", "analogies", "-"},
             ": s\na b c D\nnix b c d\n", [](const std::string&) {
                 return ok("{\"word\":\"A\",\"score\":1},{\"word\":\"d\",\"score\":0.5}");
             });
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_NE(f.out.find("s\tsemantic\t1\t1\t1\t100.00\n"), std::string::npos) << f.out;
    EXPECT_EQ(
        asked_,
        (Lines{"FORMAT json", "STATS model=\"my model\"",
               "HAS case=exact fields=rank model=\"my model\" \"a\" \"A\" \"b\" \"B\" \"c\" \"C\" "
               "\"D\" \"d\" "
               "\"nix\" \"NIX\" \"Nix\"",
               "ANALOGY case=exact k=5 top=77 method=mul model=\"my model\" \"a\" \"b\" \"c\""}));
    eval({"--case", "exact", "analogies", "-"}, ": s\na b c d\n",
         [](const std::string&) { return ok(""); });
    EXPECT_EQ(asked_.at(2), "HAS case=exact fields=rank \"a\" \"b\" \"c\" \"d\"");
    EXPECT_EQ(asked_.at(3), "ANALOGY case=exact k=1 top=300000 method=add \"a\" \"b\" \"c\"");
}

TEST_F(EvalAgainstAScript, WordsAreBytes) {
    const Finished f = eval({"analogies", "-"}, ": s\na b c \xFFq\n", [](const std::string&) {
        std::string word;
        wire::append_json_string(word, "\xFFq");
        return ok("{\"word\":" + word + ",\"score\":1}");
    });
    EXPECT_NE(f.out.find("s\tsemantic\t1\t1\t0\t100.00\n"), std::string::npos) << f.out << f.err;
}

TEST_F(EvalAgainstAScript, AZeroVectorIsAWrongAnswerAndNoSimilarity) {
    const std::string refusal = "{\"ok\":false,\"code\":\"zero_vector\",\"message\":\"\"}\n";
    const Finished f =
        eval({"analogies", "-"}, ": s\na b c d\n", [&](const std::string&) { return refusal; });
    EXPECT_NE(f.out.find("s\tsemantic\t0\t1\t0\t0.00\n"), std::string::npos) << f.out << f.err;
    const Finished pairs =
        eval({"pairs", "-"}, "a b 0\nc d 1\nc e 2\n", [&](const std::string& line) {
            return line == "SIM unknown=error case=exact \"a\" \"b\""
                       ? refusal
                       : ok(line == "SIM unknown=error case=exact \"c\" \"d\"" ? "{\"score\":0.25}"
                                                                               : "{\"score\":0.5}");
        });
    EXPECT_NE(pairs.out.find("3\t0\t0.00\t1.000000\t1.000000\n"), std::string::npos)
        << pairs.out << pairs.err;
}

TEST_F(EvalAgainstAScript, TellsOfSkippedWordsThatAreNotComposed) {
    const auto answer = [](const std::string&) { return ok("{\"word\":\"d\",\"score\":1}"); };
    const std::string hint =
        "a skipped word has letters that are not composed (Unicode NFC); the same letters, "
        "composed, may be in the model\n";
    const Finished some = eval({"analogies", "-"}, ": s\na b c d\nnixe\xCC\x81 b c d\n", answer);
    EXPECT_EQ(some.exit_code, 0);
    EXPECT_EQ(some.err, "gloved-eval: " + hint);
    const Finished none = eval({"analogies", "-"}, ": s\nnixe\xCC\x81 b c d\n", answer);
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_NE(none.err.find("most frequent; " + hint), std::string::npos) << none.err;
    EXPECT_EQ(eval({"analogies", "-"}, ": s\na b c d\nnix b c d\n", answer).err, "");
}

TEST_F(EvalAgainstAScript, EndsAtWhatSpoilsTheFigures) {
    const std::vector<std::pair<std::string, std::string>> faults = {
        {"{\"ok\":false,\"code\":\"timeout\",\"message\":\"waited too long\"}\n",
         "timeout: waited too long"},
        {ok("", "02"), "the model was replaced"},
        {"{\"ok\":true,\"generation\":\"01\",\"model\":\"m\"}\n", "cannot be understood"},
        {"{\"ok\":true,\"generation\":7}\n", "cannot be understood"},
        {ok("{\"word\":5}"), "cannot be understood"},
        {"{\"ok\":true,\n", "cannot be understood"},
        {ok("{}"), "cannot be understood: key 'word' not found"},
        {"OK 0\n", "a reply in text, which was not asked for"}};
    for (const auto& [answer, message] : faults) {
        const Finished f =
            eval({"analogies", "-"}, ": s\na b c d\n", [&](const std::string&) { return answer; });
        EXPECT_EQ(f.exit_code, 1) << answer;
        EXPECT_EQ(f.out, "");
        EXPECT_NE(f.err.find(message), std::string::npos) << f.err;
    }
}

TEST_F(EvalAgainstAScript, OutlastsABusyDaemonWhenTold) {
    int asked = 0;
    const Finished f = eval(
        {"--retry", "20", "analogies", "-"}, ": s\na b c d\na b c e\n", [&](const std::string&) {
            return ++asked <= 2 ? "{\"ok\":false,\"code\":\"busy\",\"message\":\"\"}\n"
                                : ok("{\"word\":\"d\",\"score\":1}");
        });
    EXPECT_NE(f.out.find("s\tsemantic\t1\t2\t0\t50.00\n"), std::string::npos) << f.out << f.err;
}

}  // namespace
}  // namespace gloved::tests
