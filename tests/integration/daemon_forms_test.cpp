// What replies look like: JSON beside text, near spellings, and what the daemon tells of itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "common/format/model.hpp"
#include "common/wire/json_string.hpp"
#include "common/wire/reply.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using nlohmann::json;

/// Words that are hard to say: every one a key of the model.
std::vector<std::string> odd_words() {
    return {"two words", "\"quoted\\", "NEAR",     "k=5",      "+",       "-",
            "(",         "3",          "\xC2\xA0", "\xFF\xFE", "caf\xE9", "caf\xC3\xA9",
            " ",         "\x01\x1B[m", "\\xE9",    "\"",       "'",       "\xF4\x8F\xBE\x80",
            "king",      "King",       "KING",     "kings",    "kong",    std::string(999, 'x')};
}

std::vector<Entry> entries() {
    auto made = random_entries(120, 6, 11);
    const auto words = odd_words();
    for (std::size_t i = 0; i < words.size(); ++i) made[i].first = words[i];
    return made;
}

class Forms : public testing::Test {
  protected:
    static void SetUpTestSuite() { make_model(*dir_ / "m", entries()); }

    /// The reply as an object; the same request on a connection that has asked for JSON.
    json ask_json(const std::string& request) {
        const std::string line = json_.ask(request).status;
        EXPECT_TRUE(json::accept(line)) << line;
        return json::parse(line, nullptr, false);
    }
    static std::string bytes(const json& word) {
        return wire::bytes_of_json_string(word.get<std::string>());
    }

    inline static const std::unique_ptr<TempDir> dir_ = std::make_unique<TempDir>();
    Daemon daemon_{*dir_ / "m"};
    Connection text_{daemon_.socket_path()};
    Connection json_{daemon_.socket_path()};

    void SetUp() override {
        EXPECT_EQ(json_.ask("FORMAT json").status, R"({"ok":true,"verb":"FORMAT","results":[]})");
    }
};

TEST_F(Forms, JsonHasFullPrecision) {
    const auto vector = ask_json("VEC king")["results"][0]["vector"];
    const auto model = format::Model::open(*dir_ / "m");
    const std::size_t row = *model->find("king");
    ASSERT_EQ(vector.size(), model->dim());
    double dot = 0;
    double norms[2] = {0, 0};
    const auto other = model->vector(*model->find("kong"));
    for (std::size_t i = 0; i < model->dim(); ++i) {
        EXPECT_EQ(vector[i].get<float>(), model->vector(row)[i]);
        dot += double{model->vector(row)[i]} * double{other[i]};
        norms[0] += double{model->vector(row)[i]} * double{model->vector(row)[i]};
        norms[1] += double{other[i]} * double{other[i]};
    }
    const double wanted = dot / (std::sqrt(norms[0]) * std::sqrt(norms[1]));
    EXPECT_TRUE(std::abs(ask_json("SIM king kong")["results"][0]["score"].get<double>() - wanted) <=
                1e-15);
}

TEST_F(Forms, EveryWordCanBeAskedForAndComesBackWhole) {
    for (const std::string& word : odd_words()) {
        const std::string quoted = wire::quote_word(word);
        const auto near = text_.ask("NEAR k=1 exclude=none " + quoted);
        ASSERT_EQ(near.lines.size(), 1U) << near.status;
        EXPECT_EQ(near.lines[0], word + "\t1.000000");
        EXPECT_EQ(text_.ask("HAS " + quoted).lines.at(0), (word[0] == '"' ? quoted : word) + "\t1");
        EXPECT_EQ(text_.ask("PREFIX k=1 " + quoted).lines.at(0).rfind(word, 0), 0U);
        EXPECT_EQ(bytes(ask_json("NEAR k=1 exclude=none " + quoted)["results"][0]["word"]), word);
        EXPECT_EQ(bytes(ask_json("HAS " + quoted)["results"][0]["word"]), word);
        EXPECT_EQ(bytes(ask_json("PREFIX k=1 " + quoted)["results"][0]["word"]).rfind(word, 0), 0U);
    }
}

