// Every verb that looks at vectors, through the socket, against plain arithmetic on the same model.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base64.hpp"
#include "common/format/model.hpp"
#include "common/wire/reply.hpp"
#include "kernels/engine.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

constexpr std::size_t kRows = 400;
constexpr std::size_t kDim = 33;

/// Random rows, with a zero vector («zero»), two equal vectors («w1», «twin») and words that need
/// quoting.
std::vector<Entry> entries() {
    auto made = random_entries(kRows, kDim, 5);
    made[7].first = "zero";
    std::fill(made[7].second.begin(), made[7].second.end(), 0.0F);
    made[8] = {"twin", made[1].second};
    made[9].first = "NEAR";
    made[10].first = "two words";
    made[11].first = "\"quoted\\";
    made[12].first = "\xC2\xA0.\xC2\xA0.";
    made[13].first = "\xFF\xFE";
    made[14].first = "k=5";
    made[15].first = std::string(999, 'x');
    return made;
}

class Verbs : public testing::Test {
  protected:
    std::string word(std::size_t row) const { return std::string(model_.key(row)); }
    std::string quoted(std::size_t row) const { return wire::quote_word(model_.key(row)); }
    std::size_t row_of(const std::string& word) const { return *model_.find(word); }
    std::size_t random_row() {
        while (true) {
            const std::size_t row = random_() % kRows;
            if (model_.norms()[row] != 0) return row;
        }
    }
    double dot(std::size_t a, std::size_t b) const {
        double sum = 0;
        for (std::size_t i = 0; i < kDim; ++i)
            sum += double{model_.vector(a)[i]} * double{model_.vector(b)[i]};
        return sum;
    }
    double cosine(std::size_t a, std::size_t b) const {
        const double norms = std::sqrt(dot(a, a)) * std::sqrt(dot(b, b));
        return norms == 0 ? 0 : std::clamp(dot(a, b) / norms, -1.0, 1.0);
    }
    double distance(std::size_t a, std::size_t b) const {
        double sum = 0;
        for (std::size_t i = 0; i < kDim; ++i) {
            const double difference = double{model_.vector(a)[i]} - double{model_.vector(b)[i]};
            sum += difference * difference;
        }
        return sum;
    }
    static std::string shown(double score) {
        return fmt::format("{:.6f}", score == 0 ? 0.0 : score);
    }
    std::vector<std::string> lines_of(const std::vector<kernels::Hit>& hits) const {
        std::vector<std::string> lines;
        for (const kernels::Hit& hit : hits)
            lines.push_back(word(hit.row) + "\t" + shown(hit.score));
        return lines;
    }

    TempDir dir_;
    format::Model model_ = make_model(dir_ / "m", entries());
    Daemon daemon_{dir_ / "m"};
    Connection connection_{daemon_.socket_path()};
    std::mt19937 random_{3};
};

TEST_F(Verbs, AnalogyAddIsNearOfUnitRows) {
    for (int round = 0; round < 50; ++round) {
        const std::string a = quoted(random_row());
        const std::string b = quoted(random_row());
        const std::string c = quoted(random_row());
        const auto analogy =
            connection_.ask(fmt::format("ANALOGY k=20 top=300 fields=row {} {} {}", a, b, c));
        const auto near = connection_.ask(
            fmt::format("NEAR k=20 top=300 fields=row norm=unit {} - {} + {}", b, a, c));
        ASSERT_EQ(analogy.lines.size(), 20U) << analogy.status;
        EXPECT_EQ(analogy.lines, near.lines);
        EXPECT_EQ(
            analogy.lines,
            connection_
                .ask(fmt::format("ANALOGY method=add k=20 top=300 fields=row {} {} {}", a, b, c))
                .lines);
    }
}

