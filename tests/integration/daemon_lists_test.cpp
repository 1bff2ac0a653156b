// Lists of words that requests name: what LISTS shows, what within= and without= leave, and RELOAD.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/row_lists.hpp"
#include "tests/support/daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

constexpr std::size_t kRows = 300;

using Words = std::set<std::string>;
using Lines = std::vector<std::string>;

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

std::string file_of(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += word + "\n";
    return text;
}

/// The words of a model of random_entries that `takes` takes by their numbers.
template <class Takes>
Words words_where(const Takes& takes) {
    Words words;
    for (std::size_t i = 0; i < kRows; ++i) {
        if (takes(i)) words.insert(fmt::format("w{}", i));
    }
    return words;
}

std::string word_of(const std::string& line) { return line.substr(0, line.find('\t')); }

/// The n-th column of a line of LISTS.
std::string column(std::string line, int n) {
    for (; n > 0; --n) line.erase(0, line.find('\t') + 1);
    return word_of(line);
}

constexpr int kChecksum = 3;
constexpr int kOrigin = 5;

class Lists : public testing::Test {
  protected:
    Lists() {
        write_file(dir_ / "few", file_of(few_));
        write_file(dir_ / "third", file_of(third_));
        write_file(dir_ / "half", file_of(half_));
        daemon_.emplace("main=" + (dir_ / "main"),
                        std::vector<std::string>{"--model", "other=" + (dir_ / "other"), "--list",
                                                 "few=" + (dir_ / "few"), "--list",
                                                 "main/third=" + (dir_ / "third"), "--list",
                                                 "main/half=" + (dir_ / "half")});
        connection_.emplace(daemon_->socket_path());
    }

    Lines ask(const std::string& line) { return connection_->ask(line).lines; }

    TempDir dir_;
    const Words few_ = words_where([](std::size_t i) { return i % 100 == 7; });
    const Words third_ = words_where([](std::size_t i) { return i % 3 == 1; });
    const Words half_ = words_where([](std::size_t i) { return i % 2 == 1; });
    const format::Model main_ = make_model(dir_ / "main", random_entries(kRows, 8, 1));
    const format::Model other_ = make_model(dir_ / "other", random_entries(40, 5, 2));
    std::optional<Daemon> daemon_;
    std::optional<Connection> connection_;
};

TEST_F(Lists, AreShownWithWordsFoundAndMissing) {
    const Lines main = ask("LISTS");
    ASSERT_EQ(main.size(), 3U);
    EXPECT_EQ(main[0].rfind("few\t3\t0\t", 0), 0U) << main[0];
    EXPECT_EQ(main[1].rfind("third\t100\t0\t", 0), 0U) << main[1];
    EXPECT_EQ(main[2].rfind("half\t150\t0\t", 0), 0U) << main[2];
    // The other model has one of its own, of which it has one word.
    const Lines other = ask("LISTS model=other");
    ASSERT_EQ(other.size(), 1U);
    EXPECT_EQ(other[0].rfind("few\t1\t2\t", 0), 0U) << other[0];
    EXPECT_EQ(field(connection_->ask("LISTS model=other"), "model"), "other");
    EXPECT_EQ(connection_->ask("NEAR model=other within=half w1").status,
              "ERR unknown_list no list \"half\" of this model: there is few");
    const Lines stats = ask("STATS");
    EXPECT_NE(std::ranges::find(stats, "lists\t3"), stats.end());
    // 8 bytes a word of the model, and 4 a word of each list.
    const auto bytes = std::ranges::find_if(
        stats, [](const std::string& line) { return line.rfind("list_bytes\t", 0) == 0; });
    ASSERT_NE(bytes, stats.end());
    EXPECT_GE(std::stoul(bytes->substr(11)), 8 * kRows + 4 * (3 + 100 + 150));
    EXPECT_LE(std::stoul(bytes->substr(11)), 8 * kRows + 8 * (3 + 100 + 150));
    EXPECT_EQ(connection_->ask("LISTS model=none").status.rfind("ERR unknown_model ", 0), 0U);
}

