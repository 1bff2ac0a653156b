// NumPy's arrays of matrices: what is read, and what is said of those that are wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/npy.hpp"
#include "common/result.hpp"
#include "kernels/reduce/reducer.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/matmin/matrices.hpp"
#include "tools/matmin/result_text.hpp"
#include "tools/matmin/source.hpp"

namespace gloved::matmin {
namespace {

template <class T>
std::string array(std::string_view descr, std::vector<std::size_t> shape,
                  const std::vector<T>& numbers) {
    std::string bytes = npy::make_header(descr, shape);
    for (const T& number : numbers)
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    return bytes;
}

class MatminNpy : public testing::Test {
  protected:
    /// «minimum***maximum», or the message without the path before it.
    template <class T>
    std::string read(const std::string& bytes, std::size_t block_bytes = 1 << 20,
                     std::size_t threads = 2) {
        const std::string path = dir_ / "array.npy";
        tests::write_file(path, bytes);
        auto source = Source::open(path, go_on_);
        if (!source) return source.error().message.substr(path.size() + 2);
        ReadOptions options;
        options.block_bytes = block_bytes;
        options.threads = threads;
        const auto reading = source->read<T>(options, [](std::uint64_t, Shape) {
            return Result<kernels::reduce::Reducer<T>*>(nullptr);
        });
        if (!reading) return reading.error().message.substr(path.size() + 2);
        EXPECT_EQ(reading->bytes, bytes.size());
        return matrix_text(reading->range.minimum(), reading->shape) + "***\n" +
               matrix_text(reading->range.maximum(), reading->shape);
    }