TEST_F(Verbs, AnalogyMulIsTheProductOfPlainCosines) {
    for (int round = 0; round < 50; ++round) {
        const std::size_t a = random_row();
        const std::size_t b = random_row();
        const std::size_t c = random_row();
        const auto vector = [&](std::size_t row) {
            return std::vector<float>(model_.vector(row).begin(), model_.vector(row).end());
        };
        const auto scores = oracle_cosmul(model_, {vector(b), vector(c)}, {vector(a)});
        const auto expected = oracle_top(scores, 10, [&](std::uint32_t row, double) {
            return row != a && row != b && row != c;
        });
        const auto reply = connection_.ask(
            fmt::format("ANALOGY method=mul {} {} {}", quoted(a), quoted(b), quoted(c)));
        EXPECT_EQ(reply.lines, lines_of(expected)) << reply.status;
    }
}

TEST_F(Verbs, RankIsThePlaceAmongTheNeighbours) {
    for (int round = 0; round < 50; ++round) {
        const std::size_t a = random_row();
        const std::size_t b = random_() % kRows;
        if (a == b) continue;
        const std::string filter = round % 3 == 0 ? "top=250" : round % 3 == 1 ? "prefix=w" : "";
        const auto near = connection_.ask(fmt::format("NEAR k={} {} {}", kRows, filter, quoted(a)));
        const auto rank =
            connection_.ask(fmt::format("RANK {} {} {}", filter, quoted(a), quoted(b)));
        ASSERT_EQ(rank.lines.size(), 1U) << rank.status;
        const double score = cosine(a, b);
        std::size_t before = 0;
        for (const std::string& line : near.lines) {
            const std::size_t tab = line.rfind('\t');
            const std::size_t row = row_of(line.substr(0, tab));
            if (row == b) break;
            // b itself may not be among them: then what is nearer counts.
            if (cosine(a, row) < score) break;
            ++before;
        }
        EXPECT_EQ(rank.lines.front(), std::to_string(before + 1)) << filter;
    }
    EXPECT_EQ(connection_.ask("RANK w1 twin").lines, (std::vector<std::string>{"1"}));
    EXPECT_EQ(connection_.ask("RANK w1 w1").status.rfind("OK 1", 0), 0U);
    for (const std::string parallel : {"w1", "twin", "( twin )"})
        EXPECT_EQ(connection_.ask("RANK " + parallel + " " + parallel).lines,
                  (std::vector<std::string>{"1"}))
            << parallel;
}

TEST_F(Verbs, AVectorComesBackAsItsWord) {
    for (int round = 0; round < 20; ++round) {
        const std::size_t row = random_row();
        const auto vector = connection_.ask("VEC " + quoted(row));
        ASSERT_EQ(vector.lines.size(), 1U) << vector.status;
        EXPECT_EQ(std::count(vector.lines[0].begin(), vector.lines[0].end(), '\t'),
                  static_cast<std::ptrdiff_t>(kDim - 1));
        const auto near = connection_.ask("NEARVEC k=7 fields=norm " + vector.lines[0]);
        EXPECT_EQ(near.lines,
                  connection_.ask("NEAR k=7 fields=norm exclude=none " + quoted(row)).lines);
    }
}

TEST_F(Verbs, VectorsInBase64AreThoseOfTheModel) {
    std::string words;
    std::vector<std::string> expected;
    for (std::size_t row = 0; row < kRows; ++row) {
        words += " " + quoted(row);
        append_base64(expected.emplace_back(), std::as_bytes(model_.vector(row)));
    }
    const auto reply = connection_.ask("VEC encoding=base64" + words);
    EXPECT_EQ(reply.status.rfind(fmt::format("OK {} us=", kRows), 0), 0U) << reply.status;
    EXPECT_EQ(reply.lines, expected);

    const auto several = connection_.ask("VEC encoding=decimal w1 zero w1");
    ASSERT_EQ(several.lines.size(), 3U) << several.status;
    EXPECT_EQ(several.lines[0], connection_.ask("VEC w1").lines.at(0));
    EXPECT_EQ(several.lines[1], connection_.ask("VEC zero").lines.at(0));
    EXPECT_EQ(several.lines[2], several.lines[0]);
    EXPECT_EQ(connection_.ask("VEC encoding=base64 w1 nowhere nothing")
                  .status.rfind("ERR unknown_word \"nowhere\"", 0),
              0U);
}

