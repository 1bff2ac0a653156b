// The text of matrices: what is read however it is cut into parts, and what is said of text that is
// wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "kernels/reduce/host_reducers.hpp"
#include "kernels/reduce/reducer.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/matmin/result_text.hpp"
#include "tools/matmin/text_reader.hpp"
#include "tools/source/input.hpp"

namespace gloved::matmin {
namespace {

struct Outcome {
    std::string error;  ///< without the path before it
    std::uint64_t count = 0;
    Shape shape;
    std::string minimum;  ///< as matrix_text writes it
    std::string maximum;

    bool operator==(const Outcome& other) const {
        return error == other.error && count == other.count && minimum == other.minimum &&
               maximum == other.maximum;
    }
};

/// The lines before the first row of one matrix.
const std::string kOne = "1\n***\n";

class MatminText : public testing::Test {
  protected:
    template <class T = double>
    Outcome read(const std::string& text, const ReadOptions& options, bool fed = false) {
        const std::string path = dir_ / "text";
        if (text != written_) tests::write_file(path, written_ = text);
        auto input = source::Input::open(path, go_on_);
        EXPECT_TRUE(input);
        std::unique_ptr<kernels::reduce::Reducer<T>> reducer;
        const Begin<T> begin = [&](std::uint64_t,
                                   Shape shape) -> Result<kernels::reduce::Reducer<T>*> {
            if (!fed) return nullptr;
            kernels::reduce::ReducerOptions reducer_options;
            reducer_options.width = shape.numbers();
            reducer_options.threads = 1;
            reducer = *kernels::reduce::make_cpu_reducer<T>(reducer_options);
            return reducer.get();
        };
        auto reading = read_text<T>(*input, options, begin);
        Outcome outcome;
        if (!reading) {
            EXPECT_EQ(reading.error().code, ErrorCode::bad_source);
            EXPECT_TRUE(reading.error().message.starts_with(path + ": "))
                << reading.error().message;
            outcome.error = reading.error().message.substr(
                std::min(path.size() + 2, reading.error().message.size()));
            return outcome;
        }
        EXPECT_EQ(reading->bytes, text.size() + static_cast<std::size_t>(!text.ends_with('\n')));
        outcome.count = reading->count;
        outcome.shape = reading->shape;
        const auto range = fed ? *reducer->finish() : reading->range;
        outcome.minimum = matrix_text(range.minimum(), reading->shape);
        outcome.maximum = matrix_text(range.maximum(), reading->shape);
        return outcome;
    }

    /// The same for every size of blocks, number of threads and way to reduce.
    template <class T = double>
    Outcome read_all_ways(const std::string& text) {
        const Outcome first = read<T>(text, {});
        std::vector<std::size_t> sizes;
        for (std::size_t bytes = 1; bytes <= text.size() + 1; ++bytes) sizes.push_back(bytes);
        for (const std::size_t bytes : sizes) {
            ReadOptions options;
            options.block_bytes = bytes;
            EXPECT_EQ(read<T>(text, options, bytes % 2 == 0), first) << "blocks of " << bytes;
        }
        ReadOptions options;
        options.threads = 2;
        options.block_bytes = 5;
        EXPECT_EQ(read<T>(text, options, false), first);
        EXPECT_EQ(read<T>(text, options, true), first);
        return first;
    }

    /// `cases`: texts and the errors that they give.
    void expect_errors(const std::vector<std::pair<std::string, std::string>>& cases) {
        for (const auto& [text, error] : cases) {
            SCOPED_TRACE(text);
            EXPECT_EQ(read_all_ways(text).error, error);
        }
    }

