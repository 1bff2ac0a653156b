// How the words of requests are found: unknown= and case=, and what replies tell of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/wire/json_string.hpp"
#include "common/wire/reply.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using nlohmann::json;

/// By rank, so that of the words of one case folding the first is the most frequent.
const std::vector<std::string> kWords = {"snake",    "King",
                                         "king",     "KING",
                                         "Paris",    "NASA",
                                         "iPhone",   "IPhone",
                                         "queen",    "woman",
                                         "Straße",   "МОСКВА",
                                         "macOS",    "New York",
                                         "οδος",     "İzmir",
                                         "caf\xE9,", "man",
                                         "MacOS",    "ﬁsh",
                                         "a:b",      "quo\"te",
                                         "uNO",      "UNO",
                                         "café",     "tie\xCC\x82\xCC\x81ng"};

/// A request whose words are looked up leniently, and the one that names the words that it means;
/// or the beginning of its ERR line.
struct Case {
    std::string request;
    std::string strict;
    std::string notes;  ///< as the status line has them
};

const std::vector<Case> kCases = {
    // As it stands, lower case, capitalized, upper case.
    {"NEAR case=ignore snake", "NEAR snake", ""},
    {"NEAR case=ignore SNAKE", "NEAR snake", R"(replaced="SNAKE":"snake")"},
    {"NEAR case=ignore SnAkE", "NEAR snake", R"(replaced="SnAkE":"snake")"},
    {"NEAR case=ignore KING", "NEAR KING", ""},
    {"NEAR case=ignore kInG", "NEAR king", R"(replaced="kInG":"king")"},
    {"NEAR case=ignore paris", "NEAR Paris", R"(replaced="paris":"Paris")"},
    {"NEAR case=ignore PARIS", "NEAR Paris", R"(replaced="PARIS":"Paris")"},
    {"NEAR case=ignore nasa", "NEAR NASA", R"(replaced="nasa":"NASA")"},
    {"NEAR case=ignore Nasa", "NEAR NASA", R"(replaced="Nasa":"NASA")"},
    {"NEAR case=ignore uno", "NEAR UNO", R"(replaced="uno":"UNO")"},
    // The most frequent word of the same case folding.
    {"NEAR case=ignore iphone", "NEAR iPhone", R"(replaced="iphone":"iPhone")"},
    {"NEAR case=ignore IPhone", "NEAR IPhone", ""},
    {"NEAR case=ignore MACOS", "NEAR macOS", R"(replaced="MACOS":"macOS")"},
    {R"(NEAR case=ignore "NEW YORK")", R"(NEAR "New York")",
     R"(replaced="NEW\x20YORK":"New\x20York")"},
    {"NEAR case=ignore ΟΔΟΣ", "NEAR οδος", R"(replaced="ΟΔΟΣ":"οδος")"},
    {"NEAR case=ignore москва", "NEAR МОСКВА", R"(replaced="москва":"МОСКВА")"},
    {"NEAR case=ignore STRAßE", "NEAR Straße", R"(replaced="STRAßE":"Straße")"},
    {"NEAR case=ignore İZMIR", "NEAR İzmir", R"(replaced="İZMIR":"İzmir")"},
    {R"(NEAR case=ignore "CAF\xe9,")", R"(NEAR "caf\xe9,")", R"(replaced="CAF\xE9,":"caf\xE9,")"},
    {"NEAR case=ignore A:B", "NEAR a:b", R"(replaced="A:B":"a:b")"},
    {R"(NEAR case=ignore "QUO\"TE")", R"(NEAR "quo\"te")", R"(replaced="QUO\"TE":"quo\"te")"},
    // What is another word for Unicode too.
    {"NEAR case=ignore STRASSE", "ERR unknown_word \"STRASSE\"", ""},
    {"NEAR case=ignore izmir", "ERR unknown_word \"izmir\"", ""},
    {"NEAR case=ignore fish", "ERR unknown_word \"fish\"", ""},
    // The other form of Unicode.
    {"NEAR case=ignore cafe\xCC\x81", "NEAR café", "replaced=\"cafe\xCC\x81\":\"café\""},
    {"NEAR case=ignore CAFE\xCC\x81", "NEAR café", "replaced=\"CAFE\xCC\x81\":\"café\""},
    {"NEAR case=ignore TIẾNG", "NEAR tie\xCC\x82\xCC\x81ng",
     "replaced=\"TIẾNG\":\"tie\xCC\x82\xCC\x81ng\""},
    {"NEAR cafe\xCC\x81",
     "ERR unknown_word \"cafe\xCC\x81\" is not in the model; the same letters, composed (Unicode "
     "NFC), are: \"café\" (case=ignore takes it)",
     ""},
    {"SIM tiếng king",
     "ERR unknown_word \"tiếng\" is not in the model; the same letters, decomposed (Unicode NFD), "
     "are: \"tie\xCC\x82\xCC\x81ng\" (case=ignore takes it)",
     ""},
    {"NEAR case=ignore cafe\xCC\x82", "ERR unknown_word", ""},
    {"NEAR case=exact SNAKE", "ERR unknown_word \"SNAKE\"", ""},
    {"NEAR SNAKE", "ERR unknown_word \"SNAKE\"", ""},
    // The words that are found are those that are left out of the answer.
    {"NEAR case=ignore k=30 King - MAN + Woman", "NEAR k=30 King - man + woman",
     R"(replaced="MAN":"man","Woman":"woman")"},
    {"NEAR case=ignore exclude=none SNAKE SNAKE", "NEAR exclude=none snake snake",
     R"(replaced="SNAKE":"snake")"},
    // Unknown words.
    {"NEAR unknown=skip king + qwfp - man", "NEAR king - man", R"(skipped="qwfp")"},
    {R"(NEAR unknown=skip king "a b" qwfp "a b")", "NEAR king", R"(skipped="a\x20b","qwfp")"},
    {"NEAR unknown=skip qwfp + zxcv", "ERR unknown_word \"qwfp\"", ""},
    {"NEAR unknown=error king + qwfp", "ERR unknown_word \"qwfp\"", ""},
    {"NEAR unknown=skip case=ignore QUEEN + QWFP", "NEAR queen",
     R"(skipped="QWFP" replaced="QUEEN":"queen")"},
    {"SIM unknown=skip ( king + qwfp ) queen", "SIM king queen", R"(skipped="qwfp")"},
    {"SIM unknown=skip king qwfp", "ERR unknown_word \"qwfp\"", ""},
    {"SIM unknown=skip king ( qwfp + zxcv )", "ERR unknown_word \"qwfp\"", ""},
    {"SIM case=ignore Queen ( MAN + woman )", "SIM queen ( man + woman )",
     R"(replaced="Queen":"queen","MAN":"man")"},
    {"DIST unknown=skip ( king + qwfp ) ( man + woman )", "DIST ( king ) ( man + woman )",
     R"(skipped="qwfp")"},
    {"RANK unknown=skip case=ignore ( SNAKE + qwfp ) Queen", "RANK snake queen",
     R"(skipped="qwfp" replaced="SNAKE":"snake","Queen":"queen")"},
    {"RANK unknown=skip qwfp queen", "ERR unknown_word \"qwfp\"", ""},
    {"ODD unknown=skip king qwfp queen snake", "ODD king queen snake", R"(skipped="qwfp")"},
    {"ODD unknown=skip king qwfp queen", "ERR unknown_word \"qwfp\"", ""},
    {"ODD unknown=skip king ( qwfp + zxcv ) queen snake", "ERR unknown_word \"qwfp\"", ""},
    {"ANALOGY case=ignore MAN KING WOMAN", "ANALOGY man KING woman",
     R"(replaced="MAN":"man","WOMAN":"woman")"},
    {"ANALOGY case=ignore method=mul Man king Woman", "ANALOGY method=mul man king woman",
     R"(replaced="Man":"man","Woman":"woman")"},
    {"ANALOGY unknown=skip man king woman", "ERR bad_request ANALOGY has no option", ""},
    {"VEC unknown=skip case=ignore Queen qwfp king", "VEC queen king",
     R"(skipped="qwfp" replaced="Queen":"queen")"},
    {"VEC unknown=skip qwfp", "ERR unknown_word \"qwfp\"", ""},
    {"MATRIX unknown=skip king qwfp queen", "MATRIX king queen", R"(skipped="qwfp")"},
    {"MATRIX case=ignore Queen nasa", "MATRIX queen NASA",
     R"(replaced="Queen":"queen","nasa":"NASA")"},
    {"HAS unknown=skip king", "ERR bad_request HAS has no option", ""},
    {"NEAR case=folded king", "ERR bad_request case= takes 'exact' or 'ignore'", ""},
    {"NEAR unknown=0 king", "ERR bad_request unknown= takes 'error' or 'skip'", ""},
};

