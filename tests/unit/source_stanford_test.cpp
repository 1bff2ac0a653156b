#include "common/byte_count.hpp"
#include "tools/source/stanford.hpp"

#include <gtest/gtest.h>

namespace gloved::source {
namespace {

TEST(Stanford, KnowsItsFilesByLinesAndWidth) {
    EXPECT_EQ(known_text(2'196'017, 300)->name, "glove.840B.300d");
    EXPECT_EQ(known_text(400'000, 100)->name, "glove.6B.100d");
    EXPECT_EQ(known_text(400'001, 100)->name, "glove.6B.100d with <unk>");
    EXPECT_EQ(known_text(400'001, 100)->lines, 400'001U);
    EXPECT_EQ(known_text(1'193'514, 100)->name, "glove.twitter.27B.100d");
    EXPECT_FALSE(known_text(2'196'016, 300));
    EXPECT_FALSE(known_text(2'196'018, 300));
    EXPECT_FALSE(known_text(2'196'017, 100));
    EXPECT_FALSE(known_text(0, 0));
}

TEST(Stanford, SuspectsAShorterFileOfItsNameOnly) {
    EXPECT_EQ(maybe_truncated("glove.840B.300d.txt", 2'000'000, 300)->lines, 2'196'017U);
    EXPECT_EQ(maybe_truncated("/some/dir/My-GloVe.txt", 399'999, 100)->lines, 400'000U);
    EXPECT_EQ(maybe_truncated("glove.txt", 500'000, 100)->lines, 1'193'514U);
    EXPECT_FALSE(maybe_truncated("glove.6B.100d.txt", 400'000, 100));  // known
    EXPECT_FALSE(maybe_truncated("glove.txt", 3'000'000, 300));        // longer than all
    EXPECT_FALSE(maybe_truncated("glove.txt", 10, 128));               // no known file is that wide
    EXPECT_FALSE(maybe_truncated("vectors.txt", 10, 100));             // another name
    EXPECT_FALSE(maybe_truncated("glove/vectors.txt", 10, 100));       // only the directory's
    EXPECT_FALSE(maybe_truncated("glove.6B.100d.sample.txt", 10, 100));  // says that it is a part
}

TEST(Stanford, ComparesFilesOf2024WithTheirLikeAlone) {
    // How many lines the one of 300 numbers has is not published.
    EXPECT_FALSE(maybe_truncated("glove.2024.wikigiga.300d.zip", 1'291'147, 300));
    EXPECT_FALSE(maybe_truncated("glove.2024.dolma.300d.zip", 1'200'000, 300));
    EXPECT_FALSE(maybe_truncated("dolma_300_2024_1.2M.100_combined.txt", 1'200'000, 300));
    EXPECT_FALSE(maybe_truncated("wiki_giga_2024_100_MFT20_combined.txt", 1'100'000, 100));
    EXPECT_EQ(maybe_truncated("wiki_giga_2024_50_MFT20_combined.txt", 1'200'000, 50)->name,
              "glove.2024.wikigiga.50d");
    EXPECT_EQ(maybe_truncated("glove.2024.wikigiga.50d.zip", 1'200'000, 50)->lines, 1'291'147U);
    EXPECT_FALSE(maybe_truncated("glove.txt", 1'200'000, 50));
}

}  // namespace
}  // namespace gloved::source
