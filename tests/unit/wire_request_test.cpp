#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base64.hpp"
#include "common/expr/expression.hpp"
#include "common/format/layout.hpp"
#include "common/result.hpp"
#include "common/wire/request.hpp"

namespace gloved::wire {
namespace {

Request request_of(std::string_view line) {
    auto request = parse_request(line);
    EXPECT_TRUE(request) << line << ": " << request.error().message;
    return request ? *std::move(request) : Request();
}

std::string error_of(std::string_view line) {
    const auto request = parse_request(line);
    EXPECT_FALSE(request) << line;
    if (request) return "";
    EXPECT_EQ(request.error().code, ErrorCode::bad_request) << line;
    EXPECT_FALSE(request.error().message.empty()) << line;
    EXPECT_EQ(request.error().message.find('\n'), std::string::npos) << line;
    return request.error().message;
}

using Terms = std::vector<expr::Term>;
using Words = std::vector<std::string>;
using Arguments = std::vector<std::pair<std::string, Terms>>;

Arguments arguments_of(std::string_view line) {
    Arguments arguments;
    for (const Argument& argument : request_of(line).arguments)
        arguments.emplace_back(argument.text, argument.terms);
    return arguments;
}

TEST(Request, ALineWithoutAVerbIsNearsExpression) {
    const Request request = request_of("king - man + woman");
    EXPECT_EQ(request.verb, Verb::near);
    EXPECT_EQ(request.terms, (Terms{{1, "king"}, {-1, "man"}, {1, "woman"}}));
    EXPECT_EQ(request.options.k, kDefaultK);
    EXPECT_TRUE(request.options.exclude_inputs);
    EXPECT_EQ(request.options.norm, Norm::raw);
    EXPECT_EQ(request_of("k=5 near").terms, (Terms{{1, "k=5"}, {1, "near"}}))
        << "options need the verb";
    EXPECT_EQ(request_of("NEARBY").terms, (Terms{{1, "NEARBY"}}));
    EXPECT_EQ(request_of("king NEAR").terms, (Terms{{1, "king"}, {1, "NEAR"}}))
        << "only the first token is a verb";
    EXPECT_EQ(request_of("\"PING\"").terms, (Terms{{1, "PING"}}));
}

TEST(Request, TakesEachOptionOfNear) {
    const Request request = request_of(
        "NEAR k=3 min=-0.5 top=1000 prefix=\"new \" norm=unit exclude=none engine=cpu model=glove "
        "fields=norm,row,rank "
        "within=animals,pets without=birds unknown=skip case=ignore certify=1 a b");
    EXPECT_EQ(request.options.k, 3U);
    EXPECT_EQ(request.options.min, -0.5);
    EXPECT_EQ(request.options.top, 1000U);
    EXPECT_EQ(request.options.prefix, "new ");
    EXPECT_EQ(request.options.norm, Norm::unit);
    EXPECT_FALSE(request.options.exclude_inputs);
    EXPECT_EQ(request.options.engine, "cpu");
    EXPECT_EQ(request.options.model, "glove");
    EXPECT_EQ(request.options.fields, (std::vector<Field>{Field::norm, Field::row, Field::rank}));
    EXPECT_EQ(request.options.within, (Words{"animals", "pets"}));
    EXPECT_EQ(request.options.without, (Words{"birds"}));
    EXPECT_EQ(request.options.unknown, Unknown::skip);
    EXPECT_EQ(request.options.word_case, WordCase::ignore);
    EXPECT_TRUE(request.options.certify);
    EXPECT_EQ(request.terms, (Terms{{1, "a"}, {1, "b"}}));

    const Request strict = request_of("NEAR unknown=error case=exact a");
    EXPECT_EQ(strict.options.unknown, Unknown::error);
    EXPECT_EQ(strict.options.word_case, WordCase::exact);
    const Request defaults = request_of("NEAR norm=raw exclude=inputs certify=0 a");
    EXPECT_EQ(defaults.options.unknown, std::nullopt) << "the daemon's";
    EXPECT_EQ(defaults.options.word_case, std::nullopt);
    EXPECT_EQ(defaults.options.norm, Norm::raw);
    EXPECT_TRUE(defaults.options.exclude_inputs);
    EXPECT_FALSE(defaults.options.certify);
}

TEST(Request, TheWordsOfOnlyStandFirst) {
    const Request near = request_of("NEAR only=3 top=9 a + \"k=1\" - x + 2 * y");
    EXPECT_EQ(near.chosen, (Words{"a", "+", "k=1"}));
    EXPECT_EQ(near.terms, (Terms{{-1, "x"}, {2, "y"}}));
    const Request analogy = request_of("ANALOGY only=1 w a b c");
    EXPECT_EQ(analogy.chosen, (Words{"w"}));
    EXPECT_EQ(analogy.words, (Words{"a", "b", "c"}));
    EXPECT_NE(error_of("NEAR only=3 a b").find("first 3 words, and there are 2"),
              std::string::npos);
    EXPECT_NE(error_of("NEAR only=2 a b").find("(after the 2 of only=)"), std::string::npos);
    EXPECT_NE(error_of("ANALOGY only=2 a b c").find("not 1 (after the 2 of only=)"),
              std::string::npos);
    EXPECT_NE(error_of("NEAR only=1 engine=cpu a b").find("engine="), std::string::npos);
    for (const char* line : {"NEAR only=0 a", "NEAR only=x a b", "NEAR only=1 \"\" b",
                             "NEARVEC only=1 1 2", "RANK only=1 a b c", "SIM only=1 a b c"})
        error_of(line);
}

TEST(Request, OptionsEndAtTheFirstOtherToken) {
    EXPECT_EQ(request_of("NEAR k=2 a k=3").terms, (Terms{{1, "a"}, {1, "k=3"}}));
    EXPECT_EQ(request_of("NEAR \"k=3\"").terms, (Terms{{1, "k=3"}}));
    EXPECT_EQ(request_of("NEAR K=3").terms, (Terms{{1, "K=3"}}));
}

TEST(Request, RefusesOptionsItDoesNotKnowOrSeesTwice) {
    EXPECT_NE(error_of("NEAR x=1 a").find("quote it: \"x=1\""), std::string::npos);
    EXPECT_NE(error_of("NEAR k=1 k=1 a").find("twice"), std::string::npos);
    EXPECT_NE(error_of("NEAR fields=row,row a").find("twice"), std::string::npos);
    EXPECT_NE(error_of("SIM k=1 a b").find("no option \"k\"="), std::string::npos);
    EXPECT_NE(error_of("PING model=a").find("no option \"model\"="), std::string::npos);
    EXPECT_EQ(request_of("SIM model=m a b").options.model, "m");
}

TEST(Request, HoldsNumbersToTheirBounds) {
    for (const char* k :
         {"-1", "0", "1e999", "1e3", "nan", "inf", "0x10", "+5", "1.0", "\"5 \"", "",
          "18446744073709551616", "18446744073709551615", "4294967296", "\"\"", "\" 5\"", "٣"}) {
        error_of(std::string("NEAR k=") + k + " a");
    }
    EXPECT_EQ(request_of("NEAR k=1 a").options.k, 1U);
    EXPECT_EQ(request_of("NEAR k=\"7\" a").options.k, 7U);
    EXPECT_EQ(request_of("NEAR k=4294967295 a").options.k, 4294967295U)
        << "the daemon's --max-k is what bounds it";

    for (const char* top :
         {"-1", "0", "1e999", "nan", "inf", "0x10", "+5", "4294967296", "18446744073709551616"}) {
        error_of(std::string("NEAR top=") + top + " a");
    }
    EXPECT_EQ(request_of("NEAR top=1 a").options.top, 1U);
    EXPECT_EQ(request_of("NEAR top=4294967295 a").options.top, 4294967295U);

    for (const char* min : {"1e999", "-1e999", "nan", "-nan", "inf", "-inf", "0x1p3", "", "half"}) {
        error_of(std::string("NEAR min=") + min + " a");
    }
    EXPECT_EQ(request_of("NEAR min=-1 a").options.min, -1.0);
    EXPECT_EQ(request_of("NEAR min=+0.5 a").options.min, 0.5);
}

TEST(Request, RefusesChoicesItDoesNotHave) {
    for (const char* option :
         {"norm=",           "norm=l2",      "norm=RAW",    "exclude=all", "exclude=",
          "certify=2",       "certify=yes",  "within=",     "within=a,",   "without=,a",
          "within=a,,b",     "fields=",      "fields=row,", "fields=,row", "fields=score",
          "fields=row;rank", "engine=",      "model=",      "prefix=",     "prefix=\"\"",
          "prefix=\"a",      "model=\"a\"b", "unknown=",    "unknown=1",   "unknown=Skip",
          "case=",           "case=lower",   "case=IGNORE"}) {
        error_of(std::string("NEAR ") + option + " a");
    }
}

TEST(Request, RefusesWhatIsNoLine) {
    EXPECT_NE(error_of("").find("empty"), std::string::npos);
    error_of(" ");
    error_of("\t \t");
    EXPECT_NE(error_of(std::string_view("a\0b", 3)).find("NUL"), std::string::npos);
    EXPECT_NE(error_of(std::string_view("PING\0", 5)).find("NUL"), std::string::npos);
    EXPECT_NE(error_of("a\rb").find("CR"), std::string::npos);
    EXPECT_NE(error_of("\r").find("CR"), std::string::npos);
    error_of("\"a");
    error_of("NEAR");
    error_of("NEAR k=1");
    error_of("NEAR a +");
}

TEST(Request, CountsTheWordsOfEachVerb) {
    EXPECT_EQ(arguments_of("SIM king \"new york\""), (Arguments{{"king", {}}, {"new york", {}}}));
    EXPECT_EQ(request_of("VEC king king \"new york\"").words, (Words{"king", "king", "new york"}));
    EXPECT_EQ(request_of("HAS a + \"\\x00\"").words, (Words{"a", "+", std::string(1, '\0')}));
    for (const char* line : {"SIM",         "SIM a",       "SIM a b c",       "SIM a \"\"",
                             "HAS",         "HAS \"\"",    "PING a",          "STATS a",
                             "HELP a",      "QUIT a",      "DIST a",          "DIST a b c",
                             "VEC",         "VEC a \"\"",  "ODD a b",         "RANK a",
                             "RANK a b c",  "MATRIX",      "PREFIX",          "PREFIX a b",
                             "PREFIX \"\"", "ANALOGY a b", "ANALOGY a b c d", "NEARVEC",
                             "MODELS a",    "USE",         "FORMAT yaml",     "RELOAD a b",
                             "LISTS a"}) {
        error_of(line);
    }
    for (const char* line : {"PING", "STATS", "HELP", "QUIT", " PING ", "\tSTATS"})
        request_of(line);
    EXPECT_EQ(request_of("HAS" +
                         [] {
                             std::string words;
                             for (int i = 0; i < 10000; ++i) words += " w";
                             return words;
                         }())
                  .words.size(),
              10000U);
}

TEST(Group, IsAnExpressionInParentheses) {
    const Terms sum = {{1, "a"}, {-2, "b"}};
    for (const std::string verb : {"SIM", "DIST", "RANK"}) {
        EXPECT_EQ(arguments_of(verb + " ( a - 2 * b ) c"),
                  (Arguments{{"( a - 2 * b )", sum}, {"c", {}}}));
        EXPECT_EQ(arguments_of(verb + " norm=unit c ( a - 2 * b )"),
                  (Arguments{{"c", {}}, {"( a - 2 * b )", sum}}));
    }
    EXPECT_EQ(arguments_of("ODD ( a ) - ( b ( c - d ) ) )"),
              (Arguments{{"( a )", {{1, "a"}}},
                         {"-", {}},
                         {"( b ( c - d ) )", {{1, "b"}, {1, "c"}, {-1, "d"}}},
                         {")", {}}}));
    EXPECT_EQ(request_of("ODD norm=unit a b c").options.norm, Norm::unit);
    EXPECT_EQ(request_of("SIM a b").options.norm, Norm::raw);
}

TEST(Group, ComesBackAsItWasTyped) {
    EXPECT_EQ(arguments_of("SIM ( a\t +  \"\\x62\"\t) \"(\""),
              (Arguments{{"( a  +  \"\\x62\" )", {{1, "a"}, {1, "b"}}}, {"(", {}}}));
}

TEST(Group, NeedsBothParenthesesUnquotedAndSomethingBetween) {
    EXPECT_EQ(arguments_of("SIM ( king"), (Arguments{{"(", {}}, {"king", {}}}));
    EXPECT_EQ(arguments_of("SIM king )"), (Arguments{{"king", {}}, {")", {}}}));
    EXPECT_EQ(arguments_of("SIM ( )"), (Arguments{{"(", {}}, {")", {}}}));
    EXPECT_EQ(arguments_of("SIM ) ("), (Arguments{{")", {}}, {"(", {}}}));
    EXPECT_EQ(arguments_of("ODD ( ( a ) b"),
              (Arguments{{"(", {}}, {"( a )", {{1, "a"}}}, {"b", {}}}));
    EXPECT_EQ(arguments_of("ODD \"(\" a )"), (Arguments{{"(", {}}, {"a", {}}, {")", {}}}));
    EXPECT_EQ(arguments_of("ODD ( a \")\""), (Arguments{{"(", {}}, {"a", {}}, {")", {}}}));
    EXPECT_EQ(arguments_of("ODD (the a b)"), (Arguments{{"(the", {}}, {"a", {}}, {"b)", {}}}));
    // Other verbs have words alone.
    EXPECT_EQ(request_of("VEC ( a )").words, (Words{"(", "a", ")"}));
    EXPECT_EQ(request_of("ANALOGY ( a )").words, (Words{"(", "a", ")"}));
}

TEST(Group, IsOneOfTheArgumentsThatAreCounted) {
    EXPECT_NE(error_of("SIM ( a b )").find("SIM takes 2 words or groups, not 1"),
              std::string::npos);
    EXPECT_NE(error_of("SIM ( a ) b ( c )").find("not 3"), std::string::npos);
    EXPECT_NE(error_of("ODD ( a b ) c").find("ODD takes at least 3 words or groups, not 2"),
              std::string::npos);
}

TEST(Group, FollowsTheRulesOfExpressions) {
    EXPECT_NE(error_of("SIM ( a - ) b").find("a word must follow"), std::string::npos);
    EXPECT_NE(error_of("SIM ( x * a ) b").find("\"x\" is not a number"), std::string::npos);
    error_of("SIM ( a ( ) ) b");
    error_of("SIM ( * ) b");
    error_of("SIM ( a \"\" ) b");
    const auto nested = [](int depth) {
        std::string line = "SIM b";
        for (int i = 0; i < depth; ++i) line += " (";
        line += " a";
        for (int i = 0; i < depth; ++i) line += " )";
        return line;
    };
    EXPECT_EQ(request_of(nested(expr::kMaxNesting)).arguments.back().terms, (Terms{{1, "a"}}));
    EXPECT_NE(error_of(nested(expr::kMaxNesting + 1)).find("nested"), std::string::npos);
    // As many as a line has room for.
    std::string open = "ODD";
    while (open.size() + 2 <= kMaxLineBytes) open += " (";
    EXPECT_EQ(request_of(open).arguments.size(), (kMaxLineBytes - 3) / 2);
}

TEST(Request, TakesTheOptionsOfEachVerb) {
    EXPECT_EQ(request_of("ANALOGY a b c").options.method, Method::add);
    EXPECT_EQ(request_of("ANALOGY method=mul k=3 top=5 a b c").options.method, Method::mul);
    EXPECT_EQ(request_of("MATRIX a").options.metric, Metric::cosine);
    EXPECT_EQ(request_of("MATRIX metric=sqeuclidean a b").options.metric, Metric::sqeuclidean);
    EXPECT_EQ(request_of("RANK top=9 prefix=x engine=cpu a b").options.top, 9U);
    EXPECT_EQ(request_of("RANK within=a a b").options.within, Words{"a"});
    EXPECT_EQ(request_of("PREFIX without=a,b x").options.without, (Words{"a", "b"}));
    EXPECT_EQ(request_of("NEARVEC within=a 1").options.within, Words{"a"});
    EXPECT_EQ(request_of("ANALOGY within=a b c d").options.within, Words{"a"});
    for (const char* line :
         {"RANK unknown=skip case=ignore a b", "SIM unknown=skip case=ignore a b",
          "DIST case=ignore unknown=skip a b", "VEC unknown=skip case=ignore a",
          "ODD unknown=skip case=ignore a b c", "MATRIX unknown=skip case=ignore a"}) {
        EXPECT_EQ(request_of(line).options.unknown, Unknown::skip);
        EXPECT_EQ(request_of(line).options.word_case, WordCase::ignore);
    }
    EXPECT_EQ(request_of("ANALOGY case=ignore a b c").options.word_case, WordCase::ignore);
    EXPECT_EQ(request_of("HAS case=ignore a").options.word_case, WordCase::ignore);
    EXPECT_EQ(request_of("LISTS model=m").options.model, "m");
    EXPECT_EQ(request_of("VEC a").options.encoding, Encoding::decimal);
    EXPECT_EQ(request_of("VEC encoding=decimal a").options.encoding, Encoding::decimal);
    EXPECT_EQ(request_of("VEC model=m encoding=base64 a b").options.encoding, Encoding::base64);
    EXPECT_EQ(request_of("PREFIX k=2 fields=rank \"new y\"").words, (Words{"new y"}));
    EXPECT_EQ(request_of("NEARVEC k=2 min=0 0.5\t-1 +2e3").values,
              (std::vector<float>{0.5F, -1.0F, 2000.0F}));
    for (const char* line : {"ANALOGY method=sub a b c",
                             "MATRIX metric=euclidean a",
                             "SIM method=add a b",
                             "ODD k=2 a b c",
                             "RANK k=2 a b",
                             "SIM within=a a b",
                             "HAS without=a a",
                             "LISTS a",
                             "VEC k=1 a",
                             "VEC encoding=hex a",
                             "VEC encoding= a",
                             "HAS encoding=base64 a",
                             "MATRIX k=1 a",
                             "NEARVEC 1 two",
                             "NEARVEC 1 nan",
                             "NEARVEC 1e39",
                             "NEARVEC exclude=none 1",
                             "NEARVEC case=ignore 1",
                             "NEARVEC unknown=skip 1",
                             "ANALOGY unknown=skip a b c",
                             "HAS unknown=skip a",
                             "PREFIX case=ignore a"}) {
        error_of(line);
    }
    std::string words;
    for (std::size_t i = 0; i < kMaxMatrixWords; ++i) words += " w";
    EXPECT_EQ(request_of("MATRIX" + words).words.size(), kMaxMatrixWords);
    error_of("MATRIX" + words + " w");
}

std::string base64_of(const std::vector<float>& values) {
    std::string text;
    append_base64(text, std::as_bytes(std::span(values)));
    return text;
}

TEST(VectorInBase64, IsThatOfItsDecimals) {
    std::mt19937 random(1);
    for (int round = 0; round < 1000; ++round) {
        std::vector<float> values(1 + random() % 300);
        std::string decimals;
        for (float& value : values) {
            do {
                value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
            } while (!std::isfinite(value));
            decimals += fmt::format(" {}", value);
        }
        const auto read = request_of("NEARVEC k=3 base64=" + base64_of(values)).values;
        EXPECT_TRUE(
            std::ranges::equal(std::as_bytes(std::span(read)), std::as_bytes(std::span(values))));
        const auto numbers = request_of("NEARVEC k=3" + decimals).values;
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(numbers)),
                                       std::as_bytes(std::span(values))));
    }
}

