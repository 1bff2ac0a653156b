// gloved-verify --audit: answers of a daemon are sound, and every answer that was changed is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/request.hpp"
#include "common/wire/request_line.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using nlohmann::json;
using Random = std::mt19937;

constexpr std::size_t kRows = 1200;
constexpr std::size_t kDim = 12;
constexpr std::size_t kAnswers = 10000;
constexpr std::size_t kTampered = 1000;

std::size_t below(Random& random, std::size_t limit) { return random() % limit; }

/// An accented letter as one code point, and as two.
constexpr std::string_view kComposed = "í";
constexpr std::string_view kDecomposed = "i\xCC\x81";

/// Words in several cases, and with an accent, so that case=ignore has something to find, and to
/// choose from.
std::string word_of(std::size_t number) {
    static const std::vector<std::string> kForms = {"w", "W", "mIxed ", "miXed ",
                                                    std::string(kComposed)};
    return kForms[number % kForms.size()] + std::to_string(number / kForms.size());
}

std::string random_word(Random& random) {
    std::string word = word_of(below(random, kRows));
    if (below(random, 5) == 0)
        std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
    if (word.starts_with(kComposed) && below(random, 2) == 0)
        word.replace(0, kComposed.size(), kDecomposed);
    if (below(random, 20) == 0) word += "?";
    return '"' + word + '"';
}

/// A request of any kind, with any options.
std::string random_request(Random& random) {
    const auto one_in = [&](std::size_t many) { return below(random, many) == 0; };
    const auto pick = [&](const std::vector<std::string>& of) {
        return of[below(random, of.size())];
    };
    std::string options = " certify=1 k=" + pick({"1", "2", "7", "40"});
    if (one_in(4)) options += fmt::format(" top={}", 1 + below(random, kRows));
    if (one_in(5)) options += " prefix=" + pick({"w1", "W", "m", "\"mIxed 2\""});
    if (one_in(5)) options += " min=" + pick({"-0.5", "0", "0.1", "0.25", "0.7"});
    if (one_in(3)) options += " within=" + pick({"third", "half", "half,third"});
    if (one_in(4)) options += " without=" + pick({"third", "half", "third,half"});
    if (one_in(3)) options += " fields=" + pick({"row", "rank", "norm", "norm,rank,row"});
    const std::string lenient = one_in(2) ? " case=ignore" : "";
    const std::size_t chosen = one_in(4) ? 1 + below(random, 30) : 0;
    std::string only = chosen > 0 ? fmt::format(" only={}", chosen) : "";
    for (std::size_t i = 0; i < chosen; ++i) only += ' ' + random_word(random);
    const std::size_t kind = below(random, 10);
    if (kind == 0) {
        std::string line = "NEARVEC" + options;
        for (std::size_t i = 0; i < kDim; ++i)
            line += fmt::format(" {}.{}", static_cast<int>(below(random, 5)) - 2, random());
        return line;
    }
    if (kind < 3) {
        std::string line = "ANALOGY" + options + lenient + " method=" + pick({"add", "mul"}) + only;
        for (int i = 0; i < 3; ++i) line += ' ' + random_word(random);
        return line;
    }
    std::string line = "NEAR" + options + lenient + " unknown=skip norm=" + pick({"raw", "unit"}) +
                       " exclude=" + pick({"inputs", "none"}) + only + ' ' + random_word(random);
    for (std::size_t more = below(random, 4); more > 0; --more)
        line += pick({" + ", " - ", " ", " + 0.1 * ", " - 3e-2 * ( 7 * "}) + random_word(random);
    for (auto open = std::ranges::count(line, '('); open > 0; --open) line += " )";
    return line;
}

/// A change of an answer that makes it unsound; false if it does not apply to this one.
using Change = std::function<bool(json& reply, Random& random)>;

void leave_out_last(json& reply) {
    json& results = reply["results"];
    results.erase(results.size() - 1);
    if (results.empty()) {
        reply.erase("kth");
    } else {
        reply["kth"] = results.back()["score"];
    }
}

