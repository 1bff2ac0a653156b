// gloved-convert --export: what is written reads back as the model that it was written of.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cfloat>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/format/layout.hpp"
#include "common/result.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/convert/export.hpp"

namespace gloved::tests {
namespace {

using convert::ExportFormat;
using namespace std::string_literals;
namespace fs = std::filesystem;

class Export : public testing::Test {
  protected:
    Status try_export(ExportFormat format, const std::string& output,
                      const std::string& model = "m") {
        said_.clear();
        return convert::export_model({format, dir_ / model, output}, stop_,
                                     [&](const std::string& line) { said_ += line + "\n"; });
    }
    /// What the export wrote.
    std::string exported(ExportFormat format, const std::string& model = "m") {
        const Status status = try_export(format, dir_ / "out", model);
        EXPECT_TRUE(status) << status.error().message;
        return read_file(dir_ / "out");
    }
    void expect_refused(ExportFormat format, const std::string& output, ErrorCode code,
                        const std::string& fragment) {
        const auto files = listing();
        const Status status = try_export(format, output);
        ASSERT_FALSE(status) << output;
        EXPECT_EQ(status.error().code, code) << status.error().message;
        EXPECT_NE(status.error().message.find(fragment), std::string::npos)
            << status.error().message;
        EXPECT_EQ(listing(), files) << "something was left";
    }
    std::vector<std::string> listing() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(dir_.path()))
            names.push_back(entry.path());
        std::sort(names.begin(), names.end());
        return names;
    }
    /// Converts text with further options to the model «again», and compares it with «m».
    void expect_same_model(const std::string& text, std::vector<std::string> options) {
        options.insert(options.begin(), program("gloved-convert"));
        options.insert(options.end(), {"-", dir_ / "again"});
        const Finished finished = run(options, text);
        ASSERT_EQ(finished.exit_code, 0) << finished.err;
        EXPECT_TRUE(read_file(dir_ / "again/keys") == read_file(dir_ / "m/keys"));
        EXPECT_TRUE(read_file(dir_ / "again/values") == read_file(dir_ / "m/values"));
    }
    void expect_round_trip(std::size_t rows, std::size_t dim) {
        const std::string text = exported(ExportFormat::glove);
        expect_same_model(text, {"--dim", std::to_string(dim), "--format", "glove"});
        EXPECT_TRUE(exported(ExportFormat::word2vec) == fmt::format("{} {}\n", rows, dim) + text);
        expect_same_model(exported(ExportFormat::word2vec_bin), {});
    }

    const TempDir dir_;
    std::atomic<bool> stop_{false};
    std::string said_;
};

/// Numbers at every edge of float32, and keys that are hard to tell from other things.
std::vector<Entry> hard_entries(std::size_t dim) {
    const std::vector<std::string> keys = {"the",
                                           "\xC2\xA0",
                                           "a\xC2\xA0"
                                           "b",
                                           "\xFF\xFE",
                                           "\xED\xA0\x80",
                                           "new york",
                                           " ",
                                           " leading",
                                           "trailing ",
                                           "a 7",
                                           "nan",
                                           "inf",
                                           "-0",
                                           "1e5",
                                           "\"",
                                           "\\",
                                           "\x01",
                                           "\xE2\x80\xA8",
                                           "caf\xC3\xA9",
                                           "e",
                                           "a  b",
                                           "#",
                                           "400000",
                                           "\x85",
                                           "\xC2\x85",
                                           "\x0B",
                                           "x\x7F"};
    const std::vector<float> edges = {0.0F,
                                      -0.0F,
                                      FLT_MAX,
                                      -FLT_MAX,
                                      FLT_MIN,
                                      std::numeric_limits<float>::denorm_min(),
                                      -std::numeric_limits<float>::denorm_min(),
                                      std::nextafter(FLT_MIN, 0.0F),
                                      1.0F / 3,
                                      16777216.0F,
                                      16777215.0F,
                                      1e10F,
                                      0.1F,
                                      -1.17549435e-38F,
                                      std::nextafter(1.0F, 2.0F),
                                      123456.789F,
                                      9.8765e-5F};
    std::mt19937 random(5);
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        std::vector<float> vector(dim);
        for (std::size_t j = 0; j < dim; ++j) {
            vector[j] = edges[(i + j) % edges.size()];
            // Any bits that are a finite number, for most.
            if (j >= edges.size()) {
                do vector[j] = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
                while (!std::isfinite(vector[j]));
            }
        }
        entries.emplace_back(keys[i], vector);
    }
    return entries;
}