TEST_F(Lists, LeaveTheWordsOfAnAnswerThatTheyShould) {
    struct Case {
        std::string option;
        std::function<bool(const std::string&)> takes;
    };
    const auto in = [](const Words& words) {
        return [&words](const std::string& word) { return words.contains(word); };
    };
    const std::vector<Case> cases = {
        {"within=few", in(few_)},
        {"within=third", in(third_)},
        {"within=third,half",
         [&](const auto& w) { return third_.contains(w) && half_.contains(w); }},
        {"within=half,half", in(half_)},
        {"without=half", [&](const auto& w) { return !half_.contains(w); }},
        {"without=half,third",
         [&](const auto& w) { return !half_.contains(w) && !third_.contains(w); }},
        {"within=half without=third",
         [&](const auto& w) { return half_.contains(w) && !third_.contains(w); }},
        {"without=few within=few", [](const auto&) { return false; }},
    };
    for (const std::string verb :
         {"NEAR {} w5", "NEAR {} exclude=none w5 - w9", "NEAR {} top=200 prefix=w1 min=-0.2 w5",
          "ANALOGY {} w1 w2 w3", "ANALOGY {} method=mul w1 w2 w3", "NEARVEC {} 1 2 3 4 5 6 7 8"}) {
        const auto asked = [&](const std::string& options) {
            return ask(fmt::format(fmt::runtime(verb), options));
        };
        const Lines all = asked("k=1000");
        ASSERT_GT(all.size(), 10U);
        for (const Case& each : cases) {
            Lines wanted;
            std::copy_if(all.begin(), all.end(), std::back_inserter(wanted),
                         [&](const std::string& line) { return each.takes(word_of(line)); });
            EXPECT_EQ(asked("k=1000 " + each.option), wanted) << verb << " " << each.option;
            // Never fewer than k where there are as many.
            if (wanted.size() > 2) wanted.resize(2);
            EXPECT_EQ(asked("k=2 " + each.option), wanted) << verb << " " << each.option;
        }
    }
}

TEST_F(Lists, LimitRanksAndPrefixesToo) {
    const Lines all = ask("NEAR k=1000 exclude=none w5");
    std::size_t before = 1;
    for (const std::string& line : all) {
        if (word_of(line) == "w6") break;
        if (half_.contains(word_of(line)) && word_of(line) != "w5") ++before;
    }
    EXPECT_EQ(ask("RANK within=half w5 w6"), Lines{std::to_string(before)});
    EXPECT_EQ(ask("RANK without=half,third,few w5 w5"), Lines{"1"});
    Lines wanted;
    for (const std::string& word : ask("PREFIX k=1000 w1")) {
        if (third_.contains(word)) wanted.push_back(word);
    }
    EXPECT_EQ(ask("PREFIX k=1000 within=third w1"), wanted);
    EXPECT_EQ(ask("PREFIX k=1000 within=third without=third w1"), Lines{});
    EXPECT_EQ(connection_->ask("PREFIX within=no w1").status.rfind("ERR unknown_list ", 0), 0U);
}

TEST_F(Lists, AreFilesInAnyOrderWithAnyLineEnds) {
    const auto reloaded = [&](const std::string& text) {
        write_file(dir_ / "few", text);
        EXPECT_EQ(connection_->ask("RELOAD main").status, "OK 1");
        return ask("LISTS")[0];
    };
    const std::string plain = reloaded("w107\nw207\nw7\n");
    EXPECT_EQ(plain.rfind("few\t3\t0\t", 0), 0U);
    // Another order, CR LF, repetitions, empty lines and no last LF are the same list.
    EXPECT_EQ(reloaded("w7\r\n\r\nw207\nw7\n\nw107"), plain);
    // A word that is not there changes no answer, and so not the checksum.
    const std::string more = reloaded("w7\nw107\nw207\nno such word\nW7\nW7\n");
    EXPECT_EQ(more.rfind("few\t3\t2\t", 0), 0U) << more;
    EXPECT_EQ(column(more, kChecksum), column(plain, kChecksum));
    const std::string fewer = reloaded("w7\nw107\n");
    EXPECT_NE(column(fewer, kChecksum), column(plain, kChecksum));
    // Some editors begin a file with a byte order mark.
    EXPECT_EQ(reloaded("\xEF\xBB\xBFw7\nw107\nw207\n"), plain);
    // No word of it is in the model: it is a list all the same.
    EXPECT_EQ(reloaded("none of them\n").rfind("few\t0\t1\t", 0), 0U);
    EXPECT_EQ(ask("NEAR within=few w1"), Lines{});
    EXPECT_EQ(ask("NEAR without=few k=1000 w1").size(), kRows - 1);
}

