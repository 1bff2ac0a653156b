// gloved-verify --download: checksums of files and what is said of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/verify/download.hpp"

namespace gloved::tests {
namespace {

using source::PublishedFile;
using verify::judge;
using State = verify::DownloadVerdict::State;

constexpr std::string_view kOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

const std::atomic<bool> no_stop = false;

class VerifyDownload : public testing::Test {
  protected:
    std::string file(const std::string& name, const std::string& content) const {
        std::ofstream(dir_ / name, std::ios::binary) << content;
        return dir_ / name;
    }
    Finished verify(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), program("gloved-verify"));
        return run(arguments);
    }

    TempDir dir_;
};

TEST_F(VerifyDownload, ComputesSha256) {
    const auto of = [&](const std::string& content) {
        const auto read = verify::read_download(file("f", content), no_stop);
        EXPECT_EQ(read->bytes, content.size());
        return read->sha256;
    };
    EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(of("abc"), kOfAbc);
    EXPECT_EQ(of(std::string(1000000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    // Several reads.
    std::string long_text;
    for (int i = 0; i < 700000; ++i) long_text += std::to_string(i);
    const auto other = run({"sha256sum", file("g", long_text)});
    EXPECT_EQ(of(long_text), other.out.substr(0, 64));
}

TEST_F(VerifyDownload, RefusesWhatItCannotRead) {
    const auto missing = verify::read_download(dir_ / "none", no_stop);
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("none: cannot open"), std::string::npos);
    const auto directory = verify::read_download(dir_.path(), no_stop);
    ASSERT_FALSE(directory);
    EXPECT_NE(directory.error().message.find("is a directory"), std::string::npos);
    const std::atomic<bool> stop = true;
    EXPECT_EQ(verify::read_download(file("f", "abc"), stop).error().code, ErrorCode::interrupted);
}

TEST_F(VerifyDownload, KnowsAFileByItsContent) {
    const std::array published = {
        PublishedFile{"other.zip", std::string_view("00"), 7}, PublishedFile{"abc.zip", kOfAbc, 3},
        PublishedFile{"unsized.zip", std::string_view("11"), 0}, PublishedFile{"unsummed.zip"}};
    const auto verdict = [&](const std::string& path, std::uint64_t bytes, std::string sha256) {
        return judge({path, bytes, std::move(sha256)}, published);
    };
    const std::string digits(kOfAbc);
    const auto same = verdict("/a/b/other.zip", 3, digits);
    EXPECT_EQ(same.state, State::same);
    EXPECT_EQ(same.name, "abc.zip");
    EXPECT_EQ(same.detail, "is abc.zip as published: 3 bytes, SHA-256 " + digits);

    const auto expect_not = [](const verify::DownloadVerdict& not_same, const std::string& name,
                               const std::string& part) {
        EXPECT_EQ(not_same.state, name.empty() ? State::unknown : State::differs);
        EXPECT_EQ(not_same.name, name);
        EXPECT_NE(not_same.detail.find(part), std::string::npos) << not_same.detail;
    };
    expect_not(verdict("/a/abc.zip", 2, "22"), "abc.zip", "should have 3 bytes and ends too early");
    expect_not(verdict("abc.zip", 1004, "22"), "abc.zip", "1,004 bytes, SHA-256 22; it should");
    expect_not(verdict("abc.zip", 1004, "22"), "abc.zip", "has more; fetch it again from https");
    expect_not(verdict("abc.zip", 3, "22"), "abc.zip", "SHA-256 22; fetch it again");
    expect_not(verdict("unsized.zip", 3, "22"), "unsized.zip", "SHA-256 22; fetch it again");
    expect_not(verdict("abc.zip.part", 3, "22"), "", "(other.zip, abc.zip, unsized.zip)");
    const auto unsummed = verdict("unsummed.zip", 3, "22");
    EXPECT_EQ(unsummed.state, State::unknown);
    EXPECT_EQ(unsummed.name, "unsummed.zip");
    expect_not(verdict("-", 3, "22"), "", "none of the files");
}

TEST_F(VerifyDownload, OfAFileWithoutAKnownChecksumSaysSo) {
    const auto done = verify({"--download", file("glove.2024.wikigiga.300d.zip", "abc")});
    EXPECT_EQ(done.exit_code, 3);
    EXPECT_EQ(done.out.find("unknown " + (dir_ / "glove.2024.wikigiga.300d.zip") +
                            " may be glove.2024.wikigiga.300d.zip, of which no checksum is "
                            "published: 3 bytes, SHA-256 ba78"),
              0U)
        << done.out;
}

TEST_F(VerifyDownload, TakesTheWordOfASingleProjectForAHint) {
    const auto other = verify({"--download", file("glove.2024.wikigiga.50d.zip", "abc")});
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_EQ(other.out, fmt::format("unknown {}/glove.2024.wikigiga.50d.zip may be "
                                     "glove.2024.wikigiga.50d.zip, of which no checksum is "
                                     "published: 3 bytes, SHA-256 {}; one project names SHA-256 "
                                     "afa5e258ee38272db6394547c4b075ecbb7b2164e98542c8d1237b6029b35"
                                     "a65; unzip -t checks it by the sums in it\n",
                                     dir_.path(), kOfAbc));
    const PublishedFile named = {"x.txt", kOfAbc, 1003, true};
    const auto sized = judge({"x.txt", 4, "22"}, {&named, 1});
    EXPECT_EQ(sized.state, State::unknown);
    EXPECT_NE(sized.detail.find("and 1,003 bytes"), std::string::npos) << sized.detail;
    const auto same = judge({"y.txt", 1003, std::string(kOfAbc)}, {&named, 1});
    EXPECT_EQ(same.state, State::same);
    EXPECT_NE(same.detail.find("is x.txt as one project names it"), std::string::npos);
}

TEST_F(VerifyDownload, KnowsThatAFileIsTooShortForItsName) {
    for (const std::string name : {"glove.6B.50d.txt", "glove.2024.wikigiga.50d.zip",
                                   "dolma_300_2024_1.2M.100_combined.txt"}) {
        const auto done = verify({"--download", file(name, "")});
        EXPECT_EQ(done.exit_code, 1) << name;
        EXPECT_EQ(done.out.find("FAILED  " + (dir_ / name) + " is not " + name + ", which has "),
                  0U)
            << done.out;
    }
    const auto verdict = [](std::uint64_t bytes) {
        return judge({"glove.6B.50d.txt", bytes, "22"}, source::published_files());
    };
    // 400,000 lines of «a 1 1 … 1».
    EXPECT_EQ(verdict(40'799'999).state, State::differs);
    EXPECT_NE(verdict(40'799'999).detail.find("has 40,800,000 bytes at least: 40,799,999 bytes"),
              std::string::npos);
    EXPECT_EQ(verdict(40'800'000).state, State::unknown);
}

TEST_F(VerifyDownload, PublishedChecksumsAreDistinctAndComplete) {
    std::set<std::string_view> names;
    std::set<std::string_view> checksums;
    std::size_t with_checksum = 0;
    for (const PublishedFile& published : source::published_files()) {
        names.insert(published.name);
        if (published.sha256.empty()) continue;
        with_checksum += 1;
        checksums.insert(published.sha256);
        EXPECT_EQ(published.sha256.size(), 64U) << published.name;
        EXPECT_EQ(published.sha256.find_first_not_of("0123456789abcdef"), std::string::npos);
    }
    EXPECT_EQ(names.size(), source::published_files().size());
    EXPECT_EQ(checksums.size(), with_checksum);
}

TEST_F(VerifyDownload, TheProgramSaysItInALine) {
    const auto done = verify({"--download", file("glove.840B.300d.zip", "abc")});
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_EQ(done.out.find("FAILED  " + (dir_ / "glove.840B.300d.zip") + " is not glove.840B"), 0U)
        << done.out;
    EXPECT_NE(done.out.find("it should have 2,176,768,927 bytes and ends too early"),
              std::string::npos);
    const auto json = verify({"--json", "--download", file("my\nown", "abc")});
    EXPECT_EQ(json.exit_code, 3);
    const auto facts = nlohmann::json::parse(json.out);
    EXPECT_EQ(facts["sha256"], kOfAbc);
    EXPECT_EQ(facts["bytes"], 3);
    EXPECT_TRUE(facts["ok"].is_null());
    EXPECT_TRUE(facts["name"].is_null());
    EXPECT_EQ(verify({"--download", dir_ / "none"}).exit_code, 1);
}

TEST_F(VerifyDownload, WrongUsageIsRefused) {
    for (const std::vector<std::string>& extra : std::vector<std::vector<std::string>>{
             {"model"}, {"--quick"}, {"--engines"}, {"--source", "x"}}) {
        std::vector<std::string> arguments = {"--download", file("f", "abc")};
        arguments.insert(arguments.end(), extra.begin(), extra.end());
        const auto done = verify(arguments);
        EXPECT_EQ(done.exit_code, 2) << extra[0];
        EXPECT_NE(done.err.find("--download"), std::string::npos) << done.err;
    }
    EXPECT_EQ(verify({"--download", ""}).exit_code, 2);
}

}  // namespace
}  // namespace gloved::tests