const std::map<std::string, Change> kChanges = {
    {"the last bit of a score",
     [](json& reply, Random& random) {
         json& results = reply["results"];
         if (results.empty()) return false;
         json& score = results[below(random, results.size())]["score"];
         score = std::nextafter(score.get<double>(), below(random, 2) == 0 ? 2.0 : -2.0);
         reply["kth"] = results.back()["score"];
         return true;
     }},
    {"the order of two words",
     [](json& reply, Random& random) {
         json& results = reply["results"];
         if (results.size() < 2) return false;
         const std::size_t at = below(random, results.size() - 1);
         std::swap(results[at], results[at + 1]);
         reply["kth"] = results.back()["score"];
         return true;
     }},
    {"a word",
     [](json& reply, Random& random) {
         json& results = reply["results"];
         if (results.empty()) return false;
         json& word = results[below(random, results.size())]["word"];
         const std::string other = word_of(below(random, kRows));
         if (word == other) return false;
         word = other;
         return true;
     }},
    {"the k-th left out",
     [](json& reply, Random&) {
         if (reply["results"].empty()) return false;
         leave_out_last(reply);
         return true;
     }},
    {"the first left out",
     [](json& reply, Random&) {
         if (reply["results"].size() < 2) return false;
         reply["results"].erase(0);
         return true;
     }},
    {"another generation",
     [](json& reply, Random& random) {
         auto generation = reply["generation"].get<std::string>();
         char& digit = generation[below(random, generation.size())];
         digit = digit == '0' ? '1' : '0';
         reply["generation"] = generation;
         return true;
     }},
    {"another k-th score",
     [](json& reply, Random&) {
         if (!reply.contains("kth")) return false;
         reply["kth"] = std::nextafter(reply["kth"].get<double>(), 2.0);
         return true;
     }},
    {"a list of another checksum",
     [](json& reply, Random&) {
         if (reply["lists"].empty()) return false;
         reply["lists"][0]["checksum"] = "0123456789abcdef";
         return true;
     }},
    {"no request",
     [](json& reply, Random&) {
         reply.erase("request");
         return true;
     }},
    {"a field",
     [](json& reply, Random&) {
         if (reply["results"].empty() || !reply["results"][0].contains("rank")) return false;
         reply["results"][0]["rank"] = kRows;
         return true;
     }},
    {"a replaced word",
     [](json& reply, Random&) {
         if (!reply.contains("replaced")) return false;
         reply["replaced"][0]["by"] = "other";
         return true;
     }},
    {"a skipped word that is not told",
     [](json& reply, Random&) { return reply.erase("skipped") > 0; }},
    {"rows that were not ruled out",
     [](json& reply, Random&) {
         if (!reply.contains("kth")) return false;
         reply["ruled_out_by_vectors"] = reply["ruled_out_by_vectors"].get<std::uint64_t>() + 1;
         return true;
     }},
};

/// A request as a daemon writes it.
std::string as_written(const std::string& line) {
    return wire::request_line(*wire::parse_request(line), wire::Unknown::error,
                              wire::WordCase::exact);
}