TEST_F(Lists, ThatCannotBeReadStayAsTheyWere) {
    const Lines before = ask("NEAR within=few w1");
    ASSERT_EQ(before.size(), 3U);
    const std::string few = dir_ / "few";
    struct Case {
        std::string what;
        std::function<void()> make;
    };
    const std::vector<Case> cases = {
        {few + ": cannot open: No such file", [] {}},
        {few + ": has no words; to take the list away, restart without it",
         [&] { write_file(few, "\n\r\n"); }},
        {few + ": is not a regular file any more", [&] { ::mkfifo(few.c_str(), 0600); }},
        {few + ": is a directory", [&] { std::filesystem::create_directory(few); }},
        {few + ": is UTF-16 text", [&] { write_file(few, "\xFF\xFEw"); }},
        {few + ": line 2: holds a NUL byte", [&] { write_file(few, std::string("w7\nw\0", 5)); }},
        {few + ": line 1: is longer than 64 KiB",
         [&] { write_file(few, std::string(10'000'000, 'w')); }},
    };
    std::size_t failed = 0;
    for (const Case& each : cases) {
        std::filesystem::remove(few);
        each.make();
        // The model is another one, so that the reload shows.
        make_model(dir_ / "main", random_entries(kRows, 8, 10 + failed));
        const std::string old = field(connection_->ask("NEAR w1"), "generation");
        const std::string status = connection_->ask("RELOAD main").status;
        const std::string wanted = "main: reloaded, but the old words stay: list few: " + each.what;
        EXPECT_EQ(status.rfind("ERR unavailable " + wanted, 0), 0U) << status;
        EXPECT_NE(field(connection_->ask("NEAR w1"), "generation"), old);
        EXPECT_EQ(ask("NEAR within=few w1").size(), 3U);
        const std::string line = ask("LISTS")[0];
        EXPECT_EQ(line.rfind("few\t3\t0\t", 0), 0U) << line;
        EXPECT_EQ(column(line, kOrigin), "kept");
        const Lines stats = ask("STATS");
        const auto has = [&](const std::string& fact) {
            return std::ranges::any_of(
                stats, [&](const std::string& stat) { return stat.rfind(fact, 0) == 0; });
        };
        EXPECT_TRUE(has("health\tdegraded"));
        EXPECT_TRUE(has("health_reason\t" + wanted)) << each.what;
        EXPECT_TRUE(has("failed_reloads\t" + std::to_string(++failed)));
        EXPECT_TRUE(has("reloads\t0"));
    }
    std::filesystem::remove(few);
    write_file(few, "w1\n");
    EXPECT_EQ(connection_->ask("RELOAD main").status, "OK 1");
    EXPECT_EQ(column(ask("LISTS")[0], kOrigin), "file");
    EXPECT_EQ(ask("STATS")[0], "health\tserving");
}

TEST_F(Lists, KeepWordsThatTheOldModelLacked) {
    const auto reload_with = [&](const format::Model&) {
        const std::string status = connection_->ask("RELOAD other").status;
        EXPECT_EQ(status.rfind("ERR unavailable other: reloaded, but the old words stay", 0), 0U)
            << status;
        return ask("LISTS model=other").at(0);
    };
    const auto small = [&] { return make_model(dir_ / "other", random_entries(40, 5, 3)); };
    const auto large = [&] { return make_model(dir_ / "other", random_entries(kRows, 5, 4)); };
    // Of w7, w107 and w207 the model has one.
    std::filesystem::rename(dir_ / "few", dir_ / "few.old");
    for (int round = 0; round < 2; ++round) {
        const std::string kept = reload_with(large());
        EXPECT_EQ(kept.rfind("few\t3\t0\t", 0), 0U) << kept;
        EXPECT_EQ(column(kept, kOrigin), "kept");
        EXPECT_EQ(ask("NEAR model=other within=few exclude=none w1").size(), 3U);
        EXPECT_EQ(ask("NEAR model=other without=few k=1000 w1").size(), kRows - 4);
        EXPECT_EQ(reload_with(small()).rfind("few\t1\t2\t", 0), 0U);
    }
    const std::string kept = reload_with(large());
    std::filesystem::rename(dir_ / "few.old", dir_ / "few");
    EXPECT_EQ(connection_->ask("RELOAD other").status, "OK 1");
    EXPECT_EQ(column(ask("LISTS model=other").at(0), kChecksum), column(kept, kChecksum));
    // A list has words also where its model has none of them.
    write_file(dir_ / "few", "w107\nw207\n");
    small();
    EXPECT_EQ(connection_->ask("RELOAD other").status, "OK 1");
    write_file(dir_ / "few", "");
    EXPECT_EQ(reload_with(large()).rfind("few\t2\t0\t", 0), 0U);
}

TEST(KeptLists, FollowTheRuleForCase) {
    const TempDir dir;
    make_model(dir / "m", {{"snake", {1, 0}}, {"Paris", {0, 1}}, {"cat", {1, 1}}});
    const std::string text = "SNAKE\nParis\nPARIS\nDog\n";
    write_file(dir / "caps", text);
    Daemon daemon("m=" + (dir / "m"), {"--list", "caps=" + (dir / "caps"), "--case", "ignore"});
    Connection connection(daemon.socket_path());
    const std::string first = connection.ask("LISTS").lines.at(0);
    EXPECT_EQ(first.rfind("caps\t2\t1\t", 0), 0U) << first;
    // Now SNAKE is a word of its own, so the list does not have snake; and there is a dog.
    make_model(dir / "m",
               {{"snake", {1, 0}}, {"SNAKE", {1, 2}}, {"PARIS", {0, 1}}, {"dog", {1, 1}}});
    std::filesystem::remove(dir / "caps");
    EXPECT_EQ(connection.ask("RELOAD").status.rfind("ERR unavailable ", 0), 0U);
    const std::string kept = connection.ask("LISTS").lines.at(0);
    write_file(dir / "caps", text);
    EXPECT_EQ(connection.ask("RELOAD").status, "OK 1");
    std::string read = connection.ask("LISTS").lines.at(0);
    EXPECT_EQ(read.rfind("caps\t3\t0\t", 0), 0U) << read;
    EXPECT_EQ(kept, read.replace(read.rfind("file"), 4, "kept"));
}