    const tests::TempDir dir_;
    const std::atomic<bool> go_on_{false};
};

TEST_F(MatminNpy, TakesEachTypeAndWhatFloat64HoldsExactly) {
    const std::string expected = "1 -2 3\n4 5 6\n***\n7 2 3\n4 50 6\n";
    const std::vector<double> numbers = {1, 2, 3, 4, 5, 6, 7, -2, 3, 4, 50, 6};
    const std::string float64 = array<double>("<f8", {2, 2, 3}, numbers);
    const std::string float32 = array<float>("<f4", {2, 2, 3}, {numbers.begin(), numbers.end()});
    std::vector<std::int32_t> integers;
    for (const double number : numbers) integers.push_back(static_cast<std::int32_t>(number));
    const std::string int32 = array<std::int32_t>("<i4", {2, 2, 3}, integers);
    for (const std::size_t block_bytes : {1U, 48U, 1U << 20}) {
        for (const std::string& bytes : {float64, float32, int32})
            EXPECT_EQ(read<double>(bytes, block_bytes), expected);
        EXPECT_EQ(read<float>(float32, block_bytes), expected);
        EXPECT_EQ(read<std::int32_t>(int32, block_bytes), expected);
    }
    EXPECT_EQ(read<float>(float64),
              "its numbers are float64, which --type float32 may not hold exactly; leave --type "
              "out, give --type "
              "float64, or numpy: "
              "numpy.save(path, array.astype(numpy.float32))");
    EXPECT_NE(read<float>(int32).find("its numbers are int32, which --type float32"),
              std::string::npos);
    EXPECT_NE(read<std::int32_t>(float32).find("astype(numpy.int32)"), std::string::npos);
}

TEST_F(MatminNpy, TakesInfinitiesAndManyMatrices) {
    std::vector<double> numbers(50'000 * 4, 1.5);
    numbers[4 * 49'999 + 2] = -std::numeric_limits<double>::infinity();
    numbers[4 * 30'000 + 1] = 9;
    EXPECT_EQ(read<double>(array<double>("<f8", {50'000, 2, 2}, numbers)),
              "1.5 1.5\n-inf 1.5\n***\n1.5 9\n1.5 1.5\n");
}

TEST_F(MatminNpy, SaysWhichNumberIsNaN) {
    for (const std::size_t at : {0U, 7U, 59'999U}) {
        std::vector<float> numbers(60'000, 1);
        numbers[at] = std::numeric_limits<float>::quiet_NaN();
        const std::string expected = fmt::format(
            "array[{}, {}, {}] is NaN, which cannot be compared with numbers; "
            "numpy.argwhere(numpy.isnan(array)) finds "
            "all",
            at / 6, at % 6 / 3, at % 3);
        const std::string bytes = array<float>("<f4", {10'000, 2, 3}, numbers);
        EXPECT_EQ(read<float>(bytes), expected);
        EXPECT_EQ(read<double>(bytes, 100), expected);
    }
}

TEST_F(MatminNpy, SaysWhatIsWrongWithTheArray) {
    const std::vector<double> six(6, 1.0);
    EXPECT_EQ(read<double>(array<double>("<f8", {6}, six)),
              "its array has the shape (6,), and (matrices, rows, columns) is needed; numpy: "
              "numpy.save(path, "
              "array.reshape(-1, ROWS, COLUMNS))");
    EXPECT_EQ(read<double>(array<double>("<f8", {2, 3}, six)),
              "its array has the shape (2, 3), and (matrices, rows, columns) is needed; numpy: "
              "numpy.save(path, "
              "array.reshape(-1, ROWS, 3), "
              "or array[None] if it is one matrix)");
    EXPECT_NE(read<double>(array<double>("<f8", {1, 1, 2, 3}, six))
                  .find("its array has the shape (1, 1, 2, 3), and"),
              std::string::npos);
    EXPECT_NE(read<double>(array<double>("<f8", {0, 2, 3}, {})).find("there must be one at least"),
              std::string::npos);
    EXPECT_EQ(read<double>(array<double>("<f8", {2, 0, 3}, {})),
              "its array has the shape (2, 0, 3), so its matrices have no numbers");
    EXPECT_NE(read<double>(array<double>("<i8", {1, 2, 3}, six))
                  .find("its numbers are \"<i8\", and float64"),
              std::string::npos);
    EXPECT_NE(read<double>(array<double>(">f8", {1, 2, 3}, six)).find("big-endian"),
              std::string::npos);
    std::string fortran = array<double>("<f8", {1, 2, 3}, six);
    fortran.replace(fortran.find("False, "), 7, "True,  ");
    EXPECT_NE(read<double>(fortran).find("Fortran order"), std::string::npos);
}

TEST_F(MatminNpy, SaysThatBytesAreMissingOrTooMany) {
    const std::string whole = array<double>("<f8", {3, 1, 2}, {1, 2, 3, 4, 5, 6});
    for (std::size_t bytes = 8; bytes < whole.size(); ++bytes) {
        for (const std::size_t block_bytes : {1U, 1U << 20}) {
            const std::string error = read<double>(whole.substr(0, bytes), block_bytes);
            if (bytes < whole.size() - 48) {
                EXPECT_NE(error.find("it ends within its header"), std::string::npos)
                    << bytes << ": " << error;
            } else {
                EXPECT_EQ(error, fmt::format("is cut short: {} bytes of numbers are there, and its "
                                             "header says 48; copy or write it again",
                                             bytes + 48 - whole.size()));
            }
        }
    }
    EXPECT_EQ(
        read<double>(whole + "x"),
        "more bytes follow the 48 of numbers that its header says; write it again with numpy.save");
    // The first fault counts, however the array is cut into blocks.
    const std::string nan = array<double>("<f8", {3, 1, 2}, {1, 2, std::nan(""), 4, 5, 6});
    for (const std::size_t block_bytes : {1U, 1U << 20}) {
        EXPECT_TRUE(read<double>(nan.substr(0, nan.size() - 1), block_bytes)
                        .starts_with("array[1, 0, 0] is NaN"));
    }
    // Beyond what was read to see the header.
    const std::vector<double> many(30'000, 1.0);
    const std::string large = array<double>("<f8", {10'000, 1, 3}, many);
    EXPECT_EQ(read<double>(large + "x"),
              "more bytes follow the 240000 of numbers that its header says; write it again with "
              "numpy.save");
    EXPECT_NE(read<double>(large.substr(0, large.size() - 1)).find("is cut short: 239999 bytes"),
              std::string::npos);
}

}  // namespace
}  // namespace gloved::matmin