class LookUp : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        auto entries = random_entries(60, 6, 4);
        for (std::size_t i = 0; i < kWords.size(); ++i) entries[i].first = kWords[i];
        make_model(*dir_ / "m", entries);
    }

    static bool is_refused(const Case& each) { return each.strict.starts_with("ERR "); }

    static inline const std::unique_ptr<TempDir> dir_ = std::make_unique<TempDir>();
    const Daemon daemon_{"m=" + (*dir_ / "m")};
    Connection connection_{daemon_.socket_path()};
};

/// The notes that a status line ends with.
std::string notes_of(const std::string& status) {
    const std::size_t generation = status.find(" generation=");
    const std::size_t end = status.find(' ', generation + 1);
    return end == std::string::npos ? "" : status.substr(end + 1);
}

TEST_F(LookUp, FindsTheWordsThatAreMeant) {
    for (const Case& each : kCases) {
        SCOPED_TRACE(each.request);
        const ReplyText reply = connection_.ask(each.request);
        if (is_refused(each)) {
            EXPECT_TRUE(reply.status.starts_with(each.strict)) << reply.status;
            continue;
        }
        const ReplyText strict = connection_.ask(each.strict);
        ASSERT_TRUE(strict.status.starts_with("OK ")) << strict.status;
        ASSERT_TRUE(reply.status.starts_with("OK ")) << reply.status;
        EXPECT_EQ(reply.lines, strict.lines);
        EXPECT_EQ(notes_of(reply.status), each.notes);
        EXPECT_EQ(notes_of(strict.status), "");
    }
}