TEST(VectorInBase64, IsReadLittleEndian) {
    EXPECT_EQ(request_of("NEARVEC base64=AACAPwAAAMA=").values, (std::vector<float>{1, -2}));
    EXPECT_EQ(request_of("NEARVEC base64=\"AACAPwAAAMA=\" k=2").options.k, 2U);
    EXPECT_TRUE(request_of("NEARVEC base64=AACAPwAAAMA=").words.empty());
}

TEST(VectorInBase64, OfTheLargestModelFitsALine) {
    const std::vector<float> values(format::kMaxDim, 0.123456789F);
    const std::string line = "NEARVEC k=10 base64=" + base64_of(values);
    EXPECT_LT(line.size(), kMaxLineBytes / 2);
    EXPECT_EQ(request_of(line).values, values);
    std::vector<float> larger = values;
    larger.push_back(1);
    EXPECT_NE(error_of("NEARVEC base64=" + base64_of(larger)).find("1 to 4096 numbers"),
              std::string::npos);
}

TEST(VectorInBase64, IsRefusedIfItIsNone) {
    for (const char* text : {"\"\"", "AACAPw", "AACAPw=", "AACAPw===", "AACAPx==", "AACA_w==",
                             "AACAPw==A", "\"AACA Pw==\"", "\"AACAPw==\\x0A\"", "ĀACAPw=="}) {
        const std::string message = error_of(std::string("NEARVEC base64=") + text);
        EXPECT_NE(message.find("base64="), std::string::npos) << message;
    }
    error_of("NEARVEC base64= 1");
    for (const char* text : {"AA==", "AAA=", "AAAA", "AACAPwA=", "AACAPwAA", "AACAPwAAAA=="}) {
        const std::string message = error_of(std::string("NEARVEC base64=") + text);
        EXPECT_NE(message.find("numbers of 4 bytes each, not"), std::string::npos) << message;
    }
}