TEST_F(Forms, ErrorsAreObjectsToo) {
    const json bad = ask_json("NEAR k=0 king");
    EXPECT_EQ(bad["ok"], false);
    EXPECT_EQ(bad["code"], "bad_request");
    EXPECT_EQ(bad["message"], "k= takes a whole number from 1 to 4294967295, not \"0\"");
    EXPECT_FALSE(bad.contains("suggestions"));
    const json unknown = ask_json("SIM king \"caf\\xe8\"");
    EXPECT_EQ(unknown["code"], "unknown_word");
    EXPECT_EQ(bytes(unknown["word"]), "caf\xE8");
    ASSERT_TRUE(unknown["suggestions"].is_array());
    std::vector<std::string> suggestions;
    for (const auto& word : unknown["suggestions"]) suggestions.push_back(bytes(word));
    // By distance, then by frequency: both are one letter away.
    EXPECT_EQ(suggestions, (std::vector<std::string>{"caf\xE9", "caf\xC3\xA9"}));
}

TEST_F(Forms, AFormHoldsFromItsRequestOn) {
    ASSERT_TRUE(
        text_.send("SIM king kong\nFORMAT json\nSIM king kong\nFORMAT text\nSIM king kong\n"));
    EXPECT_EQ(text_.read_reply().lines.size(), 1U);
    EXPECT_EQ(text_.read_line().value_or("").rfind("{\"ok\":true,\"verb\":\"FORMAT\"", 0), 0U);
    EXPECT_EQ(text_.read_line().value_or("").rfind("{\"ok\":true,\"verb\":\"SIM\"", 0), 0U);
    EXPECT_EQ(text_.read_reply().status, "OK 0");
    EXPECT_EQ(text_.read_reply().lines.size(), 1U);
    EXPECT_EQ(text_.ask("FORMAT xml").status,
              "ERR bad_request FORMAT takes 'text' or 'json', not \"xml\"");
    EXPECT_EQ(text_.ask("FORMAT").status, "ERR bad_request FORMAT takes 1 word, not 0");
}

TEST_F(Forms, UnknownWordsComeWithNearOnes) {
    EXPECT_EQ(text_.ask("NEAR kING").status,
              "ERR unknown_word \"kING\" is not in the model; near to it: \"king\", \"King\", "
              "\"KING\", \"kings\", "
              "\"kong\"");
    EXPECT_EQ(
        text_.ask("NEAR king + \"\\\"quotde\\\\\"").status,
        "ERR unknown_word \"\\\"quotde\\\\\" is not in the model; near to it: \"\\\"quoted\\\\\"");
    EXPECT_EQ(text_.ask("VEC unlikeanything").status,
              "ERR unknown_word \"unlikeanything\" is not in the model");
}

// Each costs little here, but in the end none may be lost, whatever is left out.
TEST_F(Forms, AFloodOfUnknownWordsIsAnsweredWhole) {
    std::string flood;
    for (int i = 0; i < 3000; ++i) flood += fmt::format("HAS king\nVEC kingq{}\n", i);
    std::thread writer([&] { EXPECT_TRUE(text_.send(flood)); });
    for (int i = 0; i < 3000; ++i) {
        ASSERT_EQ(text_.read_reply().lines, std::vector<std::string>{"king\t1"});
        const std::string wanted =
            fmt::format("ERR unknown_word \"kingq{}\" is not in the model", i);
        ASSERT_EQ(text_.read_reply().status.substr(0, wanted.size()), wanted);
    }
    writer.join();
}

std::map<std::string, std::string> stats(Connection& connection) {
    std::map<std::string, std::string> values;
    for (const std::string& line : connection.ask("STATS").lines) {
        const std::size_t tab = line.find('\t');
        EXPECT_TRUE(values.emplace(line.substr(0, tab), line.substr(tab + 1)).second)
            << line << " twice";
    }
    return values;
}