/// A shell runs gloved with the lists that it can name, and two models.
class PipedLists : public testing::Test {
  protected:
    /// `before`: a command of the shell before it becomes gloved.
    void start(const std::string& options, const std::string& before = "") {
        make_model(dir_ / "m", random_entries(50, 3, 1));
        make_model(dir_ / "n", random_entries(40, 3, 2));
        const std::string command =
            fmt::format("{}exec \"$0\" --model \"$1\"/m --model \"$1\"/n --socket \"$1\"/s {}",
                        before, options);
        daemon_.emplace(
            std::vector<std::string>{"/bin/bash", "-c", command, program("gloved"), dir_.path()});
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (daemon_->running() && std::chrono::steady_clock::now() < deadline &&
               daemon_->output().find("ready after") == std::string::npos)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ASSERT_NE(daemon_->output().find("ready after"), std::string::npos) << daemon_->output();
        connection_.emplace(dir_ / "s");
    }

    Lines ask(const std::string& line) { return connection_->ask(line).lines; }

    TempDir dir_;
    std::optional<Background> daemon_;
    std::optional<Connection> connection_;
};

TEST_F(PipedLists, KeepTheirWordsOverReloadsAndForEveryModel) {
    start("--list banned=<(sleep 0.3; printf 'w1\\nw45\\n') --list none=<(:)");
    for (int round = 0; round < 3; ++round) {
        const Lines lists = ask("LISTS");
        ASSERT_EQ(lists.size(), 2U);
        EXPECT_EQ(lists[0].rfind("banned\t2\t0\t", 0), 0U) << lists[0];
        EXPECT_EQ(column(lists[0], kOrigin), "pipe");
        EXPECT_EQ(lists[1].rfind("none\t0\t0\t", 0), 0U) << lists[1];
        EXPECT_EQ(ask("LISTS model=n")[0].rfind("banned\t1\t1\t", 0), 0U);
        EXPECT_EQ(ask("NEAR k=100 exclude=none without=banned w1").size(), 48U);
        EXPECT_EQ(connection_->ask("RELOAD").status, "OK 2");
    }
    // A word that the model did not have is not lost: another model may have it.
    make_model(dir_ / "n", random_entries(50, 3, 3));
    EXPECT_EQ(connection_->ask("RELOAD n").status.substr(0, 4), "OK 1");
    EXPECT_EQ(ask("LISTS model=n")[0].rfind("banned\t2\t0\t", 0), 0U);
    EXPECT_NE(daemon_->output().find("a reload does not read it"), std::string::npos);
}

TEST_F(PipedLists, AreReadAsFilesOnceTheyAreFiles) {
    ASSERT_EQ(::mkfifo((dir_ / "f").c_str(), 0600), 0);
    start("--list f=\"$1\"/f", "printf 'w1\\n' > \"$1\"/f & ");
    EXPECT_EQ(column(ask("LISTS")[0], kOrigin), "pipe");
    std::filesystem::remove(dir_ / "f");
    write_file(dir_ / "f", "w2\nw3\n");
    EXPECT_EQ(connection_->ask("RELOAD").status, "OK 2");
    EXPECT_EQ(ask("LISTS")[0].rfind("f\t2\t0\t", 0), 0U);
    EXPECT_EQ(column(ask("LISTS")[0], kOrigin), "file");
    // What the list had last stays, not what it had at the start.
    for (const bool is_fifo : {false, true}) {
        std::filesystem::remove(dir_ / "f");
        if (is_fifo) {
            ASSERT_EQ(::mkfifo((dir_ / "f").c_str(), 0600), 0);
        }
        EXPECT_EQ(connection_->ask("RELOAD").status.rfind("ERR unavailable ", 0), 0U);
        for (const std::string model : {"m", "n"}) {
            const std::string line = ask("LISTS model=" + model)[0];
            EXPECT_EQ(line.rfind("f\t2\t0\t", 0), 0U) << line;
            EXPECT_EQ(column(line, kOrigin), "kept");
        }
        EXPECT_EQ(ask("STATS")[0], "health\tdegraded");
    }
}