TEST(VectorInBase64, IsRefusedIfANumberIsNotFinite) {
    const float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float odd_nan = std::bit_cast<float>(0xFF800001U);
    for (const float value : {infinity, -infinity, nan, -nan, odd_nan}) {
        for (std::size_t at = 0; at < 3; ++at) {
            std::vector<float> values(3, 1.0F);
            values[at] = value;
            const std::string message = error_of("NEARVEC base64=" + base64_of(values));
            EXPECT_NE(message.find(fmt::format("number {} is", at + 1)), std::string::npos)
                << message;
        }
    }
    const std::vector<float> extremes = {std::numeric_limits<float>::max(),
                                         std::numeric_limits<float>::denorm_min(), -0.0F};
    EXPECT_EQ(request_of("NEARVEC base64=" + base64_of(extremes)).values, extremes);
}

TEST(VectorInBase64, StandsInThePlaceOfNumbers) {
    EXPECT_NE(error_of("NEARVEC base64=AACAPw== 1").find("not both"), std::string::npos);
    EXPECT_NE(error_of("NEARVEC base64=AACAPw== k=3 x").find("not both"), std::string::npos);
    EXPECT_NE(error_of("NEARVEC base64=AACAPw== base64=AACAPw==").find("twice"), std::string::npos);
    EXPECT_NE(error_of("NEARVEC k=3").find("1 to 4096 numbers"), std::string::npos);
    error_of("NEAR base64=AACAPw== a");
}