TEST_F(Verbs, AVectorInBase64IsAnsweredAsItsDecimals) {
    for (int round = 0; round < 50; ++round) {
        const std::string asked = quoted(random_row());
        const std::string decimals = connection_.ask("VEC " + asked).lines.at(0);
        const std::string base64 = connection_.ask("VEC encoding=base64 " + asked).lines.at(0);
        const std::string options = "k=7 fields=row,norm min=-1";
        const auto near = connection_.ask("NEARVEC " + options + " base64=" + base64);
        EXPECT_EQ(near.lines.size(), 7U) << near.status;
        EXPECT_EQ(near.normalised(),
                  connection_.ask("NEARVEC " + options + " " + decimals).normalised());
    }
    const auto refusal = [&](std::size_t count) {
        const std::vector<float> values(count, 1.0F);
        std::string line = "NEARVEC base64=";
        append_base64(line, std::as_bytes(std::span(values)));
        return connection_.ask(line).status;
    };
    EXPECT_EQ(refusal(kDim).rfind("OK 10", 0), 0U);
    EXPECT_EQ(refusal(kDim - 1), "ERR bad_request 32 numbers; this model's vectors have 33");
    EXPECT_EQ(refusal(kDim + 1), "ERR bad_request 34 numbers; this model's vectors have 33");
}

TEST_F(Verbs, SimDistAndMatrixAgreeWithPlainArithmetic) {
    std::vector<std::size_t> rows = {row_of("zero"), row_of("w1"), row_of("twin")};
    for (int i = 0; i < 30; ++i) rows.push_back(random_() % kRows);
    std::string words;
    for (const std::size_t row : rows) words += " " + quoted(row);
    const auto cosines = connection_.ask("MATRIX" + words);
    const auto distances = connection_.ask("MATRIX metric=sqeuclidean" + words);
    ASSERT_EQ(cosines.lines.size(), rows.size()) << cosines.status;
    ASSERT_EQ(distances.lines.size(), rows.size()) << distances.status;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string cosine_line;
        std::string distance_line;
        for (const std::size_t other : rows) {
            cosine_line += (cosine_line.empty() ? "" : "\t") + shown(cosine(rows[i], other));
            distance_line += (distance_line.empty() ? "" : "\t") + shown(distance(rows[i], other));
        }
        EXPECT_EQ(cosines.lines[i], cosine_line);
        EXPECT_EQ(distances.lines[i], distance_line);
        const std::string pair = quoted(rows[1]) + " " + quoted(rows[i]);
        EXPECT_EQ(connection_.ask("SIM " + pair).lines,
                  (std::vector<std::string>{shown(cosine(rows[1], rows[i]))}));
        EXPECT_EQ(connection_.ask("DIST " + pair).lines,
                  (std::vector<std::string>{shown(distance(rows[1], rows[i]))}));
    }
}

TEST_F(Verbs, OddIsTheOneFarthestFromTheSumOfUnits) {
    for (int round = 0; round < 50; ++round) {
        std::vector<std::size_t> rows;
        std::string words;
        for (int i = 0; i < 3 + round % 5; ++i) {
            rows.push_back(random_() % kRows);
            words += " " + quoted(rows.back());
        }
        std::vector<double> sum(kDim, 0.0);
        for (const std::size_t row : rows) {
            const double norm = std::sqrt(dot(row, row));
            for (std::size_t i = 0; i < kDim && norm != 0; ++i)
                sum[i] += double{model_.vector(row)[i]} / norm;
        }
        std::size_t odd = 0;
        double lowest = 2;
        for (const std::size_t row : rows) {
            double product = 0;
            double square = 0;
            for (std::size_t i = 0; i < kDim; ++i) {
                product += sum[i] * double{model_.vector(row)[i]};
                square += sum[i] * sum[i];
            }
            const double norm = std::sqrt(dot(row, row));
            const double score = norm == 0 ? 0 : product / (std::sqrt(square) * norm);
            if (score < lowest) {
                lowest = score;
                odd = row;
            }
        }
        const auto reply = connection_.ask("ODD" + words);
        ASSERT_EQ(reply.lines.size(), 1U) << reply.status;
        const std::size_t tab = reply.lines[0].rfind('\t');
        EXPECT_EQ(reply.lines[0].substr(0, tab), word(odd));
        // The sum is rounded to float32 before it is compared: 1e-7 of a score between -1 and 1.
        EXPECT_TRUE(std::abs(std::stod(reply.lines[0].substr(tab + 1)) - lowest) <= 2e-6);
    }
}

