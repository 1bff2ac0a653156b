// gloved-verify --audit: answers that were recorded long ago stay sound; changed ones are found.
//
// recorded_answers.json holds replies of gloved 0.1.0 for the sample and the lists of data/, by
// planes and by `--planes off`, of three instruction sets. Its cpu engine still had a pass over all
// vectors in float32. The file is never recorded again: people keep such answers, and check them
// with later versions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using nlohmann::json;

/// What the program finds in a file of answers.
struct Audit {
    int exit_code = -1;
    std::string in_all;
    std::set<std::string> wrong;  ///< names of the answers that are refused
};

Audit audit(const std::string& answers) {
    const Finished finished = run({program("gloved-verify"), "--json", "--audit", answers, "--list",
                                   "animals=" + source_path("data/animals.txt"), "--list",
                                   "pets=" + source_path("data/pets.txt"), sample_model()});
    Audit audit;
    audit.exit_code = finished.exit_code;
    const json parsed = json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << finished.out << finished.err;
    for (const json& check : parsed["checks"]) {
        const auto name = check["name"].get<std::string>();
        if (name == "answers") {
            audit.in_all = check["detail"];
        } else if (!check["ok"].get<bool>()) {
            audit.wrong.insert(name);
        }
    }
    return audit;
}

std::string recorded_path() { return source_path("tests/integration/recorded_answers.json"); }

std::vector<json> recorded() {
    std::ifstream file(recorded_path());
    std::vector<json> replies;
    for (std::string line; std::getline(file, line);) replies.push_back(json::parse(line));
    return replies;
}

/// Changes an answer so that it is no longer sound; false if it does not apply to this one.
using Change = std::function<bool(json& reply)>;

/// The names of the answers that were changed must be those that are refused.
void expect_refused(const Change& change) {
    const TempDir dir;
    std::set<std::string> changed;
    std::size_t number = 0;
    {
        std::ofstream file(dir / "answers");
        for (json reply : recorded()) {
            ++number;
            if (change(reply)) changed.insert("answer on line " + std::to_string(number));
            file << reply.dump() << '\n';
        }
    }
    EXPECT_GT(changed.size(), number / 2);
    const Audit found = audit(dir / "answers");
    EXPECT_EQ(found.exit_code, 1);
    EXPECT_EQ(found.wrong, changed);
}

TEST(VerifyRecorded, AcceptsAnswersOfEveryPass) {
    std::map<std::string, std::size_t> answers;
    for (const json& reply : recorded()) {
        ASSERT_TRUE(reply.contains("request")) << reply;
        ++answers[reply["engine"].get<std::string>() + ' ' + reply["pass"].get<std::string>()];
    }
    const std::map<std::string, std::size_t> expected = {
        {"cpu float32", 27}, {"cpu float64", 7}, {"cpu plane", 22}, {"neighbors neighbors", 2}};
    EXPECT_EQ(answers, expected);
    const Audit found = audit(recorded_path());
    EXPECT_EQ(found.exit_code, 0);
    EXPECT_EQ(found.in_all, "58 of 58 are those of a plain float64 search");
    EXPECT_EQ(found.wrong, std::set<std::string>());
}

TEST(VerifyRecorded, RefusesTheLastBitOfAScore) {
    expect_refused([](json& reply) {
        if (reply["results"].empty()) return false;
        json& score = reply["results"][0]["score"];
        score = std::nextafter(score.get<double>(), 0);
        reply["kth"] = reply["results"].back()["score"];
        return true;
    });
}

TEST(VerifyRecorded, RefusesAMissingWord) {
    expect_refused([](json& reply) {
        json& results = reply["results"];
        if (results.empty()) return false;
        results.erase(results.size() / 2);
        if (results.empty()) {
            reply.erase("kth");
        } else {
            reply["kth"] = results.back()["score"];
        }
        return true;
    });
}

TEST(VerifyRecorded, RefusesRowsThatWereNotRuledOut) {
    expect_refused([](json& reply) {
        if (!reply.contains("ruled_out_by_vectors")) return false;
        json& ruled_out = reply["ruled_out_by_vectors"];
        ruled_out = ruled_out.get<std::uint64_t>() + 1;
        return true;
    });
}

}  // namespace
}  // namespace gloved::tests