    const tests::TempDir dir_;
    std::string written_ = "nothing";
    const std::atomic<bool> go_on_{false};
};

TEST_F(MatminText, TakesTheSmallestAndTheLargestOfEachElement) {
    const Outcome outcome =
        read_all_ways("3\n***\n1 2 3\n4 5 6\n***\n-1 9 3\n4 5 -7\n***\n0.5 2 1e2\n40 5 6\n");
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.count, 3U);
    EXPECT_EQ(outcome.shape.rows, 2U);
    EXPECT_EQ(outcome.shape.columns, 3U);
    EXPECT_EQ(outcome.minimum, "-1 2 3\n4 5 -7\n");
    EXPECT_EQ(outcome.maximum, "1 9 100\n40 5 6\n");
}

TEST_F(MatminText, TakesEveryFormThatIsAllowed) {
    const struct {
        const char* what;
        std::string text;
        const char* minimum;
    } cases[] = {
        {"no separator first, none last", "2\n1 2\n***\n0 3\n", "0 2\n"},
        {"separators first and last", "2\n***\n1 2\n***\n0 3\n***\n", "0 2\n"},
        {"no newline at the end", "2\n***\n1 2\n***\n0 3", "0 2\n"},
        {"a separator without newline at the end", "2\n***\n1 2\n***\n0 3\n***", "0 2\n"},
        {"blank lines anywhere", "\n \n2\n\n***\n\n1 2\n\t\n***\n\n0 3\n\n***\n\n \n", "0 2\n"},
        {"blank lines within a matrix", "1\n1 2\n\n3 4\n", "1 2\n3 4\n"},
        {"CR LF", "2\r\n***\r\n1 2\r\n***\r\n0 3\r\n***\r\n", "0 2\n"},
        {"blanks and tabs", "  2 \n *** \n\t1 \t 2  \n***\t\n 0\t3\n", "0 2\n"},
        {"a byte order mark",
         "\xEF\xBB\xBF"
         "1\n7 8\n",
         "7 8\n"},
        {"one number", "1\n7", "7\n"},
        {"one column", "2\n7\n8\n***\n6\n9\n", "6\n8\n"},
        {"signs, points and exponents", "1\n+1 -2 .5 5. -0.25 1e3 1E-2 -1e+1\n",
         "1 -2 0.5 5 -0.25 1000 0.01 -10\n"},
        {"zeros of either sign", "2\n0 -0 0.0\n***\n-0 0 0\n", "-0 -0 0\n"},
        {"tiny numbers", "1\n1e-400 -1e-400 5e-324\n", "0 -0 5e-324\n"},
        {"long numbers", "1\n0.1000000000000000055511151231257827 12345678901234567890\n",
         "0.1 12345678901234567168\n"},
        {"a count with zeros before it", "002\n1\n***\n2\n", "1\n"},
    };
    for (const auto& [what, text, minimum] : cases) {
        SCOPED_TRACE(what);
        const Outcome outcome = read_all_ways(text);
        EXPECT_EQ(outcome.error, "");
        EXPECT_EQ(outcome.minimum, minimum);
    }
    EXPECT_EQ(read_all_ways("2\n0 -0 0.0\n***\n-0 0 -0\n").maximum, "0 0 0\n");
}

TEST_F(MatminText, ReadsEachTypeAsItself) {
    EXPECT_EQ(read_all_ways<float>("1\n0.1 16777217 -3\n").minimum, "0.1 16777216 -3\n");
    EXPECT_EQ(read_all_ways<std::int32_t>("2\n2147483647 -2147483648\n***\n+5 -0\n").minimum,
              "5 -2147483648\n");
    EXPECT_EQ(read_all_ways<std::int32_t>("2\n2147483647 -2147483648\n***\n+5 -0\n").maximum,
              "2147483647 0\n");
}

TEST_F(MatminText, SaysWhatIsWrongWithTheCountAndTheRemedy) {
    expect_errors({
        {"", "is empty; the first line holds the number of matrices, and they follow"},
        {" \n\n", "is empty; the first line holds the number of matrices, and they follow"},
        {"***\n1 2\n",
         "line 1: the count is missing before ***; put the number of matrices on a line of its own "
         "before them"},
        {"1 2\n3 4\n",
         "line 1: \"1 2\" is not a count of matrices; put the number of matrices on a line of its "
         "own before them"},
        {"\nmany\n1\n",
         "line 2: \"many\" is not a count of matrices; put the number of matrices on a line of its "
         "own before them"},
        {"-1\n1\n",
         "line 1: \"-1\" is not a count of matrices; put the number of matrices on a line of its "
         "own before them"},
        {"1.5\n1\n",
         "line 1: \"1.5\" is not a count of matrices; put the number of matrices on a line of its "
         "own before them"},
        {"0\n",
         "line 1: the count is 0, and of no matrices there is no minimum; there must be one at "
         "least"},
        {"18446744073709551616\n1\n",
         "line 1: \"18446744073709551616\" matrices are too many; put the number that follows "
         "there"},
        {"18446744073709551615\n1 2\n",
         "line 1: 18446744073709551615 matrices of 1 × 2 are too many; correct the count"},
        {"3\n", "line 1: the count is 3, and no matrix follows; the text is not complete"},
        {"3\n***\n\n", "line 1: the count is 3, and no matrix follows; the text is not complete"},
        {"3\n1 2\n***\n3 4\n\n",
         "line 1: the count is 3, but 2 are there, up to line 5; correct the count, or complete "
         "the text"},
        {"2\n1 2\n",
         "line 1: the count is 2, but one matrix of 1 × 2 is there, up to line 2; correct the "
         "count, or complete the "
         "text"},
        {"2\n1 2\n3 4\n\n5 6\n7 8\n",
         "line 1: the count is 2, but one matrix of 4 × 2 is there, up to line 6; put lines of *** "
         "between matrices"},
        {"2\n1\n***\n2\n***\n\n3\n***\n4\n",
         "line 7: matrix 3 begins here, but the count on line 1 is 2, and there are 4 in all; "
         "correct the count, or remove what is too much"},
    });
}

TEST_F(MatminText, SaysWhatIsWrongWithTheRowsAndTheRemedy) {
    expect_errors({
        {"1\n***\n***\n1\n",
         "line 3: nothing stands between this line of *** and the one before; remove one of them"},
        {"2\n1\n***\n\n***\n2\n",
         "line 5: nothing stands between this line of *** and the one before; remove one of them"},
        {"1\n1\n***\n***\n",
         "line 4: nothing stands between this line of *** and the one before; remove one of them"},
        {kOne + "1 2 3\n4 5\n",
         "line 4: 2 numbers in this line, 3 in the first line of the first matrix; all have as "
         "many"},
        {kOne + "1 2\n4\n",
         "line 4: 1 number in this line, 2 in the first line of the first matrix; all have as "
         "many"},
        {kOne + "1\n4 5\n",
         "line 4: 2 numbers in this line, 1 in the first line of the first matrix; all have as "
         "many"},
        {"2\n1 2\n***\n1 2 3 \r\n",
         "line 4: 3 numbers in this line, 2 in the first line of the first matrix; all have as "
         "many"},
        {"2\n1\n2\n***\n3\n***\n",
         "line 6: the matrix ends after 1 row, the first one has 2; complete it, or remove it and "
         "correct the count"},
        {"2\n1\n2\n***\n3\n",
         "line 5: the text ends within a matrix: 1 of 2 rows are there; complete it, or remove it "
         "and correct the count"},
        {"3\n1\n2\n***\n3\n4\n\n5\n6\n",
         "line 8: row 3 of a matrix, the first one has 2; a line of *** is missing before it, or "
         "the row is too much"},
    });
}

TEST_F(MatminText, SaysWhichWordIsWrongAndTheRemedy) {
    expect_errors({
        {kOne + "1 two\n", "line 3: \"two\" is not a number; put one in its place"},
        {kOne + "1 2x\n", "line 3: \"2x\" is not a number; put one in its place"},
        {kOne + "1 0x10\n", "line 3: \"0x10\" is not a number; put one in its place"},
        {kOne + "1 - 2\n", "line 3: \"-\" is not a number; put one in its place"},
        {kOne + "1\xFF\n", "line 3: \"1\\xFF\" is not a number; put one in its place"},
        {kOne + std::string("1 \0 2\n", 6),
         "line 3: \"\\x00\" is not a number; put one in its place"},
        {kOne + "1\r2\n", "line 3: \"1\\x0D2\" is not a number; put one in its place"},
        {kOne + "1 2\r\r\n", "line 3: \"2\\x0D\" is not a number; put one in its place"},
        {kOne + "1,2\n",
         "line 3: \"1,2\" is not a number; numbers are separated by blanks and have a decimal "
         "point: replace the comma"},
        {kOne + "1 nan\n",
         "line 3: \"nan\" cannot be compared with numbers; put a number in its place"},
        {kOne + "1 -Inf\n",
         "line 3: \"-Inf\" cannot be compared with numbers; put a number in its place"},
        {kOne + "1 infinity\n",
         "line 3: \"infinity\" cannot be compared with numbers; put a number in its place"},
        {kOne + "1 1e309\n",
         "line 3: \"1e309\" is too large for float64; put a smaller one in its place"},
        {kOne + "1 2 ***\n",
         "line 3: \"***\" is not a number; matrices are separated by a line of *** alone"},
        {kOne + "1\n****\n2\n",
         "line 4: \"****\" is not a number; matrices are separated by a line of *** alone"},
        // The first fault counts, and numbers of matrices are compared at the end.
        {"1\n1\n***\n2\n***\nx\n", "line 6: \"x\" is not a number; put one in its place"},
        {"1\n1 2\n1 x 3\n", "line 3: \"x\" is not a number; put one in its place"},
    });
    EXPECT_EQ(read_all_ways<std::int32_t>("1\n1 2.5\n").error,
              "line 2: \"2.5\" is not of type int32; give --type float64");
    EXPECT_EQ(read_all_ways<std::int32_t>("1\n2147483648\n").error,
              "line 2: \"2147483648\" is too large for int32; give --type float64");
    EXPECT_EQ(read_all_ways<std::int32_t>("1\n1 1e3\n").error,
              "line 2: \"1e3\" is not of type int32; give --type float64");
    EXPECT_EQ(read_all_ways<float>("1\n1 1e39\n").error,
              "line 2: \"1e39\" is too large for float32; give --type float64");
}

/// So many matrices that each thread reduces several times, with the extremes at known places.
TEST_F(MatminText, ReducesManyMatricesOnTheWay) {
    std::string text = "20000\n";
    for (int matrix = 0; matrix < 20'000; ++matrix) {
        text += fmt::format("***\n{} {}\n{} {}\n", matrix, -matrix, matrix == 17'000 ? -5 : 3,
                            matrix % 7);
    }
    for (const std::size_t threads : {0U, 3U}) {
        for (const bool fed : {false, true}) {
            ReadOptions options;
            options.threads = threads;
            options.block_bytes = 30'000;
            const Outcome outcome = read(text, options, fed);
            EXPECT_EQ(outcome.minimum, "0 -19999\n-5 0\n");
            EXPECT_EQ(outcome.maximum, "19999 0\n3 6\n");
        }
    }
}

TEST_F(MatminText, BoundsWhatOneMatrixMayTake) {
    ReadOptions options;
    options.block_bytes = 1 << 16;
    options.matrix_bytes = 1 << 20;
    std::string rows;
    while (rows.size() < 3 << 20) rows += "1 2 3 4 5 6 7 8\n";
    for (const std::string& before : {std::string(), std::string("1 2 3 4 5 6 7 8\n***\n")}) {
        EXPECT_EQ(
            read("2\n" + before + rows, options).error,
            "a matrix has more than 1 MiB of text; lines of *** are missing, or it is too large");
    }
    EXPECT_EQ(read("1\n" + rows.substr(0, 1 << 19), options).error, "");
}

}  // namespace
}  // namespace gloved::matmin