/// A group, as text for a request; its sum and its mean in float64.
struct Group {
    std::string text = "(";
    std::vector<double> sum = std::vector<double>(kDim, 0.0);
    std::vector<double> mean;
};

double dot_of(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

double cosine_of(const std::vector<double>& a, const std::vector<double>& b) {
    return dot_of(a, b) / std::sqrt(dot_of(a, a) * dot_of(b, b));
}

TEST_F(Verbs, GroupsAreTheirSumsOrMeans) {
    const auto random_group = [&](bool unit) {
        Group group;
        double weight = 0;
        for (std::size_t i = 0; i < 1 + random_() % 4; ++i) {
            const std::size_t row = random_row();
            const double coefficient =
                static_cast<double>(1 + random_() % 8) / (random_() % 3 == 0 ? -4.0 : 4.0);
            group.text += fmt::format(" {} {} * {}", coefficient < 0 ? '-' : '+',
                                      std::abs(coefficient), quoted(row));
            weight += std::abs(coefficient);
            const double norm = unit ? std::sqrt(dot(row, row)) : 1;
            for (std::size_t j = 0; j < kDim; ++j)
                group.sum[j] += coefficient * double{model_.vector(row)[j]} / norm;
        }
        group.text += " )";
        for (const double value : group.sum) group.mean.push_back(value / weight);
        return group;
    };
    for (int round = 0; round < 100; ++round) {
        const bool unit = round % 2 == 1;
        const std::string norm = unit ? "norm=unit " : "";
        const Group a = random_group(unit);
        const Group b = random_group(unit);
        const auto number = [&](const std::string& verb) {
            const auto reply = connection_.ask(verb + " " + norm + a.text + " " + b.text);
            return reply.lines.size() == 1 ? std::stod(reply.lines[0]) : std::nan("");
        };
        EXPECT_TRUE(std::abs(number("SIM") - cosine_of(a.sum, b.sum)) <= 2e-6) << a.text << b.text;
        std::vector<double> difference;
        for (std::size_t i = 0; i < kDim; ++i) difference.push_back(a.mean[i] - b.mean[i]);
        const double distance = dot_of(difference, difference);
        EXPECT_TRUE(std::abs(number("DIST") - distance) <= 2e-6 * (1 + distance)) << a.text;

        const Group c = random_group(unit);
        std::vector<double> whole(kDim, 0.0);
        for (const Group* group : {&a, &b, &c}) {
            const double length = std::sqrt(dot_of(group->sum, group->sum));
            for (std::size_t i = 0; i < kDim; ++i) whole[i] += group->sum[i] / length;
        }
        const Group* odd = &a;
        for (const Group* group : {&b, &c}) {
            if (cosine_of(group->sum, whole) < cosine_of(odd->sum, whole)) odd = group;
        }
        const auto reply =
            connection_.ask(fmt::format("ODD {} {} {} {}", norm, a.text, b.text, c.text));
        EXPECT_EQ(reply.lines, (std::vector<std::string>{fmt::format(
                                   "{}\t{}", odd->text,
                                   reply.lines.at(0).substr(reply.lines.at(0).rfind('\t') + 1))}));
        EXPECT_TRUE(std::abs(std::stod(reply.lines[0].substr(odd->text.size() + 1)) -
                             cosine_of(odd->sum, whole)) <= 2e-6);
    }
}

TEST_F(Verbs, AGroupsScoresAndPlacesAreThoseOfNear) {
    for (int round = 0; round < 50; ++round) {
        const std::string sum =
            fmt::format("{} - 0.5 * {}", quoted(random_row()), quoted(random_row()));
        const std::string norm = round % 2 == 0 ? "" : "norm=unit ";
        const auto near = connection_.ask(fmt::format("NEAR k={} {}{}", kRows, norm, sum));
        ASSERT_FALSE(near.lines.empty()) << near.status;
        const std::size_t place = random_() % near.lines.size();
        const std::size_t tab = near.lines[place].rfind('\t');
        const std::string word = wire::quote_word(near.lines[place].substr(0, tab));
        const std::string arguments = "( " + sum + " ) " + word;
        EXPECT_EQ(connection_.ask("RANK " + norm + arguments).lines,
                  (std::vector<std::string>{std::to_string(place + 1)}));
        if (norm.empty()) {
            EXPECT_EQ(connection_.ask("SIM " + arguments).lines,
                      (std::vector<std::string>{near.lines[place].substr(tab + 1)}));
        }
        // A group among the neighbours has the place after all words that are at least as near.
        const std::string other =
            fmt::format("( {} + {} )", quoted(random_row()), quoted(random_row()));
        const double score = std::stod(connection_.ask("SIM ( " + sum + " ) " + other).lines.at(0));
        const auto place_of_other = connection_.ask("RANK ( " + sum + " ) " + other).lines.at(0);
        const auto all = connection_.ask(fmt::format("NEAR k={} {}", kRows, sum));
        const auto above = std::ranges::count_if(all.lines, [&](const std::string& line) {
            return std::stod(line.substr(line.rfind('\t') + 1)) > score;
        });
        EXPECT_EQ(place_of_other, std::to_string(above + 1));
    }
}

TEST_F(Verbs, AGroupOfOneWordIsThatWord) {
    for (int round = 0; round < 50; ++round) {
        const std::string a = quoted(random_row());
        const std::string b = quoted(random_() % kRows);
        for (const std::string verb : {"SIM ", "DIST ", "RANK ", "SIM norm=unit "}) {
            const auto words = connection_.ask(verb + a + " " + b).lines;
            ASSERT_EQ(words.size(), 1U);
            EXPECT_EQ(connection_.ask(verb + "( " + a + " ) ( " + b + " )").lines, words);
            EXPECT_EQ(connection_.ask(verb + a + " ( 1 * " + b + " )").lines, words);
        }
    }
}

TEST_F(Verbs, GroupsOfHundredsOfWordsAreAnsweredToo) {
    std::string group = "(";
    std::string words;
    for (int i = 0; i < 300; ++i) group += " " + quoted(random_row());
    group += " )";
    for (int i = 0; i < 300; ++i) words += " " + quoted(random_row());
    const auto near = connection_.ask("NEAR k=1 " + group);
    ASSERT_EQ(near.lines.size(), 1U) << near.status;
    const std::size_t tab = near.lines[0].rfind('\t');
    const std::string arguments = group + " " + wire::quote_word(near.lines[0].substr(0, tab));
    EXPECT_EQ(connection_.ask("RANK " + arguments).lines, (std::vector<std::string>{"1"}));
    EXPECT_EQ(connection_.ask("SIM " + arguments).lines,
              (std::vector<std::string>{near.lines[0].substr(tab + 1)}));
    EXPECT_EQ(connection_.ask("ODD" + words + " ( w1 - w1 + w2 ) zero").lines.size(), 1U);
}

TEST_F(Verbs, GroupsThatCannotBeComparedAreNamed) {
    const auto status = [&](const std::string& request) { return connection_.ask(request).status; };
    for (const std::string verb : {"SIM", "RANK"}) {
        EXPECT_EQ(status(verb + " ( w1 - w1 ) w2").rfind("ERR zero_vector \"( w1 - w1 )\"", 0), 0U)
            << status(verb + " ( w1 - w1 ) w2");
    }
    EXPECT_EQ(connection_.ask("SIM w2 ( w1 - w1 )").lines, (std::vector<std::string>{"0.000000"}));
    EXPECT_EQ(status("ODD ( w1 - w1 ) ( w2 - w2 ) zero").rfind("ERR zero_vector", 0), 0U);
    EXPECT_EQ(status("SIM ( w1 + nowhere ) w2").rfind("ERR unknown_word \"nowhere\"", 0), 0U);
    EXPECT_EQ(status("DIST ( 1e308 * w1 + 1e308 * w1 ) w2").rfind("ERR bad_request", 0), 0U);
    EXPECT_EQ(connection_.ask("DIST ( 0 * w1 ) ( 0 * w2 )").lines,
              (std::vector<std::string>{"0.000000"}));
}

TEST_F(Verbs, ASearchAmongChosenWordsIsThatOfAllWithoutTheOthers) {
    const std::array<std::string, 5> options = {"", " fields=row,rank", " top=200", " prefix=w1",
                                                " min=0.05"};
    for (int round = 0; round < 120; ++round) {
        // Two of these sizes are too many for a loop.
        const std::size_t count = std::array<std::size_t, 5>{1, 2, 20, 100, 399}[random_() % 5];
        const std::size_t k = 1 + random_() % 40;
        const std::string& option = options[random_() % options.size()];
        const std::string a = quoted(random_row());
        const std::string b = quoted(random_row());
        const std::string c = quoted(random_row());
        const bool is_near = random_() % 2 == 0;
        const std::string verb = is_near ? "NEAR" : "ANALOGY";
        const std::string rest =
            is_near ? fmt::format("{} - 0.5 * {}", a, b) : fmt::format("{} {} {}", a, b, c);
        std::string how = option;
        if (is_near && random_() % 2 == 0) how += " exclude=none";
        if (!is_near && random_() % 2 == 0) how += " method=mul";
        std::set<std::string> chosen;
        std::string words;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = random_() % kRows;
            chosen.insert(word(row));
            words += quoted(row) + ' ';
        }
        std::vector<std::string> wanted;
        for (const std::string& line :
             connection_.ask(fmt::format("{} k={}{} {}", verb, kRows, how, rest)).lines) {
            if (wanted.size() < k && chosen.contains(line.substr(0, line.find('\t'))))
                wanted.push_back(line);
        }
        const auto reply = connection_.ask(
            fmt::format("{} k={} only={}{} {}{}", verb, k, count, how, words, rest));
        ASSERT_EQ(reply.lines, wanted) << reply.status << " for " << verb << how << ' ' << rest;
    }
}

