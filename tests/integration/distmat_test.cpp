// gloved-distmat, run as a user would.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/gzip.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/zip.hpp"

namespace gloved::tests {
namespace {

namespace fs = std::filesystem;

/// As numpy.save writes it.
std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                bool fortran = false) {
    std::string header = "{'descr': '" + descr +
                         "', 'fortran_order': " + (fortran ? "True" : "False") +
                         ", 'shape': " + shape + ", }";
    while ((10 + header.size() + 1) % 64 != 0) header += ' ';
    header += '\n';
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 0xFF);
    text += static_cast<char>(header.size() >> 8);
    return text + header + data;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(std::string_view bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

struct Array {
    std::string header;
    std::string data;
};

Array read_npy(const std::string& path) {
    const std::string file = read_file(path);
    const std::size_t end = file.find('\n');
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    EXPECT_EQ((end + 1) % 64, 0U);
    return {file.substr(10, end - 10), file.substr(end + 1)};
}

std::vector<float> numbers(const std::string& text) {
    std::vector<float> values;
    std::istringstream in(text);
    for (std::string token; in >> token;) values.push_back(std::stof(token));
    return values;
}

class Distmat : public testing::Test {
  protected:
    static Finished distmat(std::vector<std::string> arguments, const std::string& input = {}) {
        arguments.insert(arguments.begin(), program("gloved-distmat"));
        return run(arguments, input);
    }
    void expect_refused(const std::string& content, const std::string& says) const {
        write_file(dir_ / "in", content);
        expect_input_refused(dir_ / "in", says);
    }
    void expect_input_refused(const std::string& input, const std::string& says) const {
        const Finished refused = distmat({input, dir_ / "out.npy"});
        EXPECT_EQ(refused.exit_code, 1) << says;
        EXPECT_NE(refused.err.find("gloved-distmat: " + input + ": "), std::string::npos)
            << refused.err;
        EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
        EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
        EXPECT_EQ(refused.out, "");
        for (const auto& entry : fs::directory_iterator(dir_.path()))
            EXPECT_EQ(entry.path().filename(), "in");
    }

    const TempDir dir_;
};

TEST_F(Distmat, PrintsAMatrixOfText) {
    const Finished done = distmat({"-", "-"}, "0 0\n3 4\n\n6 8\r\n");
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, "0 25 100\n25 0 25\n100 25 0\n");
    EXPECT_NE(done.err.find("all distances of 3 rows of 2 numbers, sqeuclidean, 26 bytes; "),
              std::string::npos)
        << done.err;
    EXPECT_EQ(distmat({"--metric", "euclidean", "-", "-"}, "0 0\n3 4\n6 8\n").out,
              "0 5 10\n5 0 5\n10 5 0\n");
    EXPECT_EQ(distmat({"--metric", "cosine", "-", "-"}, "0 2\n7 0\n0 -1\n0 9\n").out,
              "0 1 2 0\n1 0 1 1\n2 1 0 2\n0 1 2 0\n");
    EXPECT_EQ(distmat({"-", "-"}, "7").out, "0\n");
    EXPECT_EQ(distmat({"--top", "3", "-", "-"}, "7").out, "");
    // The shortest decimals that read back, however small.
    EXPECT_EQ(distmat({"-", "-"}, "0\n1\n9.313225746154785e-10\n").out.substr(0, 19),
              "0 1 8.6736174e-19\n1");
}

TEST_F(Distmat, PrintsTablesAndSimilarities) {
    const std::string points = "0 2\n7 0\n0 -1\n";
    EXPECT_EQ(distmat({"--metric", "similarity", "-", "-"}, points).out, "1 0 -1\n0 1 0\n-1 0 1\n");
    EXPECT_EQ(distmat({"--metric", "similarity", "--format", "csv", "-", "-"}, points).out,
              "row,0,1,2\n0,1,0,-1\n1,0,1,0\n2,-1,0,1\n");
    EXPECT_EQ(
        distmat({"--metric", "similarity", "--top", "2", "--format", "csv", "-", "-"}, points).out,
        "row,neighbour,similarity\n0,1,0\n0,2,-1\n1,0,0\n1,2,0\n2,1,0\n2,0,-1\n");
    EXPECT_EQ(distmat({"--top", "1", "--format", "tsv", "-", "-"}, "0\n1\n").out,
              "row\tneighbour\tdistance\n0\t1\t1\n1\t0\t1\n");
    EXPECT_EQ(distmat({"--format", "npy", "-", "-"}, points).exit_code, 2);

    // An array has the same numbers, also in the mirrors of its blocks.
    const auto array = [&](std::vector<std::string> options) {
        options.insert(options.end(), {"--metric", "similarity", "-", dir_ / "o.npy"});
        EXPECT_EQ(distmat(options, points).exit_code, 0);
        return read_file(dir_ / "o.npy");
    };
    const std::string whole = array({});
    std::vector<float> numbers(9);
    std::memcpy(numbers.data(), whole.data() + whole.size() - 36, 36);
    EXPECT_EQ(numbers, (std::vector<float>{1, 0, -1, 0, 1, 0, -1, 0, 1}));
    EXPECT_EQ(array({"--block", "1"}), whole);
    EXPECT_NE(array({"--top", "1"}).find("'similarity', '<f4'"), std::string::npos);
}

TEST_F(Distmat, SaysThatANameIsNotThatOfItsForm) {
    const auto said = [&](std::vector<std::string> options, const std::string& name) {
        options.insert(options.end(), {"-", dir_ / name});
        const Finished done = distmat(options, "0 0\n3 4\n");
        EXPECT_EQ(done.exit_code, 0) << done.err;
        const std::string line = done.err.substr(0, done.err.find(';'));
        return line.substr(std::min(line.size(), line.rfind('/') + 1));
    };
    EXPECT_EQ(said({"--format", "text"}, "o.csv"),
              "o.csv: blanks stand between its values, not commas");
    EXPECT_EQ(said({}, "o.tsv"), "o.tsv: blanks stand between its values, not TABs");
    EXPECT_EQ(said({"--top", "1", "--format", "text"}, "o.csv"),
              "o.csv: TABs stand between its values, not commas");
    EXPECT_EQ(said({}, "o.csv").substr(0, 18), "o.csv: all distanc");
    EXPECT_EQ(said({"--format", "tsv"}, "o.tsv").substr(0, 18), "o.tsv: all distanc");
    EXPECT_EQ(said({"--top", "1"}, "o.tsv").substr(0, 18), "o.tsv: the 1 neare");
    EXPECT_EQ(said({}, "o.txt").substr(0, 18), "o.txt: all distanc");
}

TEST_F(Distmat, TakesTheMemberOfAnArchiveThatIsNamed) {
    write_file(dir_ / "in", zip_archive({{"notes", "none"}, {"points", "0 0\n3 4\n"}}));
    const Finished done = distmat({"--member", "points", dir_ / "in", "-"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, "0 25\n25 0\n");
    expect_input_refused(dir_ / "in",
                         "the zip archive holds 2 files; --member NAME takes one of them");

    write_file(dir_ / "in", "0 0\n3 4\n");
    const Finished refused = distmat({"--member", "points", dir_ / "in", "-"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(
        refused.err,
        "gloved-distmat: " + (dir_ / "in") +
            ": --member \"points\" is given, but this is not an archive; leave --member out\n");
    EXPECT_EQ(distmat({"--member", "", dir_ / "in", "-"}).exit_code, 2);
}

TEST_F(Distmat, ExampleOfItsHelpWorksAsItStandsThere) {
    const Finished help = distmat({"--help"});
    const std::size_t at = help.out.find("  printf ");
    ASSERT_NE(at, std::string::npos);
    const std::string folder = fs::path(program("gloved-distmat")).parent_path();
    const std::string line = help.out.substr(at, help.out.find('\n', at) - at);
    const Finished done = run({"/bin/sh", "-c", "PATH=\"" + folder + ":$PATH\"; " + line});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, "0 5 10\n5 0 5\n10 5 0\n");
}

TEST_F(Distmat, TextAndArraysOfEitherTypeAgreeWhateverTheBlocks) {
    constexpr std::size_t kRows = 150;
    constexpr std::size_t kDim = 20;
    std::mt19937 random(8);
    std::normal_distribution<float> normal;
    std::vector<float> values(kRows * kDim);
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::round(normal(random) * 1000);
        text += std::to_string(static_cast<int>(values[i])) + (i % kDim == kDim - 1 ? "\n" : " ");
    }
    write_file(dir_ / "m.txt", text);
    write_file(dir_ / "m.txt.gz", gzip(text));
    write_file(dir_ / "f4.npy", npy("<f4", "(150, 20)", bytes_of(values)));
    write_file(dir_ / "f8.npy", npy("<f8", "(150, 20)",
                                    bytes_of(std::vector<double>(values.begin(), values.end()))));
    write_file(dir_ / "f4.npy.gz", gzip(read_file(dir_ / "f4.npy")));

    const Finished printed = distmat({dir_ / "m.txt", "-"});
    ASSERT_EQ(printed.exit_code, 0) << printed.err;
    const auto expected = numbers(printed.out);
    ASSERT_EQ(expected.size(), kRows * kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
        for (std::size_t j = 0; j < kRows; ++j) {
            double truth = 0;
            for (std::size_t k = 0; k < kDim; ++k) {
                truth += std::pow(static_cast<double>(values[i * kDim + k]) -
                                      static_cast<double>(values[j * kDim + k]),
                                  2);
            }
            ASSERT_FALSE(!(std::abs(static_cast<double>(expected[i * kRows + j]) - truth) <=
                           24 * 0x1p-24 * truth));
        }
    }
    for (const std::string input : {"m.txt", "m.txt.gz", "f4.npy", "f8.npy", "f4.npy.gz"}) {
        for (const std::string block : {"7", "64", "1000"}) {
            const Finished done = distmat({"--block", block, dir_ / input, dir_ / "out.npy"});
            ASSERT_EQ(done.exit_code, 0) << done.err;
            EXPECT_EQ(done.out, "");
            const Array array = read_npy(dir_ / "out.npy");
            EXPECT_NE(
                array.header.find("'descr': '<f4', 'fortran_order': False, 'shape': (150, 150)"),
                std::string::npos);
            EXPECT_TRUE(values_of<float>(array.data) == expected)
                << input << ", blocks of " << block;
        }
        // By a pipe, where nothing can be mapped.
        const Finished piped =
            distmat({"--block", "40", "-", dir_ / "out"}, read_file(dir_ / input));
        ASSERT_EQ(piped.exit_code, 0) << piped.err;
        EXPECT_TRUE(read_file(dir_ / "out") == printed.out) << input;
    }
    ASSERT_EQ(
        distmat({"--engine", "cpu", "--threads", "3", dir_ / "f4.npy", dir_ / "out"}).exit_code, 0);
    EXPECT_TRUE(read_file(dir_ / "out") == printed.out);
    ASSERT_EQ(
        distmat({"--engine", "cpu", "--simd", "baseline", dir_ / "f4.npy", dir_ / "out"}).exit_code,
        0);
    EXPECT_TRUE(read_file(dir_ / "out") == printed.out);
}

TEST_F(Distmat, WritesTheNearestWithTiesByRow) {
    const std::string points = "0\n1\n2\n-1\n0\n";
    EXPECT_EQ(distmat({"--top", "2", "-", "-"}, points).out,
              "0\t4\t0\n0\t1\t1\n1\t0\t1\n1\t2\t1\n2\t1\t1\n2\t0\t4\n3\t0\t1\n3\t4\t1\n4\t0\t0\n4\t"
              "1\t1\n");
    // More than there are others: all of them.
    const Finished all = distmat({"--top", "99", "-", "-"}, "0\n3\n1\n");
    EXPECT_EQ(all.out, "0\t2\t1\n0\t1\t9\n1\t2\t4\n1\t0\t9\n2\t0\t1\n2\t1\t4\n");
    EXPECT_NE(all.err.find("the 2 nearest of 3 rows"), std::string::npos) << all.err;

    for (const std::string block : {"1", "2", "99"}) {
        ASSERT_EQ(
            distmat({"--top", "2", "--block", block, "-", dir_ / "top.npy"}, points).exit_code, 0);
        const Array array = read_npy(dir_ / "top.npy");
        EXPECT_NE(array.header.find("'descr': [('index', '<i8'), ('distance', '<f4')]"),
                  std::string::npos)
            << array.header;
        EXPECT_NE(array.header.find("'shape': (5, 2)"), std::string::npos);
        ASSERT_EQ(array.data.size(), 10U * 12);
        std::vector<std::int64_t> indices;
        std::vector<float> distances;
        for (std::size_t i = 0; i < 10; ++i) {
            indices.push_back(
                values_of<std::int64_t>(std::string_view(array.data).substr(12 * i, 8)).front());
            distances.push_back(
                values_of<float>(std::string_view(array.data).substr(12 * i + 8, 4)).front());
        }
        EXPECT_EQ(indices, (std::vector<std::int64_t>{4, 1, 0, 2, 1, 0, 0, 4, 0, 1}));
        EXPECT_EQ(distances, (std::vector<float>{0, 1, 1, 1, 1, 4, 1, 1, 0, 1}));
    }
}

TEST_F(Distmat, TakesTheWordsOfAModel) {
    ASSERT_EQ(run({program("gloved-convert"), source_path("data/glove.6B.100d.sample.txt.gz"),
                   dir_ / "model"})
                  .exit_code,
              0);
    write_file(dir_ / "words", "king\nqueen\n\nmessi\nbarca\nking\n");
    const Finished nearest = distmat(
        {"--model", dir_ / "model", "--metric", "cosine", "--top", "1", dir_ / "words", "-"});
    ASSERT_EQ(nearest.exit_code, 0) << nearest.err;
    std::vector<std::string> pairs;
    std::istringstream lines(nearest.out);
    for (std::string line; std::getline(lines, line);)
        pairs.push_back(line.substr(0, line.rfind('\t')));
    EXPECT_EQ(pairs, (std::vector<std::string>{"king\tking", "queen\tking", "messi\tbarca",
                                               "barca\tmessi", "king\tking"}));

    // Against the vectors that the model was made of.
    ASSERT_EQ(run({program("gloved-convert"), "--export", "glove", dir_ / "model", dir_ / "glove"})
                  .exit_code,
              0);
    std::vector<std::vector<double>> vectors(2);
    std::istringstream exported(read_file(dir_ / "glove"));
    for (std::string line; std::getline(exported, line);) {
        std::istringstream fields(line);
        std::string word;
        fields >> word;
        const int at = word == "king" ? 0 : word == "queen" ? 1 : -1;
        for (double value; at >= 0 && fields >> value;)
            vectors[static_cast<std::size_t>(at)].push_back(value);
    }
    ASSERT_EQ(vectors[0].size(), 100U);
    double truth = 0;
    for (std::size_t k = 0; k < 100; ++k) truth += std::pow(vectors[0][k] - vectors[1][k], 2);
    const Finished all = distmat({"--model", dir_ / "model", "-", "-"}, "king\nqueen\n");
    const auto found = numbers(all.out);
    ASSERT_EQ(found.size(), 4U) << all.err;
    EXPECT_FALSE(!(std::abs(static_cast<double>(found[1]) - truth) <= 1e-5 * truth))
        << found[1] << " for " << truth;

    const Finished unknown = distmat({"--model", dir_ / "model", dir_ / "words", dir_ / "out"});
    EXPECT_EQ(unknown.exit_code, 0) << unknown.err;
    const Finished missing =
        distmat({"--model", dir_ / "model", "-", dir_ / "none"}, "king\nqueeen\n");
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("-: line 2: \"queeen\" is not in the model"), std::string::npos)
        << missing.err;
    EXPECT_FALSE(fs::exists(dir_ / "none"));
    write_file(dir_ / "accents", "caf\xC3\xA9 1 2 3\nking 3 1 1\n");
    ASSERT_EQ(run({program("gloved-convert"), dir_ / "accents", dir_ / "other"}).exit_code, 0);
    const Finished apart =
        distmat({"--model", dir_ / "other", "-", dir_ / "none"}, "king\ncafe\xCC\x81\n");
    EXPECT_NE(apart.err.find("is not in the model " + (dir_ / "other") +
                             "; the same letters, composed (Unicode NFC), are: \"caf\xC3\xA9\"; "
                             "--unknown skip leaves it out"),
              std::string::npos)
        << apart.err;
    const Finished download = distmat({"--model", dir_ / "accents", dir_ / "words", "-"});
    EXPECT_EQ(download.exit_code, 1);
    EXPECT_NE(download.err.find("accents: cannot open the directory: Not a directory; it is a "
                                "file: gloved-convert makes a model of a download"),
              std::string::npos)
        << download.err;
    const Finished inside =
        distmat({"--model", dir_ / "model", dir_ / "words", dir_ / "model/out.npy"});
    EXPECT_EQ(inside.exit_code, 1);
    EXPECT_NE(inside.err.find("lies in a model's directory"), std::string::npos) << inside.err;
}

TEST_F(Distmat, KeepsThePlacesOfWordsThatItSkips) {
    write_file(dir_ / "text", "king 1 2 3\nqueen 3 1 1\n");
    ASSERT_EQ(run({program("gloved-convert"), dir_ / "text", dir_ / "model"}).exit_code, 0);
    const auto skip = [&](std::vector<std::string> options, const std::string& output) {
        options.insert(options.end(), {"--model", dir_ / "model", "--metric", "similarity",
                                       "--unknown", "skip", "--case", "ignore", "-", output});
        return distmat(options, "qwfp\nKING\nqwf,p\nking\n");
    };
    EXPECT_EQ(skip({}, "-").out, "nan nan nan nan\nnan 1 nan 1\nnan nan nan nan\nnan 1 nan 1\n");
    const Finished table = skip({"--format", "csv"}, "-");
    EXPECT_EQ(table.out,
              "word,qwfp,KING,\"qwf,p\",king\nqwfp,,,,\nKING,,1,,1\n\"qwf,p\",,,,\nking,,1,,1\n");
    EXPECT_NE(table.err.find("-: 2 words are not in the model and without numbers: \"qwfp\" (line "
                             "1), \"qwf,p\" (line 3)\n"),
              std::string::npos)
        << table.err;
    EXPECT_EQ(skip({"--top", "3"}, "-").out, "KING\tking\t1\nking\tKING\t1\n");
    EXPECT_EQ(skip({"--top", "3", "--format", "csv"}, "-").out,
              "word,neighbour,similarity\nqwfp,,\nKING,king,1\n\"qwf,p\",,\nking,KING,1\n");
    const auto floats = [&](const std::vector<std::string>& options) {
        EXPECT_EQ(skip(options, dir_ / "o.npy").exit_code, 0);
        const std::string array = read_file(dir_ / "o.npy");
        std::vector<float> values(16);
        std::memcpy(values.data(), array.data() + array.size() - 64, 64);
        for (float& value : values) value = std::isnan(value) ? 9 : value;
        return values;
    };
    const std::vector<float> expected = {9, 9, 9, 9, 9, 1, 9, 1, 9, 9, 9, 9, 9, 1, 9, 1};
    EXPECT_EQ(floats({}), expected);
    EXPECT_EQ(floats({"--block", "1"}), expected);
    ASSERT_EQ(skip({"--top", "1"}, dir_ / "o.npy").exit_code, 0);
    const std::string nearest_array = read_file(dir_ / "o.npy");
    std::int64_t first = 0;
    std::memcpy(&first, nearest_array.data() + nearest_array.size() - std::size_t{4} * 12, 8);
    EXPECT_EQ(first, -1);
    EXPECT_EQ(distmat({"--unknown", "skip", "-", "-"}, "1\n").exit_code, 2);
}

TEST_F(Distmat, RefusesMalformedTextWithItsLine) {
    expect_refused("", "is empty; a matrix has at least one row");
    expect_refused("\n \n", "holds no numbers");
    expect_refused("1 2\n3\n",
                   "line 2 has 1 number, and line 1 has 2; a matrix has the same in every row");
    expect_refused("\n1\n2 3\n", "line 3 has 2 numbers, and line 2 has 1;");
    expect_refused("1 2\n\nthree 4\n", "line 3: \"three\" is not a number; ");
    expect_refused("king\nqueen\n", "or name the --model of words");
    expect_refused("1 2\n3 nan\n",
                   "line 2: \"nan\" is not a number; distances need numbers that are finite");
    expect_refused("1,2\n3,4\n",
                   "line 1: \"1,2\" is not a number; numbers are separated by blanks or tabs");
    expect_refused("1 1e400\n", "line 1: \"1e400\" is beyond float64");
    expect_refused("1 2\n-1e30 2\n",
                   "its numbers are so large that a squared distance may exceed float32");
    expect_refused(gzip("1 2\n3 4\n").substr(0, 20), "the gzip data ends too early");
    expect_input_refused(dir_ / "missing", "cannot open");
    // A row of zeros has no cosine, and the line says which.
    const Finished zero = distmat({"--metric", "cosine", "-", "-"}, "1 2\n\n0 0\n");
    EXPECT_EQ(zero.exit_code, 1);
    EXPECT_NE(zero.err.find("-: line 3: all its numbers are 0"), std::string::npos) << zero.err;
}

TEST_F(Distmat, RefusesArraysThatAreNoMatrixOfNumbersWithTheRemedy) {
    const std::string four = bytes_of(std::vector<float>{1, 2, 3, 4});
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    struct Case {
        std::string file;
        std::string says;
    };
    for (const auto& [file, says] :
         {Case{npy("<f4", "(2, 2)", four.substr(0, 15)),
               "ends at byte 143, and an array of shape (2, 2) ends at byte 144"},
          Case{npy("<f4", "(2, 2)", four + "x"),
               "continues after its array, which ends at byte 144"},
          Case{npy("<f4", "(2, 2)", four, true), "numpy.ascontiguousarray(array)"},
          Case{npy(">f4", "(2, 2)", four), "big-endian"},
          Case{npy("<i4", "(2, 2)", four),
               "its numbers are \"<i4\", not float32 or float64; write it again with "
               "numpy.save(path, array.astype('float32'))"},
          Case{npy("<f2", "(2, 2)", four.substr(0, 8)), "array.astype('float32')"},
          Case{npy("<f4", "(4,)", four),
               "its shape is (4,), and a matrix has rows and columns; write it again with "
               "numpy.save(path, array.reshape(-1, 1))"},
          Case{npy("<f4", "(1, 2, 2)", four),
               "its shape is (1, 2, 2), and a matrix has rows and columns; write it again with "
               "numpy.save(path, array.reshape(len(array), -1))"},
          Case{npy("<f4", "(0, 3)", ""),
               "its shape is (0, 3): a matrix has at least one row and one column"},
          Case{npy("<f4", "(3, 0)", ""),
               "its shape is (3, 0): a matrix has at least one row and one column"},
          Case{npy("<f4", "(2, 2)", bytes_of(std::vector<float>{1, 2, 3, kNan})),
               "row 1 (counted from 0): its number in column 1 (counted from 0) is nan"},
          Case{npy("<f4", "(4611686018427387904, 1)", four), "no array can have as many elements"},
          Case{npy("<f4", "(1152921504606846976, 1)", four), "ends at byte 4611686018427388032"},
          Case{npy("<f8", "(1, 3)", four),
               "ends at byte 144, and an array of shape (1, 3) ends at byte 152"},
          Case{npy("<f4", "(2, 2)", four).substr(0, 60), "it ends within its header"}}) {
        expect_refused(file, says);
        expect_refused(gzip(file), says);
    }
}

TEST_F(Distmat, LeavesWhatWasThereWhenItFails) {
    write_file(dir_ / "out.npy", "precious");
    write_file(dir_ / "in", "1 2\n3\n");
    EXPECT_EQ(distmat({dir_ / "in", dir_ / "out.npy"}).exit_code, 1);
    EXPECT_EQ(read_file(dir_ / "out.npy"), "precious");
    write_file(dir_ / "in", "1 2\n3 4\n");
    EXPECT_EQ(distmat({dir_ / "in", dir_ / "out.npy"}).exit_code, 0);
    EXPECT_EQ(read_file(dir_ / "out.npy").size(), 128U + 16);
    // A file may take the place of its own input.
    write_file(dir_ / "m.npy", npy("<f4", "(2, 2)", bytes_of(std::vector<float>{1, 2, 3, 4})));
    EXPECT_EQ(distmat({dir_ / "m.npy", dir_ / "m.npy"}).exit_code, 0);
    EXPECT_EQ(values_of<float>(read_npy(dir_ / "m.npy").data), (std::vector<float>{0, 8, 8, 0}));
}

TEST_F(Distmat, SaysHowLargeAResultIsThatTheDiskHasNoRoomFor) {
    // 100,000 rows of one number, in a file of holes: 40 GB of distances, more than this limit on
    // the size of files.
    write_file(dir_ / "in", npy("<f4", "(100000, 1)", ""));
    ASSERT_EQ(::truncate((dir_ / "in").c_str(), 128 + 400'000), 0);
    const Finished limited = run({"/bin/sh", "-c", "ulimit -f 2048; exec \"$0\" \"$1\" \"$2\"",
                                  program("gloved-distmat"), dir_ / "in", dir_ / "out.npy"});
    EXPECT_EQ(limited.exit_code, 1);
    EXPECT_NE(limited.err.find("it would take 40.000 GB"), std::string::npos) << limited.err;
    // More than any file: 16 EB.
    write_file(dir_ / "in", npy("<f4", "(2000000000, 1)", ""));
    if (::truncate((dir_ / "in").c_str(), 128 + off_t{8'000'000'000}) == 0) {
        const Finished vast = distmat({dir_ / "in", dir_ / "out.npy"});
        EXPECT_EQ(vast.exit_code, 1);
        EXPECT_NE(vast.err.find("all distances of 2000000000 rows would take 16.0 EB"),
                  std::string::npos)
            << vast.err;
    }
    EXPECT_EQ(fs::exists(dir_ / "out.npy"), false);
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
}

TEST_F(Distmat, IsInterruptedWithoutATrace) {
    write_file(dir_ / "in", npy("<f4", "(30000, 300)", ""));
    ASSERT_EQ(::truncate((dir_ / "in").c_str(), 128 + 36'000'000), 0);
    Background running({program("gloved-distmat"), "--engine", "cpu", dir_ / "in", dir_ / "out"});
    ::usleep(300'000);
    running.signal(SIGTERM);
    const Finished ended = running.wait(std::chrono::seconds(30));
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_NE(running.output().find("interrupted; " + dir_ / "out" + " is unchanged"),
              std::string::npos)
        << running.output();
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
}

TEST_F(Distmat, TellsWhereTheOldEnginesAre) {
    for (const std::string engine : {"sequential", "global", "shared8", "shared16", "shared32"}) {
        const Finished refused = distmat({"--engine", engine, "/there/is/none", dir_ / "out"});
        EXPECT_EQ(refused.exit_code, 2);
        EXPECT_EQ(refused.err,
                  "gloved-distmat: --engine takes auto, cuda or cpu, not \"" + engine +
                      "\"; gloved-bench museum distances has the kernels of that name; see "
                      "gloved-distmat --help\n");
    }
    EXPECT_EQ(distmat({"--engine", "abacus", "-", "-"}).err,
              "gloved-distmat: --engine takes auto, cuda or cpu, not \"abacus\"; see "
              "gloved-distmat --help\n");
}

TEST_F(Distmat, ChecksItsCommandLine) {
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                  {"-"},
                                                  {"--metric", "manhattan", "-", "-"},
                                                  {"--engine", "abacus", "-", "-"},
                                                  {"--top", "0", "-", "-"},
                                                  {"--top", "-1", "-", "-"},
                                                  {"--threads", "0", "-", "-"},
                                                  {"--threads", "257", "-", "-"},
                                                  {"--device", "-1", "-", "-"},
                                                  {"--met", "cosine", "-", "-"},
                                                  {"-", "-", "-"}}) {
        const Finished refused = distmat(wrong, "1\n");
        EXPECT_EQ(refused.exit_code, 2) << refused.err;
        EXPECT_NE(refused.err.find("; see gloved-distmat --help"), std::string::npos)
            << refused.err;
        EXPECT_EQ(refused.out, "");
    }
    const Finished simd = distmat({"--engine", "cpu", "--simd", "mmx", "-", "-"}, "1\n");
    EXPECT_EQ(simd.exit_code, 1);
    EXPECT_NE(simd.err.find("no instruction set 'mmx'"), std::string::npos);
    EXPECT_EQ(distmat({"--version"}).out.rfind("gloved-distmat ", 0), 0U);
    const Finished times = distmat({"--times", "-", "-"}, "1\n");
    EXPECT_NE(times.err.find("reading "), std::string::npos);
    EXPECT_NE(times.err.find(" ms, computing "), std::string::npos) << times.err;
}

}  // namespace
}  // namespace gloved::tests