TEST_F(Lists, FollowTheRuleForCase) {
    const TempDir dir;
    make_model(dir / "m", {{"snake", {1, 0}}, {"Paris", {0, 1}}, {"cat", {1, 1}}});
    write_file(dir / "caps", "SNAKE\nsnake\nParis\nPARIS\nPARIS\nDog\n");
    for (const bool ignores : {false, true}) {
        std::vector<std::string> options = {"--list", "caps=" + (dir / "caps")};
        if (ignores) options.insert(options.end(), {"--case", "ignore"});
        Daemon daemon("m=" + (dir / "m"), options);
        Connection connection(daemon.socket_path());
        const std::string line = connection.ask("LISTS").lines.at(0);
        EXPECT_EQ(line.rfind(ignores ? "caps\t2\t1\t" : "caps\t2\t3\t", 0), 0U) << line;
        EXPECT_EQ(column(line, 4), ignores ? "2" : "0");
        const std::string log = daemon.stop().err;
        const std::string told =
            ignores ? "2 words, 1 not in the model, 2 taken in another case or form"
                    : "list caps: --case ignore would take 2 of 3 missing words, in another "
                      "case or form";
        EXPECT_NE(log.find(told), std::string::npos) << log;
        EXPECT_EQ(log.find("would take") == std::string::npos, ignores) << log;
    }
    write_file(dir / "caps", "SNAKE\nCAT\n");
    Daemon daemon("m=" + (dir / "m"), {"--list", "caps=" + (dir / "caps"), "--case", "ignore"});
    Connection connection(daemon.socket_path());
    EXPECT_EQ(connection.ask("NEAR within=caps exclude=none snake").lines.size(), 2U);
    // What a request says of its own words changes no list.
    EXPECT_EQ(connection.ask("NEAR within=caps case=exact exclude=none snake").lines.size(), 2U);
}

TEST_F(Lists, HasTellsWhetherAllListsHaveAWord) {
    EXPECT_EQ(ask("HAS within=third w1 w3 nosuch"),
              (Lines{"w1\t1\t1", "w3\t1\t0", "nosuch\t0\t0"}));
    EXPECT_EQ(ask("HAS within=third,half w1 w4 w3"), (Lines{"w1\t1\t1", "w4\t1\t0", "w3\t1\t0"}));
    EXPECT_EQ(ask("HAS w1 nosuch"), (Lines{"w1\t1", "nosuch\t0"}));
    EXPECT_EQ(ask("HAS within=third fields=row,rank w1").at(0),
              "w1\t1\t1\t" + ask("HAS fields=row,rank w1").at(0).substr(5));
    EXPECT_EQ(connection_->ask("HAS within=no w1").status.rfind("ERR unknown_list ", 0), 0U);
    EXPECT_EQ(connection_->ask("HAS without=third w1").status.rfind("ERR bad_request ", 0), 0U);
    ask("FORMAT json");
    const std::string json = connection_->ask("HAS within=third w1 nosuch").status;
    EXPECT_NE(json.find(R"({"word":"w1","known":true,"within":true})"), std::string::npos) << json;
    EXPECT_NE(json.find(R"({"word":"nosuch","known":false,"within":false})"), std::string::npos)
        << json;
}

TEST_F(Lists, RankTellsScoreAndWhetherTheWordIsEligible) {
    const auto of = [&](const std::string& request) {
        const Lines lines = ask("RANK fields=score,eligible " + request);
        return lines.size() == 1 ? lines[0].substr(lines[0].find('\t') + 1) : "?";
    };
    const std::string score = ask("SIM w5 w4").at(0);
    EXPECT_EQ(of("w5 w4"), score + "\t1");
    EXPECT_EQ(of("within=third w5 w4"), score + "\t1");
    EXPECT_EQ(of("within=half w5 w4"), score + "\t0");
    EXPECT_EQ(of("without=third w5 w4"), score + "\t0");
    EXPECT_EQ(of("prefix=w4 w5 w4"), score + "\t1");
    EXPECT_EQ(of("prefix=w1 w5 w4"), score + "\t0");
    EXPECT_EQ(of("top=5 w5 w4"), score + "\t1");  // its rank is 4
    EXPECT_EQ(of("top=4 w5 w4"), score + "\t0");
    EXPECT_EQ(of("w5 w5"), "1.000000\t1");
    EXPECT_EQ(of("within=third w5 w5"), "1.000000\t0");
    EXPECT_EQ(of("( w5 + w7 ) w5"), ask("SIM ( w5 + w7 ) w5").at(0) + "\t1");
    EXPECT_EQ(of("w5 ( w4 + w7 )"), ask("SIM w5 ( w4 + w7 )").at(0) + "\t0");
    EXPECT_EQ(ask("RANK fields=eligible w5 w4").at(0), ask("RANK w5 w4").at(0) + "\t1");
    for (int i = 0; i < 50; ++i) EXPECT_EQ(of("within=half w5 w4"), score + "\t0") << i;
    for (const char* fields : {"rank", "row", "score,score", "", "score,"}) {
        EXPECT_EQ(connection_->ask(std::string("RANK fields=") + fields + " w5 w4")
                      .status.rfind("ERR bad_request fields= ", 0),
                  0U)
            << fields;
    }
    EXPECT_EQ(connection_->ask("NEAR fields=score w5").status.rfind("ERR bad_request fields= ", 0),
              0U);
    ask("FORMAT json");
    const std::string json = connection_->ask("RANK fields=eligible,score w5 w4").status;
    EXPECT_NE(json.find(R"(,"eligible":true,"score":)"), std::string::npos) << json;
}