TEST_F(Verbs, ChosenWordsThatTheModelDoesNotHaveAreErrorsOrLeftOut) {
    const auto status = [&](const std::string& request) { return connection_.ask(request).status; };
    EXPECT_EQ(status("NEAR only=2 w2 nowhere w1").rfind("ERR unknown_word \"nowhere\"", 0), 0U);
    EXPECT_EQ(status("ANALOGY only=1 nowhere w1 w2 w3").rfind("ERR unknown_word", 0), 0U);
    EXPECT_EQ(status("NEAR only=1 unknown=skip nowhere w1").rfind("ERR unknown_word", 0), 0U);
    EXPECT_EQ(status("NEAR only=1 w2 zero").rfind("ERR zero_vector", 0), 0U);
    EXPECT_EQ(status("NEAR only=1 within=no w2 w1").rfind("ERR unknown_list", 0), 0U);
    const auto skipped = connection_.ask("NEAR only=3 unknown=skip case=ignore W2 nowhere w3 w1");
    EXPECT_EQ(skipped.lines.size(), 2U);
    EXPECT_NE(skipped.status.find("skipped=\"nowhere\" replaced=\"W2\":\"w2\""), std::string::npos)
        << skipped.status;
    EXPECT_EQ(skipped.status.find("engine="), std::string::npos) << skipped.status;
    const std::string certified = status("NEAR certify=1 only=4 w2 w2 w3 w1 w1");
    EXPECT_NE(certified.find("pass=float64 scanned=2 survivors=2 rescored=2 kth="),
              std::string::npos)
        << certified;
}

