// What gloved-eval reads, computes and prints, without a daemon.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "client/eval/correlation.hpp"
#include "client/eval/evaluation.hpp"
#include "client/eval/letter_case.hpp"
#include "client/eval/questions.hpp"
#include "client/eval/report.hpp"
#include "client/eval/vocabulary.hpp"
#include "common/text_lines.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

using Words = std::vector<std::string>;
using Numbers = std::vector<double>;

Result<std::vector<AnalogySection>> analogies_of(std::string_view text) {
    TextLines lines("file", text);
    return parse_analogies(lines);
}

Result<RatedPairs> pairs_of(std::string_view text) {
    TextLines lines("file", text);
    return parse_pairs(lines);
}

TEST(EvalQuestions, ReadsSectionsOfFourWords) {
    const auto sections = analogies_of(
        "\xEF\xBB\xBF: capital-common\r\nAthens Greece\tOslo  Norway\r\n\n  \n:gram1 x\n: empty\n: "
        "gram1 x\na b c d");
    ASSERT_TRUE(sections) << sections.error().message;
    ASSERT_EQ(sections->size(), 4U) << "equal names stay apart";
    EXPECT_EQ((*sections)[0].name, "capital-common");
    EXPECT_FALSE((*sections)[0].syntactic());
    ASSERT_EQ((*sections)[0].questions.size(), 1U);
    EXPECT_EQ((*sections)[0].questions[0].given,
              (std::array<std::string, 3>{"Athens", "Greece", "Oslo"}));
    EXPECT_EQ((*sections)[0].questions[0].expected, "Norway");
    EXPECT_EQ((*sections)[1].name, "gram1 x");
    EXPECT_TRUE((*sections)[1].syntactic());
    EXPECT_TRUE((*sections)[2].questions.empty());
    EXPECT_EQ((*sections)[3].questions[0].expected, "d");
}

std::string analogy_fault(const std::string& text) {
    const auto sections = analogies_of(text);
    return sections ? "" : sections.error().message;
}

TEST(EvalQuestions, NamesFileLineAndRemedy) {
    EXPECT_EQ(
        analogy_fault(": s\n\na b c\n"),
        "file: line 3: 3 words where a question has four, \"a b c\"; correct or remove the line");
    EXPECT_EQ(analogy_fault(": s\na\n"),
              "file: line 2: 1 word where a question has four, \"a\"; correct or remove the line");
    EXPECT_NE(analogy_fault(": s\na b c d e\n").find("5 words"), std::string::npos);
    EXPECT_EQ(analogy_fault("a b c d\n"),
              "file: line 1: a question before the first section; put a line «: NAME» before it");
    EXPECT_NE(analogy_fault(": s\na b c " + std::string(kMaxQuestionWordBytes + 1, 'd'))
                  .find("4097 bytes"),
              std::string::npos);
    EXPECT_EQ(analogy_fault(": s\na b c " + std::string(kMaxQuestionWordBytes, 'd')), "");
    for (const char* nothing : {"", "\n \n", ": s\n: t\n"})
        EXPECT_EQ(analogy_fault(nothing), "file holds no questions");
}

TEST(EvalPairs, ReadsTabsAndBlanks) {
    const auto read =
        pairs_of("# Word 1\tWord 2\tHuman\nnew york\tcity\t7.35\r\n\n  tiger   cat  1e1\n");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->pairs.size(), 2U);
    EXPECT_EQ(read->pairs[0].words, (std::array<std::string, 2>{"new york", "city"}));
    EXPECT_EQ(read->pairs[0].score, 7.35);
    EXPECT_EQ(read->pairs[1].words, (std::array<std::string, 2>{"tiger", "cat"}));
    EXPECT_EQ(read->pairs[1].score, 10.0);
    EXPECT_EQ(read->header, "");
}

std::string pair_fault(const std::string& text) {
    const auto read = pairs_of(text);
    return read ? "" : read.error().message;
}