class VerifyAudit : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        auto entries = random_entries(kRows, kDim, 9);
        for (std::size_t i = 0; i < kRows; ++i) entries[i].first = word_of(i);
        make_model(*dir_ / "model", entries);
        entries[kRows / 2].second[0] += 1;
        make_model(*dir_ / "other", entries);
        std::ofstream third(*dir_ / "third");
        std::ofstream half(*dir_ / "half");
        for (std::size_t i = 0; i < kRows; ++i) {
            if (i % 3 == 1) third << word_of(i) << '\n';
            if (i % 2 == 1) half << word_of(i) << '\n';
        }
        std::ofstream(*dir_ / "few") << word_of(4) << '\n';
    }

    /// The replies in JSON of a daemon that has `more` options.
    static std::vector<std::string> ask(const std::vector<std::string>& requests,
                                        const std::vector<std::string>& more = {}) {
        std::vector<std::string> options = {"--list", "third=" + (*dir_ / "third"), "--list",
                                            "half=" + (*dir_ / "half")};
        options.insert(options.end(), more.begin(), more.end());
        const Daemon daemon("m=" + (*dir_ / "model"), options);
        std::string input;
        for (const std::string& request : requests) input += request + "\n";
        const Finished finished =
            run({program("gloved-client"), "--socket", daemon.socket_path(), "--json", "--lines"},
                input, std::chrono::minutes(5));
        std::vector<std::string> replies;
        for (std::size_t begin = 0; begin < finished.out.size();) {
            const std::size_t end = finished.out.find('\n', begin);
            replies.push_back(finished.out.substr(begin, end - begin));
            begin = end + 1;
        }
        return replies;
    }

    /// The program's checks of these replies, by name.
    struct Audit {
        int exit_code = -1;
        std::map<std::string, std::pair<bool, std::string>> checks;
        std::string detail(const std::string& name) const {
            const auto found = checks.find(name);
            return found == checks.end() ? "none" : found->second.second;
        }
    };
    static Audit audit(const std::vector<std::string>& replies,
                       std::vector<std::string> options = {}, const std::string& model = "model") {
        std::string text;
        for (const std::string& reply : replies) text += reply + "\n";
        std::ofstream(*dir_ / "answers", std::ios::binary) << text;
        if (options.empty())
            options = {"--list", "third=" + (*dir_ / "third"), "--list",
                       "half=" + (*dir_ / "half")};
        std::vector<std::string> command = {program("gloved-verify"), "--json", "--audit",
                                            *dir_ / "answers"};
        command.insert(command.end(), options.begin(), options.end());
        command.push_back(*dir_ / model);
        const Finished finished = run(command, {}, std::chrono::minutes(5));
        Audit audit;
        audit.exit_code = finished.exit_code;
        const json parsed = json::parse(finished.out, nullptr, false);
        EXPECT_TRUE(parsed.is_object()) << finished.out << finished.err;
        for (const json& check : parsed["checks"])
            audit.checks[check["name"]] = {check["ok"], check["detail"]};
        return audit;
    }

    static inline const std::unique_ptr<TempDir> dir_ = std::make_unique<TempDir>();
};

TEST_F(VerifyAudit, FindsEveryAnswerThatWasChangedAndNoOther) {
    Random random(25);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same requests in every run
    std::vector<std::string> requests;
    for (std::size_t i = 0; i < kAnswers * 3 / 2; ++i) requests.push_back(random_request(random));
    std::vector<std::string> replies = ask(requests);
    std::erase_if(replies,
                  [](const std::string& reply) { return reply.starts_with("{\"ok\":false"); });
    ASSERT_GE(replies.size(), kAnswers);
    replies.resize(kAnswers);

    const Audit sound = audit(replies);
    EXPECT_EQ(sound.exit_code, 0);
    EXPECT_EQ(sound.detail("answers"), "10000 of 10000 are those of a plain float64 search");

    std::set<std::string> expected;
    std::map<std::string, std::size_t> tried;
    auto change = kChanges.begin();
    // A step that has no factor in common with the number of answers.
    for (std::size_t at = 0; at < 7 * kAnswers && expected.size() < kTampered; at += 7) {
        json reply = json::parse(replies[at % kAnswers]);
        const std::string name = fmt::format("answer on line {}", at % kAnswers + 1);
        if (expected.contains(name)) continue;
        if (change->second(reply, random)) {
            replies[at % kAnswers] = reply.dump();
            expected.insert(name);
            ++tried[change->first];
            if (++change == kChanges.end()) change = kChanges.begin();
        }
    }
    ASSERT_EQ(expected.size(), kTampered) << change->first << " cannot be tried";
    for (const auto& [name, unused] : kChanges)
        EXPECT_GE(tried[name], kTampered / kChanges.size()) << name;
    const Audit changed = audit(replies);
    EXPECT_EQ(changed.exit_code, 1);
    std::set<std::string> found;
    for (const auto& [name, check] : changed.checks) {
        if (name.starts_with("answer on") && !check.first) found.insert(name);
    }
    EXPECT_EQ(found.size(), kTampered);
    for (const std::string& name : expected) EXPECT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(changed.detail("answers"), "9000 of 10000 are those of a plain float64 search");
}