TEST(ChosenWords, OfAnAnalogyAreNeverLeftOut) {
    const TempDir dir;
    make_model(dir / "m", random_entries(20, 8, 1));
    Daemon daemon(dir / "m", {"--unknown", "skip"});
    Connection connection(daemon.socket_path());
    EXPECT_EQ(connection.ask("NEAR only=2 nowhere w5 w1").lines.size(), 1U);
    EXPECT_EQ(connection.ask("ANALOGY only=2 w5 w6 w1 w2 w3").lines.size(), 2U);
    const std::string status = connection.ask("ANALOGY only=2 nowhere w5 w1 w2 w3").status;
    EXPECT_EQ(status.rfind("ERR unknown_word \"nowhere\"", 0), 0U) << status;
}

TEST_F(Verbs, PrefixListsByRank) {
    std::vector<std::pair<std::uint32_t, std::string>> starting;
    for (std::size_t row = 0; row < kRows; ++row) {
        if (model_.key(row).starts_with("w1"))
            starting.emplace_back(model_.ranks()[row], word(row));
    }
    std::sort(starting.begin(), starting.end());
    const auto all = connection_.ask(fmt::format("PREFIX k={} fields=rank w1", kRows));
    ASSERT_EQ(all.lines.size(), starting.size());
    for (std::size_t i = 0; i < starting.size(); ++i) {
        EXPECT_EQ(all.lines[i], fmt::format("{}\t{}", starting[i].second, starting[i].first));
    }
    EXPECT_EQ(connection_.ask("PREFIX w1").lines.size(), 10U);
    EXPECT_TRUE(connection_.ask("PREFIX no-such").lines.empty());
}