TEST(EvalPairs, AHeaderIsTheFirstLineAlone) {
    const auto read = pairs_of("# comment\nword1\tword2\tscore\na\tb\t1\n");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->header, "word1\tword2\tscore");
    EXPECT_EQ(read->pairs.size(), 1U);
    EXPECT_EQ(pair_fault("a\tb\t1\nword1\tword2\tscore\n"),
              "file: line 2: the score \"score\" is not a number; correct or remove the line");
    EXPECT_EQ(pair_fault("one\ttwo\tscore\nword1\tword2\tscore\n"),
              "file: line 2: the score \"score\" is not a number; correct or remove the line");
}

TEST(EvalPairs, NamesFileLineAndRemedy) {
    EXPECT_NE(pair_fault("a\tb\n").find("file: line 1: 2 fields where a pair has three"),
              std::string::npos);
    EXPECT_NE(pair_fault("a\tb\t1\t2\n").find("4 fields where a pair has three"),
              std::string::npos);
    for (const char* score : {"nan", "inf", "1e999", "1x"}) {
        EXPECT_NE(pair_fault("a b 1\na b " + std::string(score)).find("is not a number"),
                  std::string::npos)
            << score;
    }
    EXPECT_EQ(pair_fault("# nothing\n"), "file holds no pairs");
    EXPECT_EQ(pair_fault("word1\tword2\tscore\n"), "file holds no pairs");
}

TEST(EvalCorrelation, Pearson) {
    // Σab = 8, Σaa = 10, Σbb = 10 around the means 3 and 3.
    EXPECT_DOUBLE_EQ(pearson(Numbers{1, 2, 3, 4, 5}, Numbers{2, 1, 4, 3, 5}), 0.8);
    EXPECT_DOUBLE_EQ(pearson(Numbers{1, 2, 3}, Numbers{10, 20, 30}), 1.0);
    EXPECT_DOUBLE_EQ(pearson(Numbers{1, 2, 3}, Numbers{3, 2, 1}), -1.0);
    EXPECT_DOUBLE_EQ(pearson(Numbers{0, 1, 0, 1}, Numbers{0, 0, 1, 1}), 0.0);
    EXPECT_TRUE(std::isnan(pearson(Numbers{0.1, 0.1, 0.1}, Numbers{1, 2, 3})))
        << "no variance, no correlation";
    EXPECT_TRUE(std::isnan(pearson(Numbers{1}, Numbers{1})));
    EXPECT_TRUE(std::isnan(pearson(Numbers{}, Numbers{})));
}

TEST(EvalCorrelation, TiesShareTheirRanks) {
    EXPECT_EQ(average_ranks(Numbers{30, 10, 20}), (Numbers{3, 1, 2}));
    EXPECT_EQ(average_ranks(Numbers{5, 1, 5, 5, 9, 1}), (Numbers{4, 1.5, 4, 4, 6, 1.5}));
    EXPECT_EQ(average_ranks(Numbers{}), Numbers());
}