TEST_F(VerifyAudit, SaysWhatIsWrong) {
    const auto replies = ask({"NEAR certify=1 k=2 within=half fields=rank w5", "PING",
                              "NEAR certify=1 w7 + nobody", "NEAR k=1 w5"});
    const std::string& answer = replies.at(0);
    const json parsed = json::parse(answer);
    const auto with = [&](const std::function<void(json&)>& change) {
        json changed = parsed;
        change(changed);
        return changed.dump();
    };
    const auto text_with = [&](const std::string& old, const std::string& text) {
        std::string changed = answer;
        changed.replace(changed.find(old), old.size(), text);
        return changed;
    };
    const auto message = [&](const std::string& line) {
        return audit({line}).detail("answer on line 1");
    };
    EXPECT_EQ(audit({answer, replies.at(1), "", replies.at(2)}).detail("answers"),
              "1 of 1 are those of a plain float64 search; 2 other replies were not checked");
    EXPECT_EQ(message(replies.at(3)),
              "it carries no request, so nobody can check it; ask with certify=1");
    EXPECT_EQ(message("OK 1 engine=cpu"), "it is no reply in JSON; ask after FORMAT json");
    EXPECT_EQ(message("[1]"), "it is no reply in JSON; ask after FORMAT json");
    EXPECT_EQ(message(text_with("\"ok\":true", "\"ok\":true,\"ok\":true")),
              "a name occurs twice in one of its objects");
    EXPECT_NE(message(with([](json& reply) {
                  reply.erase("rows");
              })).find("a member is missing or of another type: "),
              std::string::npos);
    EXPECT_NE(message(with([](json& reply) { reply["kth"] = "1"; })).find("of another type"),
              std::string::npos);
    EXPECT_NE(message(with([](json& reply) {
                  reply["request"] = "NEAR k=0 w5";
              })).find("the request is refused: k= takes a whole number"),
              std::string::npos);
    EXPECT_EQ(
        message(with([](json& reply) { reply["request"] = as_written("NEAR certify=1 nobody"); })),
        "\"nobody\" is not in the model");
    EXPECT_EQ(message(with([](json& reply) {
                  reply["request"] = as_written("NEAR certify=1 unknown=skip nobody");
              })),
              "no word of the request is in the model");
    EXPECT_EQ(message(with([](json& reply) {
                  reply["request"] = as_written("NEAR certify=1 within=half w5 - w5");
              })),
              "the query vector is zero");
    EXPECT_EQ(message(with([](json& reply) {
                  reply["request"] = as_written("ANALOGY certify=1 w1 w2 w3");
              })),
              "its request is of another verb");
    EXPECT_EQ(message(with([](json& reply) { reply["rows"] = 3; })), "the model has 1200 rows");
    EXPECT_NE(message(with([](json& reply) {
                  reply["results"][1]["score"] = 0.25;
              })).find("place 2 is \""),
              std::string::npos);
    EXPECT_EQ(message(with([](json& reply) { reply["results"].erase(1); })), "1 words for 2");
    EXPECT_NE(message(with([](json& reply) {
                  reply["rejected_below"] = 0.999;
              })).find("rows that were not scored may be"),
              std::string::npos);
}

TEST_F(VerifyAudit, TellsAWrongAnswerFromAnUnsoundModel) {
    const std::string answer = ask({"NEAR certify=1 k=2 w5"}).at(0) + "\n";
    const std::string model = *dir_ / "damaged";
    std::filesystem::copy(*dir_ / "model", model);
    const auto verdict = [&](const std::string& replies) {
        const Finished finished = run({program("gloved-verify"), "--audit", "-", model}, replies);
        const std::size_t begin = finished.out.rfind(model + ": ");
        return fmt::format("{} {}", finished.exit_code,
                           finished.out.substr(begin + model.size() + 2));
    };
    const std::string sound = verdict(answer);
    ASSERT_EQ(sound.find("0 sound, "), 0U) << sound;
    const int checks = std::stoi(sound.substr(sound.find(',') + 1)) - 1;
    EXPECT_EQ(verdict(answer + "OK 0\n"),
              fmt::format("1 sound, {} checks; the answers are NOT confirmed\n", checks));
    std::filesystem::remove(model + "/report.json");
    std::ofstream(model + "/report.json") << "no report";
    EXPECT_EQ(verdict(answer).find("1 NOT sound, "), 0U) << verdict(answer);
}