TEST_F(Verbs, WhatCannotBeAnsweredIsSaid) {
    const auto code = [&](const std::string& request) {
        const std::string status = connection_.ask(request).status;
        return status.substr(0, status.find(' ', 4));
    };
    for (const std::string verb :
         {"DIST w1", "RANK w1", "ANALOGY w1 w2", "ODD w1 w2", "MATRIX w1", "VEC", "SIM w1"}) {
        EXPECT_EQ(code(verb + " nowhere"), "ERR unknown_word") << verb;
    }
    EXPECT_EQ(code("RANK zero w1"), "ERR zero_vector");
    EXPECT_EQ(code("SIM zero w1"), "ERR zero_vector");
    EXPECT_EQ(code("ANALOGY method=mul w1 zero w2"), "ERR zero_vector");
    EXPECT_EQ(code("ODD zero zero zero"), "ERR zero_vector");
    EXPECT_EQ(code("NEARVEC 1 2 3"), "ERR bad_request");
    std::string numbers;
    for (std::size_t i = 0; i < kDim; ++i) numbers += " 0";
    EXPECT_EQ(code("NEARVEC" + numbers), "ERR zero_vector");
    numbers.replace(numbers.size() - 1, 1, "1e39");
    EXPECT_EQ(code("NEARVEC" + numbers), "ERR bad_request");
    EXPECT_EQ(code("MATRIX metric=manhattan w1"), "ERR bad_request");
    EXPECT_EQ(code("ANALOGY method=sub w1 w2 w3"), "ERR bad_request");
    EXPECT_EQ(code("VEC k=3 w1"), "ERR bad_request");
}