TEST(EvalCorrelation, Spearman) {
    EXPECT_DOUBLE_EQ(spearman(Numbers{1, 2, 3, 4}, Numbers{1, 10, 100, 1000}), 1.0)
        << "order alone counts";
    // Ranks 1 2.5 2.5 4 and 1 2 3 4: Σab = 4.5, Σaa = 4.5, Σbb = 5.
    EXPECT_DOUBLE_EQ(spearman(Numbers{1, 2, 2, 3}, Numbers{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
}

TEST(EvalCase, SpellingsOfAWord) {
    EXPECT_EQ(spellings_of("king", LetterCase::ignore), (Words{"king", "KING", "King"}));
    EXPECT_EQ(spellings_of("McDonald", LetterCase::ignore),
              (Words{"McDonald", "mcdonald", "MCDONALD", "Mcdonald"}));
    EXPECT_EQ(spellings_of("7", LetterCase::ignore), Words{"7"});
    EXPECT_EQ(spellings_of("King", LetterCase::exact), Words{"King"});
    EXPECT_EQ(word_key("KiNG", LetterCase::ignore), word_key("king", LetterCase::ignore));
    EXPECT_NE(word_key("KiNG", LetterCase::exact), word_key("king", LetterCase::exact));
}

TEST(EvalCase, LettersBeyondAscii) {
    EXPECT_EQ(spellings_of("Évry", LetterCase::ignore), (Words{"Évry", "évry", "ÉVRY"}));
    EXPECT_EQ(spellings_of("йод", LetterCase::ignore), (Words{"йод", "ЙОД", "Йод"}));
    EXPECT_EQ(spellings_of("μῦς", LetterCase::ignore), (Words{"μῦς", "μῦσ", "ΜῦΣ", "Μῦσ"}))
        << "a final sigma folds to a sigma";
    EXPECT_EQ(spellings_of("ện", LetterCase::ignore), (Words{"ện", "ỆN", "Ện"}));
    EXPECT_EQ(spellings_of("ÿ€", LetterCase::ignore), (Words{"ÿ€", "Ÿ€"}));
    EXPECT_EQ(spellings_of("a\xFFk", LetterCase::ignore), (Words{"a\xFFk", "A\xFFK", "A\xFFk"}))
        << "bytes stay bytes";
}

TEST(EvalVocabulary, TakesTheMostFrequentSpelling) {
    Vocabulary vocabulary(LetterCase::ignore, 1000);
    vocabulary.add("Oslo");
    vocabulary.add("oslo");
    vocabulary.add("a");
    EXPECT_EQ(vocabulary.spellings(), (Words{"Oslo", "oslo", "OSLO", "a", "A"}))
        << "each spelling is asked for once";
    vocabulary.set_rank("OSLO", 900);
    vocabulary.set_rank("oslo", 30);
    vocabulary.set_rank("Oslo", 40);
    vocabulary.set_rank("a", 1000);
    ASSERT_NE(vocabulary.find("Oslo"), nullptr);
    EXPECT_EQ(*vocabulary.find("Oslo"), "oslo");
    EXPECT_EQ(*vocabulary.find("OSLO"), "oslo");
    EXPECT_EQ(vocabulary.find("a"), nullptr) << "rank 1000 is not among the first 1000";
    EXPECT_EQ(vocabulary.find("nix"), nullptr);
}

TEST(EvalVocabulary, KeepsCasesApartWhenTold) {
    Vocabulary vocabulary(LetterCase::exact, 1000);
    vocabulary.add("Oslo");
    EXPECT_EQ(vocabulary.spellings(), Words{"Oslo"});
    vocabulary.set_rank("Oslo", 999);
    EXPECT_EQ(*vocabulary.find("Oslo"), "Oslo");
    EXPECT_EQ(vocabulary.find("oslo"), nullptr);
}

TEST(EvalVocabulary, AsksInLinesThatTheDaemonTakes) {
    const Words spellings_asked(40, std::string(4096, '\x01'));
    std::size_t asked = 0;
    const auto requests = has_requests(spellings_asked, "fields=rank");
    EXPECT_GT(requests.size(), 1U);
    for (const HasRequest& request : requests) {
        EXPECT_TRUE(request.line.starts_with("HAS case=exact fields=rank \"\\x01"));
        EXPECT_LE(request.line.size(), wire::kMaxLineBytes);
        EXPECT_EQ(request.first, asked);
        asked += request.count;
    }
    EXPECT_EQ(asked, spellings_asked.size());
    const auto few = has_requests({"a", "b"}, "o=1");
    ASSERT_EQ(few.size(), 1U);
    EXPECT_EQ(few[0].line, "HAS case=exact o=1 \"a\" \"b\"");
}

TEST(EvalScoring, TheFirstHitThatWasNotGivenCounts) {
    const AnalogyQuestion question{{"man", "King", "woman"}, "Queen"};
    EXPECT_TRUE(is_answered(question, {"queen"}, LetterCase::ignore));
    EXPECT_TRUE(is_answered(question, {"KING", "Man", "QUEEN", "x"}, LetterCase::ignore))
        << "given, in another case";
    EXPECT_FALSE(is_answered(question, {"kings", "queen"}, LetterCase::ignore)) << "only the first";
    EXPECT_FALSE(is_answered(question, {"KING", "king"}, LetterCase::ignore));
    EXPECT_FALSE(is_answered(question, {}, LetterCase::ignore));
    EXPECT_TRUE(is_answered(question, {"Queen"}, LetterCase::exact));
    EXPECT_FALSE(is_answered(question, {"queen"}, LetterCase::exact));
    EXPECT_FALSE(is_answered(question, {"KING", "Queen"}, LetterCase::exact))
        << "another word, then";
    const AnalogyQuestion circular{{"a", "b", "c"}, "B"};
    EXPECT_FALSE(is_answered(circular, {"b", "c"}, LetterCase::ignore))
        << "the words of the question are not an answer";
}

AnalogyScore small_score() {
    AnalogyScore score;
    score.sections = {{"capital\tx", false, {1, 3, 2}}, {"gram \"1\"", true, {0, 0, 4}}};
    score.semantic = {1, 3, 2};
    score.syntactic = {0, 0, 4};
    score.total = {1, 3, 6};
    return score;
}

TEST(EvalReport, TableOfAnalogies) {
    EXPECT_EQ(table(small_score()),
              "section\tkind\tcorrect\tasked\tskipped\tpercent\n"
              "capital x\tsemantic\t1\t3\t2\t33.33\n"
              "gram \"1\"\tsyntactic\t0\t0\t4\t-\n"
              "*\tsemantic\t1\t3\t2\t33.33\n"
              "*\tsyntactic\t0\t0\t4\t-\n"
              "*\ttotal\t1\t3\t6\t33.33\n");
}

TEST(EvalReport, JsonOfAnalogies) {
    EXPECT_EQ(
        json({"glove", "0f", {1000, "mul", LetterCase::exact}}, small_score()),
        "{\"model\":\"glove\",\"generation\":\"0f\",\"top\":1000,\"case\":\"exact\",\"method\":"
        "\"mul\",\"sections\":["
        "{\"section\":\"capital\\u0009x\",\"kind\":\"semantic\",\"correct\":1,\"asked\":3,"
        "\"skipped\":2,\"percent\":33."
        "333333333333336},"
        "{\"section\":\"gram "
        "\\\"1\\\"\",\"kind\":\"syntactic\",\"correct\":0,\"asked\":0,\"skipped\":4,\"percent\":"
        "null}],"
        "\"semantic\":{\"correct\":1,\"asked\":3,\"skipped\":2,\"percent\":33.333333333333336},"
        "\"syntactic\":{\"correct\":0,\"asked\":0,\"skipped\":4,\"percent\":null},"
        "\"total\":{\"correct\":1,\"asked\":3,\"skipped\":6,\"percent\":33.333333333333336}}\n");
}

TEST(EvalReport, Pairs) {
    PairScore score{3, 1, 0.5, std::nan(""), {}};
    EXPECT_EQ(table(score),
              "pairs\tskipped\tskipped_percent\tpearson\tspearman\n3\t1\t25.00\t0.500000\t-\n");
    EXPECT_EQ(json({"g", "0f", {}}, score),
              "{\"model\":\"g\",\"generation\":\"0f\",\"top\":300000,\"case\":\"ignore\",\"pairs\":"
              "3,\"skipped\":1,"
              "\"skipped_percent\":25,\"pearson\":0.5,\"spearman\":null}\n");
}

}  // namespace
}  // namespace gloved::client