std::uint64_t stat(Connection& connection, const std::string& name) {
    for (const std::string& line : connection.ask("STATS").lines) {
        if (word_of(line) == name) return std::stoull(column(line, 1));
    }
    ADD_FAILURE() << "no " << name << " in STATS";
    return 0;
}

/// Ranks from an order that is kept are those that NEAR shows, with every filter.
TEST_F(Lists, RanksFromAKeptOrderArePlacesInNear) {
    const std::string last = word_of(ask("NEAR k=1000 w5").back());
    for (const std::string filter : {"", "within=third", "within=half without=third", "top=200",
                                     "prefix=w1", "within=third,half top=150", "within=few"}) {
        const Lines near = ask("NEAR k=1000 " + filter + " w5");
        const std::uint64_t before = stat(*connection_, "rank_cache_hits");
        for (int round = 0; round < 40; ++round) {
            for (std::size_t i = 0; i < near.size(); i += 1 + near.size() / 3) {
                const Lines rank = ask("RANK " + filter + " w5 " + word_of(near[i]));
                EXPECT_EQ(rank, Lines{std::to_string(i + 1)}) << filter << " " << round;
            }
        }
        EXPECT_GT(stat(*connection_, "rank_cache_hits"), before + 20) << filter;
        // A word that comes after all others, whether the filter leaves it or not.
        const auto is_last = [&](const std::string& line) { return word_of(line) == last; };
        const bool is_there = std::ranges::any_of(near, is_last);
        EXPECT_EQ(ask("RANK " + filter + " w5 " + last),
                  Lines{std::to_string(near.size() + (is_there ? 0 : 1))})
            << filter;
    }
    EXPECT_GT(stat(*connection_, "rank_cache_bytes"), 0U);
    EXPECT_EQ(ask("RANK w5 w5"), Lines{"1"});
    // Sent ahead: some ranks wait for an order that their batch makes.
    std::string requests;
    for (int i = 0; i < 200; ++i) requests += fmt::format("RANK within=half w7 w{}\n", i % 50);
    ASSERT_TRUE(connection_->send(requests));
    Lines first;
    for (int i = 0; i < 200; ++i) {
        const Lines rank = connection_->read_reply().lines;
        ASSERT_EQ(rank.size(), 1U) << i;
        if (i < 50) first.push_back(rank[0]);
        EXPECT_EQ(rank[0], first[static_cast<std::size_t>(i % 50)]) << i;
    }
}

TEST_F(Lists, RanksFromAKeptOrderEndWithAReload) {
    const Words other = words_where([](std::size_t i) { return i % 3 == 2 || i < 40; });
    std::vector<Lines> known;
    for (int i = 0; i < 60; ++i) {
        write_file(dir_ / "third", file_of(i % 2 == 0 ? third_ : other));
        ASSERT_EQ(connection_->ask("RELOAD main").status, "OK 1");
        EXPECT_EQ(stat(*connection_, "rank_cache_bytes"), 0U);
        Lines ranks;
        for (int repeat = 0; repeat < 3; ++repeat) ranks = ask("RANK within=third w5 w100");
        if (i < 2) known.push_back(ranks);
        EXPECT_EQ(ranks, known[i % 2 == 0 ? 0 : 1]) << i;
    }
    EXPECT_NE(known[0], known[1]);
}

/// Lists of a directory, of which --list has one of its own.
class ListDirectory : public testing::Test {
  protected:
    ListDirectory() {
        std::filesystem::create_directory(dir_ / "lists");
        write_file(dir_ / "own", "w1\nw2\n");
        put("own", "w3\n");
        put("pets.txt", "w4\nw5\nw6\n");
        make_model(dir_ / "m", random_entries(kRows, 8, 1));
    }
    void start() {
        daemon_.emplace(
            "m=" + (dir_ / "m"),
            std::vector<std::string>{"--list", "own=" + (dir_ / "own"), "--lists", dir_ / "lists"});
        connection_.emplace(daemon_->socket_path());
    }
    void put(const std::string& name, const std::string& text) {
        write_file(dir_ / "new", text);
        std::filesystem::rename(dir_ / "new", dir_ / ("lists/" + name));
    }
    /// Name and number of words of each list.
    Lines lists() {
        Lines shown;
        for (const std::string& line : connection_->ask("LISTS").lines)
            shown.push_back(column(line, 0) + " " + column(line, 1));
        return shown;
    }
    std::string reload() { return connection_->ask("RELOAD").status; }