TEST_F(VerifyAudit, FindsWordsOfListsByTheRuleThatTheDaemonHad) {
    const std::string list = "caps=" + (*dir_ / "caps");
    std::ofstream(*dir_ / "caps") << "\xEF\xBB\xBFW4\r\nMIXED 2\r\nw5\r\nno";
    const std::string request = "NEAR certify=1 k=9 exclude=none within=caps w5";
    const std::vector<std::string> of_case_ignored =
        ask({request}, {"--list", list, "--case", "ignore"});
    const std::vector<std::string> of_case_exact = ask({request}, {"--list", list});
    EXPECT_EQ(json::parse(of_case_ignored.at(0))["results"].size(), 3U);
    EXPECT_LT(json::parse(of_case_exact.at(0))["results"].size(), 3U);
    for (const auto& replies : {of_case_ignored, of_case_exact}) {
        const Audit found = audit(replies, {"--list", list});
        EXPECT_EQ(found.exit_code, 0) << found.detail("answer on line 1");
        EXPECT_NE(found.detail("list caps").find("with --case ignore 3 words, 1 not in the model"),
                  std::string::npos)
            << found.detail("list caps");
    }
    // Each reply has the checksum of its own rule.
    json mixed = json::parse(of_case_exact.at(0));
    mixed["lists"] = json::parse(of_case_ignored.at(0))["lists"];
    EXPECT_EQ(audit({mixed.dump()}, {"--list", list}).exit_code, 1);
}

TEST_F(VerifyAudit, SaysWhichListOrModelIsAnother) {
    const auto replies = ask({"NEAR certify=1 k=2 within=half w5", "PING"});
    const std::string& answer = replies.at(0);
    json without_lists = json::parse(answer);
    without_lists["lists"] = json::array();
    EXPECT_EQ(audit({answer}, {"--threads", "1"}).detail("answer on line 1"),
              "the list half is missing: give it with --list half=FILE");
    EXPECT_NE(audit({answer}, {"--list", "half=" + (*dir_ / "third")})
                  .detail("answer on line 1")
                  .find("another list half: of checksum "),
              std::string::npos);
    EXPECT_EQ(audit({without_lists.dump()}).detail("answer on line 1"),
              "no checksum of the list \"half\"");
    EXPECT_NE(audit({answer}, {"--list", "half=" + (*dir_ / "none")}).detail("lists").find("none"),
              std::string::npos);
    const Audit other = audit({answer, answer}, {}, "other");
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_TRUE(other.detail("answer on line 2").starts_with("the answer of another model: of "))
        << other.detail("answer on line 2");
    EXPECT_EQ(audit({replies.at(1)}).exit_code, 1);
    EXPECT_NE(audit({}).detail("answers").find("holds no answers"), std::string::npos);
}

/// Small lies about an answer of three words, one of which was left out and two replaced.
const std::vector<std::function<void(json&)>> kLies = {
    // Notes.
    [](json& reply) {
        reply["unlisted"] = 0;
        reply.erase("skipped");
    },
    [](json& reply) { reply["unlisted"] = 99; },
    [](json& reply) { reply["unlisted"] = "lots"; },
    [](json& reply) { reply["skipped"].push_back("no word"); },
    [](json& reply) {
        reply["replaced"].push_back({{"word", reply["replaced"][0]["word"]}, {"by", "w9"}});
    },
    // Lists that it does not name.
    [](json& reply) { reply["lists"] = json::object(); },
    [](json& reply) {
        reply["lists"].push_back({{"list", "half"}, {"checksum", "0"}});
    },
    // Figures.
    [](json& reply) { reply["pass"] = "telepathy"; },
    [](json& reply) { reply["pass"] = "neighbors"; },
    [](json& reply) { reply["scanned"] = 1000000; },
    [](json& reply) { reply["scanned"] = -1; },
    [](json& reply) { reply["survivors"] = 1.5; },
    [](json& reply) { reply["rescored"] = 0; },
    // Members that nobody asked for.
    [](json& reply) { reply["results"][0]["rank"] = 1; },
    [](json& reply) { reply["results"][1]["remark"] = ""; },
    // Other requests.
    [](json& reply) { reply["request"] = "king"; },
    [](json& reply) { reply["request"] = reply["request"].get<std::string>() + " "; },
    [](json& reply) {
        auto request = reply["request"].get<std::string>();
        reply["request"] = request.replace(request.find("certify=1"), 9, "certify=0");
    },
    [](json& reply) { reply["request"] = std::string(70000, 'a'); },
    // What another reader may take for a refusal, or for an answer.
    [](json& reply) { reply["ok"] = false; },
    [](json& reply) { reply["verb"] = "near"; },
    [](json& reply) { reply["verb"] = "SIM"; },
};