TEST_F(Verbs, OddWordsComeBackAsTheyAre) {
    for (const std::string odd :
         {"NEAR", "two words", "\"quoted\\", "\xC2\xA0.\xC2\xA0.", "\xFF\xFE", "k=5"}) {
        const std::string asked = wire::quote_word(odd);
        EXPECT_EQ(connection_.ask("NEAR k=1 exclude=none " + asked).lines,
                  (std::vector<std::string>{odd + "\t1.000000"}));
        EXPECT_EQ(connection_.ask("PREFIX k=1 " + asked).lines, (std::vector<std::string>{odd}));
        EXPECT_EQ(connection_.ask("HAS " + asked).lines,
                  (std::vector<std::string>{(odd.starts_with('"') ? asked : odd) + "\t1"}));
    }
    const std::string longest(999, 'x');
    EXPECT_EQ(connection_.ask("NEAR k=1 exclude=none " + longest).lines,
              (std::vector<std::string>{longest + "\t1.000000"}));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMatrixWords = 700;  // everything is some twenty times slower
#else
constexpr int kMatrixWords = 4000;
#endif
/// Whether a status line announces all of it.
bool begins_matrix(const std::optional<std::string>& line, int words = kMatrixWords) {
    return line && line->rfind(fmt::format("OK {} us=", words), 0) == 0;
}

/// 4,000 words fit a line; their matrix has 140 MB as text, many times what stands between the
/// daemon and us.
std::string large_matrix(int words = kMatrixWords) {
    std::string request = "MATRIX";
    for (int i = 0; i < words; ++i) request += fmt::format(" w{}", 20 + i % 300);
    return request;
}

TEST_F(Verbs, ALargeMatrixLetsOthersThrough) {
    Connection other(daemon_.socket_path());
    ASSERT_TRUE(connection_.send(large_matrix() + "\nPING\n"));
    ASSERT_TRUE(begins_matrix(connection_.read_line()));
    for (int i = 0; i < 20; ++i) {
        const auto begun = std::chrono::steady_clock::now();
        EXPECT_EQ(other.ask("NEAR k=1 exclude=none w1").lines.size(), 1U);
        EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
    }
    std::string before;
    for (int line = 0; line < kMatrixWords; ++line) {
        const auto text = connection_.read_line();
        ASSERT_TRUE(text) << line;
        ASSERT_EQ(std::count(text->begin(), text->end(), '\t'), kMatrixWords - 1) << line;
        if (line % 300 == 0) {
            // The words repeat, and so do the lines.
            ASSERT_EQ(line == 0 ? *text : before, *text);
            before = *text;
        }
    }
    EXPECT_EQ(connection_.read_line(), "OK 0") << "what was asked behind it is answered behind it";
}

TEST_F(Verbs, SeveralLargeMatricesLetOthersThrough) {
    std::array<std::atomic<int>, 3> lines{};
    std::vector<std::jthread> readers;
    for (std::atomic<int>& count : lines) {
        readers.emplace_back([&] {
            Connection matrix(daemon_.socket_path());
            ASSERT_TRUE(matrix.send(large_matrix() + "\n"));
            ASSERT_TRUE(begins_matrix(matrix.read_line()));
            for (; count < kMatrixWords && matrix.read_line(); ++count) {
            }
        });
    }
    while (lines[0] == 0 || lines[1] == 0 || lines[2] == 0) std::this_thread::yield();
    EXPECT_EQ(connection_.ask("NEAR k=1 exclude=none w1").lines.size(), 1U);
    for (const std::atomic<int>& count : lines)
        EXPECT_LT(count, kMatrixWords) << "answered behind a whole matrix";
    readers.clear();
    for (const std::atomic<int>& count : lines) EXPECT_EQ(count, kMatrixWords);
}

TEST_F(Verbs, ALargeMatrixThatNobodyTakesIsGivenUp) {
    for (int i = 0; i < 20; ++i) {
        Connection leaver(daemon_.socket_path());
        ASSERT_TRUE(leaver.send(large_matrix() + "\n"));
        ASSERT_TRUE(begins_matrix(leaver.read_line()));
    }
    EXPECT_EQ(connection_.ask("SIM w1 twin").lines, (std::vector<std::string>{"1.000000"}));
}

TEST_F(Verbs, StoppingInTheMiddleOfAMatrixBringsItToItsEnd) {
    // Larger than all buffers; small enough for a busy machine to send before the daemon gives up,
    // 10 s after the signal.
    constexpr int kWords = std::min(kMatrixWords, 1000);
    ASSERT_TRUE(connection_.send(large_matrix(kWords) + "\n"));
    ASSERT_TRUE(begins_matrix(connection_.read_line(), kWords));
    daemon_.process().signal(SIGTERM);
    int lines = 0;
    while (connection_.read_line()) ++lines;
    EXPECT_EQ(lines, kWords);
    // Not stop() first: a second signal may come when the daemon no longer looks at signals, and
    // end it.
    EXPECT_EQ(daemon_.process().wait().exit_code, 0);
    (void)daemon_.stop();
}

}  // namespace
}  // namespace gloved::tests
