// What gloved-verify says of values, ranges and reports, each fault made on purpose; and how it
// ends early.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VerifyValues : public testing::Test {
  protected:
    VerifyValues() {
        make_model(model_, entries_);
        values_ = read_file(model_ + "/values");
        header_ =
            *format::decode_header(std::as_bytes(std::span(values_)).first(format::kHeaderBytes));
    }

    void put(const std::string& file, const std::string& content) const {
        fs::remove(model_ + "/" + file);
        write_file(model_ + "/" + file, content);
    }
    /// values_ with header_, and the checksums that belong to them.
    void put_values() {
        for (auto& section : header_.sections) {
            section.checksum = format::checksum(
                std::as_bytes(std::span(values_)).subspan(section.offset, section.bytes));
        }
        header_.generation = format::compute_generation(header_);
        const auto encoded = format::encode_header(header_);
        std::memcpy(values_.data(), encoded.data(), encoded.size());
        put("values", values_);
    }
    Finished verify(std::vector<std::string> options = {}) const {
        options.insert(options.begin(), program("gloved-verify"));
        options.push_back(model_);
        return run(options);
    }
    /// It fails, with these lines and no other failures.
    void expect_failures(const std::vector<std::string>& fragments) const {
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 1);
        std::size_t failures = 0;
        for (std::size_t at = 0; (at = finished.out.find("FAILED  ", at)) != std::string::npos;
             ++at)
            ++failures;
        EXPECT_EQ(failures, fragments.size()) << finished.out;
        for (const std::string& fragment : fragments) {
            EXPECT_NE(finished.out.find("FAILED  " + fragment), std::string::npos)
                << fragment << "\n"
                << finished.out;
        }
        EXPECT_NE(finished.out.find(fmt::format("NOT sound, {} of ", fragments.size())),
                  std::string::npos)
            << finished.out;
    }

    const TempDir dir_;
    const std::string model_ = dir_ / "m";
    std::vector<Entry> entries_ = random_entries(300, 7, 1);
    std::string values_;
    format::Header header_;
};

TEST_F(VerifyValues, RangesNameRowAndDimensionAndJsonHoldsThemAll) {
    entries_[17].second[3] = -9.5F;
    entries_[200].second[6] = 12.25F;
    make_model(model_, entries_);
    for (const std::string threads : {"1", "4"}) {
        const Finished finished = verify({"--threads", threads});
        EXPECT_EQ(finished.exit_code, 0) << finished.out;
        const auto model = format::Model::open(model_);
        EXPECT_NE(finished.out.find(fmt::format(
                      "components: -9.5 at row {} (\"w17\"), dimension 3 to 12.25 at row {} "
                      "(\"w200\"), dimension 6\n",
                      *model->find("w17"), *model->find("w200"))),
                  std::string::npos)
            << finished.out;
    }
    const auto json = nlohmann::json::parse(verify({"--json"}).out);
    ASSERT_EQ(json["minimum"].size(), 7U);
    ASSERT_EQ(json["maximum"].size(), 7U);
    for (std::size_t i = 0; i < 7; ++i) {
        float low = kInfinity;
        float high = -kInfinity;
        for (const auto& [key, row] : entries_) {
            low = std::min(low, row[i]);
            high = std::max(high, row[i]);
        }
        EXPECT_EQ(json["minimum"][i].get<double>(), double{low});
        EXPECT_EQ(json["maximum"][i].get<double>(), double{high});
    }
    const auto quick = nlohmann::json::parse(verify({"--json", "--quick"}).out);
    EXPECT_TRUE(quick["minimum"].empty());
}

TEST_F(VerifyValues, EachSectionHasItsChecksum) {
    const std::string sound = values_;
    for (const auto& section : header_.sections) {
        std::string damaged = sound;
        damaged[section.offset + section.bytes / 2] ^= 1;
        put("values", damaged);
        const Finished finished = verify();
        EXPECT_EQ(finished.exit_code, 1);
        for (const auto& other : header_.sections) {
            const bool failed =
                finished.out.find("FAILED  checksum of " + other.name + ": ") != std::string::npos;
            EXPECT_EQ(failed, other.name == section.name) << finished.out;
        }
    }
}

TEST_F(VerifyValues, PaddingIsZero) {
    const auto& norms = header_.sections[0];
    values_[norms.offset + norms.bytes] = 1;
    put("values", values_);
    expect_failures({fmt::format("padding: {}/values: byte {} lies between sections", model_,
                                 norms.offset + norms.bytes)});
    values_[norms.offset + norms.bytes] = 0;
    values_.back() = 1;
    put("values", values_);
    expect_failures(
        {fmt::format("padding: {}/values: byte {} lies between", model_, values_.size() - 1)});
}

TEST_F(VerifyValues, SectionsThatItDoesNotKnowAreHashedToo) {
    format::Section plane{"plane", format::ElementType::bytes, values_.size(), 3'000'000, 0};
    values_ += std::string(3'002'368, '\0');
    ASSERT_EQ(values_.size() % format::kSectionAlignment, 0U);
    for (std::size_t i = 0; i < plane.bytes; ++i) values_[plane.offset + i] = static_cast<char>(i);
    header_.sections.push_back(plane);
    header_.file_bytes = values_.size();
    put_values();
    const Finished finished = verify();
    EXPECT_EQ(finished.exit_code, 0) << finished.out;
    EXPECT_NE(finished.out.find("ok      checksum of plane: "), std::string::npos) << finished.out;
    values_[plane.offset + plane.bytes - 1] ^= 1;
    put("values", values_);
    expect_failures(
        {fmt::format("checksum of plane: {}/values: section 'plane' has checksum ", model_)});
}

