// Text of the shape of a GloVe download, of any size, for tests of scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gloved::tests {

enum class TextFormat {
    glove,         ///< lines «word n1 … nD»
    word2vec,      ///< the same behind a line «rows dim»
    word2vec_bin,  ///< the line «rows dim», then for each word «word », dim float32 little-endian,
                   ///< a newline
    norms,  ///< lines «word norm n1 … nD»
};

/// «glove», «word2vec», «word2vec-bin», «norms».
std::optional<TextFormat> text_format_from(std::string_view name);

struct TextShape {
    std::uint64_t rows = 0;
    std::size_t dim = 0;
    std::uint64_t seed = 1;
    TextFormat format = TextFormat::glove;
};

/// From this number of rows on, one word stands there twice, with different numbers.
inline constexpr std::uint64_t kDuplicateRows = 64;
/// The lines, from 1, of the word that stands there twice. Those of glove.840B (138701 and 140649)
/// where there are as many.
struct DuplicateLines {
    std::uint64_t first;
    std::uint64_t second;
};
DuplicateLines duplicate_lines(std::uint64_t rows);

/// Makes the text and hands it to `sink` piece by piece, in order; ends early when `sink` returns
/// false. Every byte depends on the shape alone: equal shapes give equal bytes on every machine,
/// and the word2vec formats hold what glove's text does.
///
/// Words are distinct but for the duplicate, and in no order. Most are made of syllables, so that
/// many share long beginnings; some lines hold what real downloads hold and readers trip over
/// (kOddWords in the .cpp). Numbers have 1 to 6 significant digits, about 8.5 bytes each with their
/// blank: 2,550 bytes a line at 300.
void make_text(const TextShape& shape, const std::function<bool(std::string_view)>& sink);

/// The word on a line, from 0: for tests, which want to know it without the text.
std::string made_word(const TextShape& shape, std::uint64_t row);

}  // namespace gloved::tests