TEST_F(Forms, StatisticsCountByVerbAndOutcome) {
    for (int i = 0; i < 20; ++i) text_.ask("NEAR king");
    for (int i = 0; i < 3; ++i) text_.ask("SIM king nothing-at-all");
    text_.ask("NEAR k=0 king");
    text_.ask("USE third");
    auto values = stats(text_);
    EXPECT_EQ(values["requests_near_answered"], "20");
    EXPECT_EQ(values["requests_sim_unknown_word"], "3");
    EXPECT_EQ(values["requests_none_bad_request"], "1");
    EXPECT_EQ(values["requests_use_unknown_model"], "1");
    EXPECT_EQ(values["requests_format_answered"], "1");
    EXPECT_EQ(values["answered"], "22");  // with the PING that found the daemon ready, and FORMAT
    EXPECT_EQ(values["errors"], "5");
    EXPECT_EQ(values["batches"], "20");
    EXPECT_EQ(values["batch_sizes"], "1:20");
    EXPECT_EQ(values["answers_plane"], "20");
    EXPECT_EQ(values["answers_float64"], "0");
    EXPECT_TRUE(values.contains("plane_unselective"));
    for (const char* stage : {"wait", "compute", "deliver", "total"}) {
        std::uint64_t last = 0;
        for (const char* percentile : {"p50", "p90", "p99", "p999"}) {
            const std::string text = values[fmt::format("{}_{}_us", stage, percentile)];
            std::uint64_t us = 0;
            ASSERT_EQ(std::from_chars(text.data(), text.data() + text.size(), us).ec, std::errc())
                << stage;
            EXPECT_GE(us, last) << stage << percentile;
            last = us;
        }
    }
    EXPECT_NE(values["total_p50_us"], "0");
    // In JSON the same keys, numbers as numbers.
    const json object = ask_json("STATS")["results"][0];
    for (const auto& [key, value] : values) EXPECT_TRUE(object.contains(key)) << key;
    EXPECT_EQ(object["requests_near_answered"], 20);
    EXPECT_EQ(object["model"], "m");
    EXPECT_TRUE(object["load_keys_ms"].is_number_float());
}

// They have no times, and would count as hours.
TEST_F(Forms, RefusedRequestsDoNotSpoilTheTimes) {
    const Daemon daemon(*dir_ / "m", {"--queue-length", "1"});
    Connection connection(daemon.socket_path());
    std::string all;
    for (int i = 0; i < 300; ++i) all += "NEAR king\n";
    ASSERT_TRUE(connection.send(all));
    int busy = 0;
    for (int i = 0; i < 300; ++i)
        busy += connection.read_reply().status.rfind("ERR busy", 0) == 0 ? 1 : 0;
    ASSERT_GT(busy, 0);
    const auto values = stats(connection);
    EXPECT_EQ(values.at("requests_near_busy"), std::to_string(busy));
    EXPECT_LT(std::stoull(values.at("total_p999_us")), 20'000'000U);
    EXPECT_GT(std::stoull(values.at("total_p50_us")), 0U);
}

TEST_F(Forms, PrometheusReadsTheStatistics) {
    for (int i = 0; i < 7; ++i) text_.ask("NEAR king");
    text_.ask("VEC nothing-at-all");
    std::map<std::string, double> values;
    for (const std::string& line : text_.ask("STATS prometheus").lines) {
        const std::size_t blank = line.rfind(' ');
        if (line.front() != '#')
            values.emplace(line.substr(0, blank), std::stod(line.substr(blank)));
    }
    EXPECT_EQ(values["gloved_requests_total{model=\"m\",verb=\"near\",outcome=\"answered\"}"], 7);
    EXPECT_EQ(values["gloved_requests_total{model=\"m\",verb=\"vec\",outcome=\"unknown_word\"}"],
              1);
    EXPECT_EQ(values["gloved_request_seconds_count{stage=\"total\"}"], 8);
    EXPECT_EQ(values["gloved_request_seconds_bucket{stage=\"total\",le=\"+Inf\"}"], 8);
    EXPECT_GT(values["gloved_request_seconds_sum{stage=\"total\"}"], 0);
    EXPECT_EQ(values["gloved_batch_size_count{model=\"m\",engine=\"cpu\"}"], 7);
    EXPECT_EQ(values["gloved_batch_size_sum{model=\"m\",engine=\"cpu\"}"], 7);
    EXPECT_EQ(values["gloved_answers_total{model=\"m\",engine=\"cpu\",pass=\"plane\"}"], 7);
    EXPECT_EQ(values["gloved_answers_total{model=\"m\",engine=\"cpu\",pass=\"float64\"}"], 0);
    double last = 0;
    for (int power = 4; power <= 25; ++power) {
        const std::string key = fmt::format(
            "gloved_request_seconds_bucket{{stage=\"total\",le=\"{}\"}}", double(1 << power) / 1e6);
        ASSERT_TRUE(values.contains(key)) << key;
        EXPECT_GE(values[key], last);
        last = values[key];
    }
    EXPECT_EQ(last, 8);
    EXPECT_EQ(text_.ask("STATS openmetrics").status,
              "ERR bad_request STATS takes nothing or 'prometheus', not \"openmetrics\"");
}

}  // namespace
}  // namespace gloved::tests