// With valid checksums: what a reload must find, and a start must survive.
TEST_F(VerifyValues, WhatIsNotFiniteIsRefusedByTheDaemonsCheckAndNeverInJson) {
    const std::vector<std::string> check = {program("gloved"), "--engine", "cpu",
                                            "--check",         "--model",  "m=" + model_};
    EXPECT_EQ(run(check).exit_code, 0);
    for (const float bad : {kNaN, kInfinity, -kInfinity}) {
        const auto vectors =
            header_.find(format::kVectors)->offset + std::uint64_t{5} * 7 * sizeof(float);
        std::memcpy(values_.data() + vectors, &bad, sizeof bad);
        put_values();
        fs::remove(model_ + "/planes");
        const Finished finished = run(check);
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_NE(finished.err.find("section 'vectors' holds NaN or infinity"), std::string::npos)
            << finished.err;
        EXPECT_EQ(verify().exit_code, 1);
    }
    const double norm = std::numeric_limits<double>::infinity();
    values_.replace(header_.find(format::kVectors)->offset, 300 * 7 * sizeof(float),
                    300 * 7 * sizeof(float), '\0');
    std::memcpy(values_.data() + header_.find(format::kNorms)->offset, &norm, sizeof norm);
    put_values();
    EXPECT_NE(run(check).err.find("section 'norms' holds NaN or infinity"), std::string::npos);
    EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(VerifyValues, NothingButNaNIsToldAndSurvived) {
    const auto& vectors = *header_.find(format::kVectors);
    std::vector<float> values(300 * 7, kNaN);
    std::memcpy(values_.data() + vectors.offset, values.data(), vectors.bytes);
    put_values();
    expect_failures({"norms: 300 wrong; the first: row 0 (", "finite: row 0 ("});
    EXPECT_NE(verify().out.find("components: none to none"), std::string::npos);
    const auto json = nlohmann::json::parse(verify({"--json"}).out);
    EXPECT_EQ(json["ok"], false);
    EXPECT_TRUE(json["minimum"][0].is_null());
}

TEST_F(VerifyValues, ReportsBelongToTheirModel) {
    put("report.json", "{}");
    expect_failures({"report: " + model_ + "/report.json: it is not a report"});
    put("report.json", "{\"format\": [");
    expect_failures({"report: " + model_ + "/report.json: it is not a report"});
    put("report.json", "{\"format\": \"generated\"}");
    EXPECT_EQ(verify().exit_code, 0);
    ASSERT_EQ(run({program("gloved-convert"), "-", dir_ / "other"}, "a 1 2\nb 3 4\n").exit_code, 0);
    put("report.json", read_file(dir_ / "other/report.json"));
    expect_failures({"report: " + model_ + "/report.json: of another model: 2 rows"});
}

TEST_F(VerifyValues, AReportThatIsTooLargeDoesNotEndTheOtherChecks) {
    put("report.json", "");
    constexpr std::uintmax_t kTooLarge = (std::uintmax_t{64} << 20) + 1;
    fs::resize_file(model_ + "/report.json", kTooLarge);
    expect_failures(
        {fmt::format("report: {}/report.json: too large for a report: {} bytes, at most {}", model_,
                     kTooLarge, kTooLarge - 1)});
}

TEST_F(VerifyValues, UsageIsChecked) {
    const Finished help = run({program("gloved-verify"), "--help"});
    EXPECT_EQ(help.exit_code, 0);
    for (const std::string option : {"--quick", "verify engines", "--source", "--json", "--threads",
                                     "Examples:", "Exit status:"}) {
        EXPECT_NE(help.out.find(option), std::string::npos) << option;
    }
    EXPECT_EQ(run({program("gloved-verify")}).exit_code, 2);
    EXPECT_EQ(verify({"--threads", "0"}).exit_code, 2);
    EXPECT_EQ(verify({"--quick", "--source", "-"}).exit_code, 2);
    EXPECT_EQ(verify({"--nonsense"}).exit_code, 2);
}

/// The program, waiting for its source after all checks of the model itself.
class VerifyWaits : public VerifyValues {
  protected:
    void SetUp() override {
        ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
        fifo_ = UniqueFd(::open((dir_ / "fifo").c_str(),
                                O_RDWR | O_CLOEXEC));  // so that neither end waits for the other
        ASSERT_TRUE(fifo_);
        program_.emplace(std::vector<std::string>{"/bin/sh", "-c",
                                                  "exec \"$0\" --source - \"$1\" < \"$2\"",
                                                  program("gloved-verify"), model_, dir_ / "fifo"});
        while (program_->running() && program_->output().find("ranks: ") == std::string::npos) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    UniqueFd fifo_;
    std::optional<Background> program_;
};

TEST_F(VerifyWaits, EndsWhenInterrupted) {
    program_->signal(SIGINT);
    const Finished finished = program_->wait();
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_NE(finished.err.find("gloved-verify: interrupted"), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find("sound"), std::string::npos) << finished.err;
}

TEST_F(VerifyWaits, SaysSoWhenAFileIsCutUnderIt) {
    for (const char* const file : {"keys", "values"}) {
        ASSERT_EQ(::chmod((model_ + "/" + file).c_str(), 0644), 0);
        ASSERT_EQ(::truncate((model_ + "/" + file).c_str(), 0), 0);
    }
    const std::string line = "w1 1 2 3 4 5 6 7\n";
    ASSERT_EQ(::write(fifo_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    fifo_.reset();
    const Finished finished = program_->wait();
    EXPECT_EQ(finished.exit_code, 1) << "signal " << finished.signal;
    EXPECT_NE(finished.err.find("gloved-verify: a file of the model became shorter"),
              std::string::npos)
        << finished.err;
}

}  // namespace
}  // namespace gloved::tests