    TempDir dir_;
    std::optional<Daemon> daemon_;
    std::optional<Connection> connection_;
};

TEST_F(ListDirectory, HasAListForEachFile) {
    put(".hidden", "w1\n");
    put("pets.txt~", "w1\n");
    put("no name", "w1\n");
    std::filesystem::create_directory(dir_ / "lists/directory");
    start();
    EXPECT_EQ(lists(), (Lines{"own 2", "pets 3"}));
    EXPECT_EQ(connection_->ask("NEAR within=pets exclude=none w1").lines.size(), 3U);
    EXPECT_EQ(connection_->ask("NEAR within=own exclude=none w1").lines.size(), 2U);
    put("day", "w7\n");
    put("pets.txt", "w4\n");
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(lists(), (Lines{"own 2", "day 1", "pets 1"}));
    EXPECT_EQ(connection_->ask("NEAR within=day w1").lines.size(), 1U);
    EXPECT_EQ(connection_->ask("NEAR within=pets exclude=none w1").lines.size(), 1U);
    std::filesystem::remove(dir_ / "lists/pets.txt");
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(connection_->ask("NEAR within=pets w1").status,
              "ERR unknown_list no list \"pets\" of this model: there is own, day");
    const Finished stopped = daemon_->stop();
    for (const char* told :
         {"no name\" is no list: a name", "directory\" is no list: it is no regular"})
        EXPECT_NE(stopped.err.find(told), std::string::npos) << told << "\n" << stopped.err;
}

TEST_F(ListDirectory, ThatCannotBeReadChangesNothing) {
    start();
    put("day", "\xFF\xFEw");
    EXPECT_NE(reload().find("it has no old words, and is left out"), std::string::npos);
    EXPECT_EQ(lists(), (Lines{"own 2", "pets 3"})) << "there were no words to keep";
    put("day", "w1\n");
    put("pets.txt", "");
    EXPECT_NE(reload().find("to take the list away, remove the file"), std::string::npos);
    EXPECT_EQ(lists(), (Lines{"own 2", "day 1", "pets 3"}));
    put("pets", "w1\n");
    EXPECT_NE(reload().find("two files are the list pets"), std::string::npos);
    std::filesystem::rename(dir_ / "lists", dir_ / "away");
    EXPECT_NE(reload().find("cannot read"), std::string::npos);
    EXPECT_EQ(lists(), (Lines{"own 2", "day 1", "pets 3"}));
    std::filesystem::create_directory(dir_ / "lists");
    for (std::size_t i = 0; i < kernels::kMaxLists; ++i) put(fmt::format("l{}", i), "w1\n");
    EXPECT_NE(reload().find("65 lists with those of --list; a model has at most 64"),
              std::string::npos);
    std::filesystem::remove(dir_ / "lists/l9");
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(lists().size(), 64U);
}

TEST_F(ListDirectory, MayBeEmptyAtFirst) {
    std::filesystem::remove_all(dir_ / "lists");
    std::filesystem::create_directory(dir_ / "lists");
    daemon_.emplace("m=" + (dir_ / "m"), std::vector<std::string>{"--lists", dir_ / "lists"});
    connection_.emplace(daemon_->socket_path());
    EXPECT_EQ(lists(), Lines{});
    put("day", "w7\nw8\n");
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(connection_->ask("NEAR within=day w1").lines.size(), 2U);
}

/// The engine stays as long as the model's files do: its counts go on.
TEST_F(ListDirectory, IsReadAloneWhereTheModelIsTheSame) {
    start();
    const auto queries = [&] { return stat(*connection_, "queries"); };
    for (int i = 0; i < 5; ++i) connection_->ask("NEAR within=pets w1");
    EXPECT_EQ(queries(), 5U);
    put("day", "w9\n");
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(connection_->ask("NEAR within=day w1").lines.size(), 1U);
    EXPECT_EQ(queries(), 6U);
    EXPECT_EQ(stat(*connection_, "reloads"), 1U);
    // The same content in files of another time may be other content.
    std::filesystem::last_write_time(dir_ / "m/keys",
                                     std::filesystem::file_time_type::clock::now());
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(queries(), 0U);
    connection_->ask("NEAR within=day w1");
    make_model(dir_ / "m", random_entries(kRows, 8, 2));
    EXPECT_EQ(reload(), "OK 1");
    EXPECT_EQ(queries(), 0U);
    EXPECT_EQ(connection_->ask("NEAR within=day w1").lines.size(), 1U);
}