/// The notes of a reply in JSON, as a status line has them.
std::string notes_of(const json& reply) {
    std::vector<wire::StatusField> fields;
    const auto word = [](const json& text) {
        return wire::bytes_of_json_string(text.get<std::string>());
    };
    if (reply.contains("skipped")) {
        wire::WordsField skipped;
        for (const json& text : reply["skipped"]) skipped.words.push_back(word(text));
        fields.push_back({"skipped", skipped});
    }
    if (reply.contains("replaced")) {
        wire::PairsField replaced{"word", "by", {}};
        for (const json& pair : reply["replaced"])
            replaced.pairs.emplace_back(word(pair["word"]), word(pair["by"]));
        fields.push_back({"replaced", replaced});
    }
    std::string head;
    wire::append_head(head, wire::Form::text, wire::Verb::near, 0, fields);
    return fields.empty() ? "" : head.substr(5, head.size() - 6);
}

TEST_F(LookUp, TellsInJsonWhatItTellsInText) {
    connection_.ask("FORMAT json");
    for (const Case& each : kCases) {
        SCOPED_TRACE(each.request);
        const std::string line = connection_.ask(each.request).status;
        ASSERT_TRUE(json::accept(line)) << line;
        const json reply = json::parse(line);
        if (is_refused(each)) {
            EXPECT_EQ(reply["ok"], false);
            EXPECT_EQ("ERR " + reply["code"].get<std::string>(),
                      each.strict.substr(0, each.strict.find(' ', 4)));
            continue;
        }
        EXPECT_EQ(reply["results"], json::parse(connection_.ask(each.strict).status)["results"]);
        EXPECT_EQ(notes_of(reply), each.notes);
    }
}

TEST_F(LookUp, IsToldByTheClient) {
    for (const Case& each : kCases) {
        SCOPED_TRACE(each.request);
        const Finished finished =
            run({program("gloved-client"), "--socket", daemon_.socket_path(), each.request});
        if (is_refused(each)) {
            EXPECT_EQ(finished.exit_code, 1);
            const std::string refusal = each.strict.substr(4, each.strict.find(' ', 4) - 4);
            EXPECT_TRUE(finished.err.starts_with("gloved-client: " + refusal)) << finished.err;
            continue;
        }
        EXPECT_EQ(finished.exit_code, 0);
        std::string lines;
        for (const std::string& line : connection_.ask(each.strict).lines) lines += line + "\n";
        EXPECT_EQ(finished.out, lines);
        EXPECT_EQ(finished.err.empty(), each.notes.empty()) << finished.err;
        for (const std::string_view key : {"skipped=", "replaced="}) {
            const std::size_t begin = each.notes.find(key);
            if (begin == std::string::npos) continue;
            const std::size_t word = begin + key.size();
            const std::string words = each.notes.substr(word, each.notes.find(' ', word) - word);
            EXPECT_NE(finished.err.find(": " + words + "\n"), std::string::npos) << finished.err;
        }
    }
}