TEST(Request, ReadsNumbersOfAnyForm) {
    EXPECT_EQ(request_of("NEARVEC \"1\" 2. \"-0.5\"\t.25   +3e1 0.000000000000001e15 ").values,
              (std::vector<float>{1, 2, -0.5F, 0.25F, 30, 1}));
    EXPECT_NE(error_of("NEARVEC 1 two 3").find("\"two\" is not a number"), std::string::npos);
    EXPECT_NE(error_of("NEARVEC 1 0.5x").find("\"0.5x\" is not a number"), std::string::npos);
    EXPECT_NE(error_of("NEARVEC 1 -1e39 2").find("\"-1e39\" is too large for float32"),
              std::string::npos);
    error_of("NEARVEC 1 \"2");
    error_of("NEARVEC 1 \"\"");
    std::string numbers;
    for (std::size_t i = 0; i < format::kMaxDim; ++i) numbers += " 0.5";
    EXPECT_EQ(request_of("NEARVEC" + numbers).values.size(), format::kMaxDim);
    EXPECT_NE(error_of("NEARVEC 1" + numbers).find("1 to 4096 numbers, not 4097"),
              std::string::npos);
}

TEST(Request, EveryVerbIsReservedWhetherAnsweredOrNot) {
    for (const char* name : {"NEAR",   "SIM",    "DIST",    "VEC",    "ANALOGY", "ODD", "RANK",
                             "MATRIX", "PREFIX", "NEARVEC", "HAS",    "MODELS",  "USE", "LISTS",
                             "STATS",  "PING",   "FORMAT",  "RELOAD", "HELP",    "QUIT"}) {
        const auto verb = find_verb(name);
        ASSERT_TRUE(verb) << name;
        EXPECT_EQ(verb_name(*verb), name);
        std::string lower = name;
        for (char& c : lower) c = static_cast<char>(c - 'A' + 'a');
        EXPECT_FALSE(find_verb(lower));
        EXPECT_EQ(request_of(lower).terms, (Terms{{1, lower}}));
    }
    for (const char* name : {"", " ", "NEAR ", " NEAR", "NEA", "NEARS"})
        EXPECT_FALSE(find_verb(name)) << name;
}

TEST(Request, BytesThatMeanNothingHereAreWords) {
    for (const char* line : {"* 1", "HELLO )", "( GET", "+ +"})
        error_of(line);  // operators stay operators
    EXPECT_EQ(request_of("GET / HTTP/1.1").terms.size(), 3U)
        << "a foreign line of words is words; the model knows none";
    EXPECT_EQ(request_of("\xEF\xBB\xBFking").terms, (Terms{{1, "\xEF\xBB\xBFking"}}))
        << "no byte is taken away";
    EXPECT_EQ(request_of("\xC0\xAF\xED\xA0\x80\xE2\x82").terms.size(), 1U)
        << "keys need not be UTF-8";
}

}  // namespace
}  // namespace gloved::wire