TEST_F(Export, RealSampleConvertsAgainToTheSameBytes) {
    const std::string sample = source_path("data/glove.6B.100d.sample.txt.gz");
    ASSERT_EQ(run({program("gloved-convert"), sample, dir_ / "m"}).exit_code, 0);
    const std::string text = exported(ExportFormat::glove);
    expect_same_model(text, {});
    EXPECT_EQ(text.substr(0, text.find(' ')), "the");
    EXPECT_TRUE(exported(ExportFormat::word2vec) == "10002 100\n" + text);
    EXPECT_NE(said_.find("/out: 10002 words of 100 numbers, "), std::string::npos) << said_;
    EXPECT_EQ(said_.find("note"), std::string::npos) << said_;
}

TEST_F(Export, HardModelsConvertAgainToTheSameBytes) {
    for (const std::size_t dim :
         {std::size_t{1}, std::size_t{7}, std::size_t{300}, std::size_t{4096}}) {
        auto entries = hard_entries(dim);
        make_model(dir_ / "m", entries);
        expect_same_model(exported(ExportFormat::word2vec_bin), {});
        // Text does not keep blanks around a key.
        std::erase_if(entries, [](const Entry& entry) {
            return entry.first.starts_with(' ') || entry.first.ends_with(' ');
        });
        make_model(dir_ / "m", entries);
        expect_round_trip(entries.size(), dim);
    }
    make_model(dir_ / "m", {{"a", {-0.0F}}});
    EXPECT_EQ(exported(ExportFormat::glove), "a -0\n");
    expect_round_trip(1, 1);
    make_model(dir_ / "m", random_entries(20'000, 300, 3));  // many blocks, several threads
    expect_round_trip(20'000, 300);
}

TEST_F(Export, BinaryFormatsHoldTheBitsInTheOrderOfTheSource) {
    const auto entries = hard_entries(5);
    make_model(dir_ / "m", entries);
    std::string wanted = fmt::format("{} 5\n", entries.size());
    std::string words;
    std::string values;
    for (const auto& [key, vector] : entries) {
        const std::string bytes(reinterpret_cast<const char*>(vector.data()),
                                vector.size() * sizeof(float));
        wanted += key + " " + bytes + "\n";
        words += key + "\n";
        values += bytes;
    }
    EXPECT_TRUE(exported(ExportFormat::word2vec_bin) == wanted);
    const std::string npy = exported(ExportFormat::npy);
    EXPECT_TRUE(read_file(dir_ / "out.words") == words);
    EXPECT_EQ(npy.substr(0, 10), "\x93NUMPY\x01\x00\x76\x00"s);
    const std::string header = npy.substr(10, 118);
    EXPECT_TRUE(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (27, 5), } "))
        << header;
    EXPECT_EQ(header.find_last_not_of(' '), 117U);
    EXPECT_EQ(header.back(), '\n');
    EXPECT_TRUE(npy.substr(128) == values);
    fs::remove(dir_ / "out.words");
    const std::string tensor = exported(ExportFormat::safetensors);
    EXPECT_TRUE(read_file(dir_ / "out.words") == words);
    EXPECT_EQ(tensor.substr(0, 80),
              "\x48\0\0\0\0\0\0\0"
              R"({"embeddings":{"dtype":"F32","shape":[27,5],"data_offsets":[0,540]}}    )"s);
    EXPECT_TRUE(tensor.substr(80) == values);
}

TEST_F(Export, TellsWhatReadersCannotLoad) {
    make_model(
        dir_ / "m",
        {{"a b", {1}}, {"c 0.5", {2}}, {"\xFF", {3}}, {"d", {4}}, {"e ", {5}}, {"f g", {6}}});
    exported(ExportFormat::glove);
    EXPECT_NE(said_.find("4 keys with blanks (\"a b\", \"c 0.5\", \"e \", …): gensim"),
              std::string::npos)
        << said_;
    EXPECT_NE(said_.find("1 key beginning or ending in a blank (\"e \"): text cannot keep"),
              std::string::npos)
        << said_;
    EXPECT_NE(
        said_.find("1 key with invalid UTF-8 (\"\\xFF\"): gensim needs unicode_errors='replace'"),
        std::string::npos)
        << said_;
    // It is true: our reader keeps the others.
    const Finished finished =
        run({program("gloved-convert"), "--dim", "1", dir_ / "out", dir_ / "n"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(read_file(dir_ / "n/keys"), "a b\nc 0.5\nd\ne\nf g\n\xFF\n");
    exported(ExportFormat::word2vec_bin);
    EXPECT_NE(said_.find("4 keys with blanks"), std::string::npos) << said_;
    EXPECT_EQ(said_.find("ending in a blank"), std::string::npos) << said_;
    const Finished binary = run({program("gloved-convert"), dir_ / "out", dir_ / "n"});
    EXPECT_EQ(binary.exit_code, 0) << binary.err;
    EXPECT_EQ(read_file(dir_ / "n/keys"), read_file(dir_ / "m/keys"));
    exported(ExportFormat::npy);
    EXPECT_EQ(said_.find("blank"), std::string::npos) << said_;
}

TEST_F(Export, OfAnArraySaysThatItsWordsAreNewWhereOnlyTheyAre) {
    make_model(dir_ / "m", {{"\xFF", {3}}});
    // What is said of the key comes between the checks of the targets and the end.
    const Status status =
        convert::export_model({ExportFormat::npy, dir_ / "m", dir_ / "out"}, stop_,
                              [&](const std::string&) { fs::create_directory(dir_ / "out"); });
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("out.words is the new one already, and does not belong "
                                          "to an older "),
              std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find("export again"), std::string::npos);
    EXPECT_EQ(read_file(dir_ / "out.words"), "\xFF\n");
}

TEST_F(Export, ReplacesAFileWholeOrNotAtAll) {
    make_model(dir_ / "m", random_entries(5, 3, 1));
    write_file(dir_ / "out", "old");
    const std::string text = exported(ExportFormat::glove);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);

    fs::create_directory(dir_ / "folder");
    ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
    fs::create_symlink("out", dir_ / "link");
    expect_refused(ExportFormat::glove, dir_ / "folder", ErrorCode::conflict, "is a directory");
    expect_refused(ExportFormat::glove, dir_ / "folder/", ErrorCode::conflict, "has no file name");
    expect_refused(ExportFormat::glove, dir_ / "fifo", ErrorCode::conflict, "no regular file");
    expect_refused(ExportFormat::glove, dir_ / "link", ErrorCode::conflict, "symbolic link");
    expect_refused(ExportFormat::glove, dir_ / "none/out", ErrorCode::io, "none");
    expect_refused(ExportFormat::glove, dir_ / "m/values", ErrorCode::conflict,
                   "model's directory");
    expect_refused(ExportFormat::npy, "-", ErrorCode::conflict, "two files");
    fs::create_directory(dir_ / "array.words");
    expect_refused(ExportFormat::npy, dir_ / "array", ErrorCode::conflict,
                   "array.words: exists and is a directory");
    stop_ = true;
    expect_refused(ExportFormat::glove, dir_ / "out", ErrorCode::interrupted, "interrupted");
    expect_refused(ExportFormat::npy, dir_ / "new", ErrorCode::interrupted, "interrupted");
    stop_ = false;
    EXPECT_EQ(read_file(dir_ / "out"), text);
}

TEST_F(Export, DamagedModelsAreRefused) {
    make_model(dir_ / "m", random_entries(50, 4, 1));
    const std::string values = read_file(dir_ / "m/values");
    const auto sound =
        *format::decode_header(std::as_bytes(std::span(values)).first(format::kHeaderBytes));
    const auto put_changed = [&](const char* section, auto value) {
        std::string changed = values;
        std::memcpy(changed.data() + sound.find(section)->offset, &value, sizeof value);
        fs::remove(dir_ / "m/values");
        write_file(dir_ / "m/values", changed);
    };
    put_changed("ranks", std::uint32_t{50});
    expect_refused(ExportFormat::glove, dir_ / "out", ErrorCode::damaged, "not a permutation");
    put_changed("vectors", std::numeric_limits<float>::quiet_NaN());
    for (const auto format :
         {ExportFormat::glove, ExportFormat::word2vec, ExportFormat::word2vec_bin,
          ExportFormat::npy, ExportFormat::safetensors}) {
        expect_refused(format, dir_ / "out", ErrorCode::damaged, "not finite");
    }
    fs::remove(dir_ / "m/keys");
    expect_refused(ExportFormat::glove, dir_ / "out", ErrorCode::io, "keys");
}

TEST_F(Export, InterruptedAnywhereNothingIsLeft) {
    make_model(dir_ / "m", random_entries(2000, 300, 1));
    for (int delay_us = 0; delay_us < 20'000; delay_us += 1000) {
        stop_ = false;
        const auto files = listing();
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
            stop_ = true;
        });
        const Status status = try_export(ExportFormat::npy, dir_ / "out");
        stopper.join();
        if (!status) {
            ASSERT_EQ(status.error().code, ErrorCode::interrupted) << status.error().message;
            ASSERT_EQ(listing(), files);
        } else {
            fs::remove(dir_ / "out");
            fs::remove(dir_ / "out.words");
        }
    }
}

}  // namespace
}  // namespace gloved::tests