TEST_F(LookUp, OfHasTellsWhichWordsStandForOthers) {
    const ReplyText reply = connection_.ask("HAS case=ignore fields=rank NASA nasa qwfp");
    EXPECT_EQ(reply.lines, (std::vector<std::string>{"NASA\t1\t5", "nasa\t1\t5", "qwfp\t0"}));
    EXPECT_EQ(notes_of(reply.status), R"(replaced="nasa":"NASA")");
    EXPECT_EQ(connection_.ask("HAS nasa").lines, std::vector<std::string>{"nasa\t0"});
}

TEST_F(LookUp, ListsNoMoreWordsThanAReplyShouldHave) {
    const auto ask_with = [&](std::size_t count, std::size_t length) {
        std::string request = "NEAR unknown=skip king";
        for (std::size_t i = 0; i < count; ++i) request += fmt::format(" \"{:0{}}\"", i, length);
        return connection_.ask(request);
    };
    const auto listed = [](const ReplyText& reply) {
        const std::string words = field(reply, "skipped");
        return words.empty() ? 0 : 1 + std::count(words.begin(), words.end(), ',');
    };
    EXPECT_EQ(listed(ask_with(64, 4)), 64);
    EXPECT_EQ(field(ask_with(64, 4), "unlisted"), "");
    EXPECT_EQ(listed(ask_with(65, 4)), 64);
    EXPECT_EQ(field(ask_with(65, 4), "unlisted"), "1");
    EXPECT_EQ(listed(ask_with(5000, 4)), 64);
    EXPECT_EQ(field(ask_with(5000, 4), "unlisted"), "4936");
    EXPECT_EQ(listed(ask_with(3, 500)), 2);
    EXPECT_EQ(field(ask_with(3, 500), "unlisted"), "1");
    EXPECT_EQ(listed(ask_with(1, 60000)), 0);
    EXPECT_EQ(field(ask_with(1, 60000), "unlisted"), "1");
    // A large request is answered on another thread.
    EXPECT_EQ(ask_with(5000, 4).lines, connection_.ask("NEAR king").lines);
}

TEST_F(LookUp, FollowsTheDaemonsOptionsUnlessARequestDoesNot) {
    const Daemon lenient("m=" + (*dir_ / "m"), {"--unknown", "skip", "--case", "ignore"});
    Connection connection(lenient.socket_path());
    const ReplyText reply = connection.ask("Queen + qwfp");
    EXPECT_EQ(reply.lines, connection_.ask("queen").lines);
    EXPECT_EQ(notes_of(reply.status), R"(skipped="qwfp" replaced="Queen":"queen")");
    EXPECT_EQ(notes_of(connection.ask("ANALOGY MAN king woman").status), R"(replaced="MAN":"man")");
    EXPECT_TRUE(connection.ask("NEAR unknown=error queen + qwfp")
                    .status.starts_with("ERR unknown_word \"qwfp\""));
    EXPECT_TRUE(
        connection.ask("NEAR case=exact Queen").status.starts_with("ERR unknown_word \"Queen\""));
    // The original protocol has no options: notes go to stderr.
    const Finished finished =
        run({program("gloved-client"), "--socket", lenient.socket_path()}, "Queen 1");
    EXPECT_NE(finished.out.find("the answers are identical"), std::string::npos) << finished.out;
    EXPECT_EQ(finished.err,
              "gloved-client: taken in another case or Unicode form: \"Queen\":\"queen\"\n");
}

TEST(LookUpOptions, AreChecked) {
    for (const auto& [option, value] : {std::pair{"--unknown", "ignore"}, {"--case", "lower"}}) {
        const Finished finished = run({program("gloved"), "--model", "m", option, value});
        EXPECT_EQ(finished.exit_code, 2);
        EXPECT_NE(finished.err.find(option), std::string::npos) << finished.err;
    }
}

}  // namespace
}  // namespace gloved::tests