/// Every answer is by the list that was there when it was asked, or by the next one, whole.
TEST_F(ListDirectory, ChangesUnderLoadWithoutAWrongAnswer) {
    start();
    const std::array<std::string, 2> texts = {
        file_of(words_where([](std::size_t i) { return i % 3 == 1; })),
        file_of(words_where([](std::size_t i) { return i % 3 == 2 || i < 40; }))};
    const std::string near = "NEAR k=400 within=day exclude=none w5";
    std::array<Lines, 2> known;
    std::array<Lines, 2> known_near;
    for (std::size_t i = 0; i < 2; ++i) {
        put("day", texts[i]);
        ASSERT_EQ(reload(), "OK 1");
        known_near[i] = connection_->ask(near).lines;
        known[i] = connection_->ask("RANK within=day w5 w100").lines;
    }
    ASSERT_NE(known[0], known[1]);
    EXPECT_EQ(known_near[0].size(), 100U);
    EXPECT_EQ(known_near[1].size(), 127U);
    std::atomic<bool> stop = false;
    std::vector<std::thread> clients;
    for (int client = 0; client < 3; ++client) {
        clients.emplace_back([&] {
            Connection connection(daemon_->socket_path());
            while (!stop) {
                const Lines rank = connection.ask("RANK within=day w5 w100").lines;
                EXPECT_TRUE(rank == known[0] || rank == known[1]);
                const Lines answer = connection.ask(near).lines;
                EXPECT_TRUE(answer == known_near[0] || answer == known_near[1]);
            }
        });
    }
    for (std::size_t i = 0; i < 300; ++i) {
        put("day", texts[i % 2]);
        ASSERT_EQ(reload(), "OK 1");
        for (int repeat = 0; repeat < 3; ++repeat)
            EXPECT_EQ(connection_->ask("RANK within=day w5 w100").lines, known[i % 2]) << i;
    }
    stop = true;
    for (std::thread& client : clients) client.join();
}

/// Runs gloved with wrong lists; its message and exit status.
std::string refusal(const std::string& model, const std::vector<std::string>& lists) {
    const TempDir dir;
    std::vector<std::string> command = {program("gloved"), "--model", "m=" + model, "--socket",
                                        dir / "socket"};
    for (const std::string& list : lists) {
        command.emplace_back("--list");
        command.push_back(list);
    }
    const Finished done = run(command);
    return fmt::format("{}: {}", done.exit_code, done.err);
}

TEST(ListOptions, AreRefusedWhereTheyAreWrong) {
    const TempDir dir;
    make_model(dir / "m", random_entries(5, 3, 1));
    write_file(dir / "list", "w1\n");
    const std::string file = dir / "list";
    const auto refused = [&](const std::vector<std::string>& lists) {
        return refusal(dir / "m", lists);
    };
    const auto begins = [](const std::string& text, const std::string& with) {
        EXPECT_EQ(text.substr(0, with.size()), with);
    };
    for (const std::string wrong : {"x", "=f", "x=", "a/b/c=f", "/x=f", "a b=f", "a,b=f"})
        begins(refused({wrong}), "2: gloved: --list takes NAME=FILE or MODEL/NAME=FILE");
    begins(refused({"q/x=" + file}), "2: gloved: --list: there is no model \"q\"");
    begins(refused({"x=" + file, "m/x=" + file}),
           "2: gloved: --list: two lists of m are called x; rename one");
    std::vector<std::string> many;
    for (int i = 0; i < 65; ++i) many.push_back(fmt::format("l{}={}", i, file));
    begins(refused(many), "2: gloved: --list: more than 64 lists of m; join some files");
    begins(refused({"x=-"}), "2: gloved: --list takes the name of a file, not -; /dev/stdin is");
    const std::string missing = refused({"x=" + file + ".no"});
    EXPECT_EQ(missing[0], '1');
    EXPECT_NE(missing.find("list x: " + file + ".no: cannot open"), std::string::npos) << missing;
}

TEST(ListOptions, TakeSixtyFour) {
    const TempDir dir;
    make_model(dir / "m", random_entries(100, 3, 1));
    std::vector<std::string> options;
    for (int i = 0; i < 64; ++i) {
        write_file(dir / fmt::format("l{}", i), fmt::format("w{}\nw{}\n", i, i + 1));
        options.emplace_back("--list");
        options.push_back(fmt::format("l{}={}", i, dir / fmt::format("l{}", i)));
    }
    Daemon daemon(dir / "m", options);
    Connection connection(daemon.socket_path());
    EXPECT_EQ(connection.ask("LISTS").lines.size(), 64U);
    for (const int i : {0, 31, 63}) {
        EXPECT_EQ(connection.ask(fmt::format("PREFIX within=l{} w", i)).lines.size(), 2U) << i;
        const auto near = connection.ask(fmt::format("NEAR within=l{} w99", i)).lines;
        ASSERT_EQ(near.size(), 2U) << i;
    }
    EXPECT_EQ(connection.ask("NEAR k=100 exclude=none without=l0,l63 w99").lines.size(), 96U);
}

}  // namespace
}  // namespace gloved::tests