TEST_F(VerifyAudit, TakesNothingForGranted) {
    const auto replies =
        ask({"NEAR certify=1 k=3 case=ignore unknown=skip W1 + \"no word\" + W2", "PING",
             "NEAR certify=1 k=2 min=0.9 w5", "NEAR certify=1 k=2 within=half w5"});
    const auto refuses = [&](const std::string& line) {
        return audit({replies.at(0), line}).checks.contains("answer on line 2");
    };
    EXPECT_FALSE(refuses(replies.at(0)));
    for (std::size_t i = 0; i < kLies.size(); ++i) {
        json reply = json::parse(replies.at(0));
        kLies[i](reply);
        EXPECT_TRUE(refuses(reply.dump())) << "lie " << i;
    }
    EXPECT_TRUE(refuses(replies.at(0) + std::string(1, '\0') + replies.at(1)));
    EXPECT_TRUE(refuses("\xEF\xBB\xBF" + replies.at(0)));
    // No hits need the same care.
    for (const char* request : {"NEAR certify=1 1e300 * w5", "NEAR certify=1 w5 + 1e39 * w6"}) {
        json reply = json::parse(replies.at(2));
        reply["request"] = as_written(request);
        EXPECT_TRUE(refuses(reply.dump())) << request;
    }
    json reply = json::parse(replies.at(2));
    ASSERT_TRUE(reply["results"].empty());
    EXPECT_FALSE(refuses(reply.dump()));
    reply["rejected_below"] = 0.91;
    EXPECT_TRUE(refuses(reply.dump()));
    // A list that is told twice.
    reply = json::parse(replies.at(3));
    EXPECT_FALSE(refuses(reply.dump()));
    reply["lists"].insert(reply["lists"].begin(), {{"list", "half"}, {"checksum", "0"}});
    EXPECT_TRUE(refuses(reply.dump()));
    // Deep members end no program.
    for (const char* name : {"skipped", "replaced", "lists", "remark"}) {
        std::string deep = replies.at(0);
        deep.insert(1, fmt::format("\"{}\":{}{},", name, std::string(100000, '['),
                                   std::string(100000, ']')));
        EXPECT_TRUE(refuses(deep)) << name;
    }
}

TEST_F(VerifyAudit, NeedsARequestThatCanBeSentAgain) {
    const auto request_of = [&](std::size_t words) {
        std::string request = "NEAR certify=1 k=1 ";
        for (std::size_t i = 0; i < words; ++i) request += " w1";
        const json reply = json::parse(ask({request}).at(0));
        return reply.contains("request") ? reply["request"].get<std::string>() : "";
    };
    EXPECT_GT(request_of(9000).size(), 9000 * 6U);
    EXPECT_EQ(request_of(15000), "");
}

TEST_F(VerifyAudit, ChecksItsOptions) {
    const auto fails = [&](std::vector<std::string> options, const std::string& message) {
        options.insert(options.begin(), program("gloved-verify"));
        const Finished finished = run(options);
        EXPECT_EQ(finished.exit_code, 2);
        EXPECT_NE(finished.err.find(message), std::string::npos) << finished.err;
    };
    fails({"--list", "a=b", "m"}, "--list needs --audit");
    fails({"--audit", "f", "--list", "a", "m"}, "--list takes NAME=FILE, not \"a\"");
    fails({"--audit", "f", "--list", "a=b", "--list", "a=c", "m"}, "two lists are called \"a\"");
    fails({"--audit", "", "m"}, "--audit takes a file of replies");
    fails({"--audit", "f", "--quick", "m"}, "--audit cannot be used with --quick");
}

}  // namespace
}  // namespace gloved::tests
