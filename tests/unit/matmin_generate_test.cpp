// Whether the minimum that comes with generated matrices is that of the text, by another way to
// read it.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <algorithm>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "common/files.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/matmin/generate.hpp"

namespace gloved::matmin {
namespace {

TEST(MatminGenerate, KnowsTheExtremesOfItsTextWhateverTheThreads) {
    const tests::TempDir dir;
    for (const Numbers numbers : {Numbers::integers, Numbers::decimals}) {
        std::string first_text;
        for (const std::size_t threads : {0U, 3U}) {
            GenerateOptions options;
            options.count = 20'000;  // of 8 numbers: several blocks
            options.rows = 2;
            options.columns = 4;
            options.numbers = numbers;
            options.threads = threads;
            const std::string path = dir / "matrices";
            const UniqueFd file(
                ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
            const auto generated = generate(options, file.get(), path);
            ASSERT_TRUE(generated);
            const std::string text = tests::read_file(path);
            EXPECT_EQ(generated->bytes, text.size());
            if (threads == 0) first_text = text;
            EXPECT_EQ(text, first_text);

            std::istringstream lines(text);
            std::string word;
            lines >> word;
            EXPECT_EQ(word, "20000");
            std::vector<double> minimum(8, std::numeric_limits<double>::infinity());
            std::vector<double> maximum(8, -std::numeric_limits<double>::infinity());
            std::size_t read = 0;
            while (lines >> word) {
                if (word == "***") continue;
                const double number = std::stod(word);
                minimum[read % 8] = std::min(minimum[read % 8], number);
                maximum[read % 8] = std::max(maximum[read % 8], number);
                ++read;
            }
            EXPECT_EQ(read, 20'000U * 8);
            EXPECT_EQ(minimum, generated->minimum);
            EXPECT_EQ(maximum, generated->maximum);
        }
    }
}

}  // namespace
}  // namespace gloved::matmin
