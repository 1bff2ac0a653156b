#include "tests/support/text_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

namespace gloved::tests {
namespace {

static_assert(std::endian::native == std::endian::little,
              "word2vec's binary numbers are copied as they lie in memory");

struct OddWord {
    std::uint64_t line;  // from 1
    std::string_view word;
};

/// What glove.840B and twitter.27B hold and a reader that trims, splits at any white space or
/// decodes UTF-8 gets wrong. The bytes that make a key impossible (NUL, TAB, LF, CR) are left out:
/// the trainer never writes them.
constexpr OddWord kOddWords[] = {
    {2, ","},
    {3, "."},
    {5, "<unk>"},
    {7, ".\xC2\xA0.\xC2\xA0."},         // dots joined by no-break spaces
    {9, "at\xC2\xA0name@domain.com"},   // likewise
    {11, "to\xC2\xA0name@domain.com"},  //
    {13, "\xC2\xA0"},                   // no-break spaces alone
    {15, "\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0"},
    {16, "\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0\xC2\xA0"},
    {17, "\xC2\x85"},  // NEL, a line end to many
    {19, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {21, "\x01"},
    {22, "\x1B[31m\x7F"},
    {23, "\v\f"},                      // white space to isspace
    {25, "\xFF\xFE"},                  // no UTF-8
    {26, "caf\xE9"},                   // Latin-1
    {27, "\xF0\x9F\x98"},              // cut UTF-8
    {29, "\xE2\x80\xA8\xE3\x80\x80"},  // line separator, ideographic space
    {31, "0.418"},                     // words that are numbers
    {32, "-1e5"},
    {33, "NaN"},
    {35, "http://www.example.com/?q=1&amp;r=2"},
    {52344, ".\xC2\xA0.\xC2\xA0.\xC2\xA0."},
};

/// The word that stands there twice: glove.840B's is a run of U+FFFD too.
constexpr std::string_view kTwice = "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";

// A word is a sequence of syllables, each a consonant or cluster and one vowel, between a beginning
// and an ending: so its syllables can be told from its letters, and different numbers give
// different words.
constexpr std::string_view kOnsets[] = {"b", "c", "d", "f", "g", "h", "k",  "l",  "m",  "n",
                                        "p", "r", "s", "t", "v", "w", "st", "br", "th", "pl"};
constexpr std::string_view kVowels = "aeiou";
constexpr std::uint64_t kSyllables = std::size(kOnsets) * kVowels.size();

struct Affixes {
    std::string_view beginning;
    std::string_view ending;
};
/// Rows take turns in these. No two of them can give one word: endings begin behind the last
/// syllable's vowel and differ, and where they are equal, the beginnings hold what no syllable
/// does.
constexpr Affixes kAffixes[] = {
    {"", ""},         {"", "s"},        {"", "n"},     {"", "ing"}, {"", "ed"},    {"", ""},
    {"", "r"},        {"", "'s"},       {"", "-2004"}, {"X", ""},   {"semi-", ""}, {"", "ly"},
    {"www.", ".com"}, {"\xC3\xA9", ""}, {"", "zza"},   {"", "x"},
};
constexpr std::uint64_t kFamilies = std::size(kAffixes);
/// The one of them whose words are integers, as years and prices are.
constexpr std::uint64_t kIntegers = 5;

/// Steele, Lea and Flood's SplitMix64: one addition and one mix a number, and any state is a good
/// one.
class Random {
  public:
    explicit Random(std::uint64_t state) : state_(state) {}
    std::uint64_t operator()() {
        state_ += 0x9E3779B97F4A7C15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

void append_word(std::uint64_t seed, std::uint64_t row, std::string& out) {
    const std::uint64_t family = row % kFamilies;
    std::uint64_t index = row / kFamilies;
    // Of the words of n syllables each is used once, in a shuffled order: x -> a x + b mod 100^n, a
    // prime to 100. Words become longer as they become rarer.
    std::uint64_t count = kSyllables;
    int syllables = 1;
    while (index >= count) {
        index -= count;
        count *= kSyllables;
        ++syllables;
    }
    Random random(seed * kFamilies + family);
    // A product must fit 64 bits: the largest index is below 2^28.
    const std::uint64_t factor =
        random() % (std::min<std::uint64_t>(count, 100'000'000) / 10) * 10 + 7;
    const std::uint64_t shuffled = (index * factor + random() % count) % count;
    if (family == kIntegers) {
        out += std::to_string(count + shuffled);
        return;
    }
    out += kAffixes[family].beginning;
    for (std::uint64_t rest = shuffled; syllables > 0; --syllables, rest /= kSyllables) {
        out += kOnsets[rest % kSyllables / kVowels.size()];
        out += kVowels[rest % kVowels.size()];
    }
    out += kAffixes[family].ending;
}

/// A decimal, in a slot of a fixed size: copying 16 bytes is faster than copying as many as there
/// are.
struct Decimal {
    static constexpr std::size_t kBytes = 16;
    char text[kBytes];  // ends with a blank that belongs to it
};

constexpr std::size_t kDecimals = 1 << 15;

struct Numbers {
    std::vector<Decimal> decimals;
    std::vector<std::uint8_t> lengths;
    std::vector<float> values;
};

Numbers make_numbers(std::uint64_t seed) {
    Numbers numbers;
    Random random(~seed);
    for (std::size_t i = 0; i < kDecimals; ++i) {
        // Close to normal with a deviation of 0.4 (a sum of 12 uniform numbers), from sums that are
        // exact: no library's idea of a normal distribution comes in. One in 64 is tiny, one in 64
        // large.
        double value = -6;
        for (int j = 0; j < 12; ++j) value += static_cast<double>(random() >> 33) * 0x1p-31;
        value *= i % 64 == 1 ? 0.0004 : i % 64 == 2 ? 1.5 : 0.4;
        const std::uint64_t style = random() % 64;
        const int digits = style < 52 ? 5 : style < 56 ? 6 : style < 60 ? 4 : style < 62 ? 3 : 2;
        std::string text = i == 0 ? std::string("0") : fmt::format("{:.{}g}", value, digits);
        float parsed = 0;
        [[maybe_unused]] const auto end =
            std::from_chars(text.data(), text.data() + text.size(), parsed).ptr;
        assert(end == text.data() + text.size() && text.size() < Decimal::kBytes);
        text += ' ';
        Decimal decimal{};
        std::copy(text.begin(), text.end(), decimal.text);
        numbers.decimals.push_back(decimal);
        numbers.lengths.push_back(static_cast<std::uint8_t>(text.size()));
        numbers.values.push_back(parsed);
    }
    return numbers;
}

class Maker {
  public:
    explicit Maker(const TextShape& shape)
        : shape_(shape), numbers_(make_numbers(shape.seed)), picks_(shape.dim) {}

    std::size_t most_row_bytes() const {
        return kMaxWordBytes + (shape_.dim + 2) * Decimal::kBytes;
    }

    /// Writes one row and returns its end. There is room for most_row_bytes().
    char* write_row(std::uint64_t row, char* out) {
        const std::string word = made_word(shape_, row);
        assert(word.size() < kMaxWordBytes);
        std::memcpy(out, word.data(), word.size());
        out += word.size();
        *out++ = ' ';
        // A row's numbers depend on its place alone.
        Random random(shape_.seed ^ ((row + 1) * 0xD1B54A32D192ED03));
        for (std::size_t i = 0; i < shape_.dim; i += 4) {
            std::uint64_t four = random();
            for (std::size_t j = i; j < std::min(i + 4, shape_.dim); ++j, four >>= 16)
                picks_[j] = four % kDecimals;
        }
        if (shape_.format == TextFormat::word2vec_bin) {
            for (const std::size_t pick : picks_) {
                std::memcpy(out, &numbers_.values[pick], sizeof(float));
                out += sizeof(float);
            }
            *out++ = '\n';
            return out;
        }
        if (shape_.format == TextFormat::norms) {
            double sum = 0;
            for (const std::size_t pick : picks_) {
                const double value = numbers_.values[pick];
                sum += value * value;
            }
            out = fmt::format_to(out, "{:.6f} ", std::sqrt(sum));
        }
        for (const std::size_t pick : picks_) {
            std::memcpy(out, numbers_.decimals[pick].text, Decimal::kBytes);
            out += numbers_.lengths[pick];
        }
        out[-1] = '\n';
        return out;
    }

  private:
    static constexpr std::size_t kMaxWordBytes = 64;

    TextShape shape_;
    Numbers numbers_;
    std::vector<std::size_t> picks_;
};

}  // namespace

std::optional<TextFormat> text_format_from(std::string_view name) {
    if (name == "glove") return TextFormat::glove;
    if (name == "word2vec") return TextFormat::word2vec;
    if (name == "word2vec-bin") return TextFormat::word2vec_bin;
    if (name == "norms") return TextFormat::norms;
    return std::nullopt;
}

DuplicateLines duplicate_lines(std::uint64_t rows) {
    constexpr DuplicateLines kOf840B{138701, 140649};
    return rows >= kOf840B.second ? kOf840B : DuplicateLines{37, 41};
}

std::string made_word(const TextShape& shape, std::uint64_t row) {
    const std::uint64_t line = row + 1;
    if (shape.rows >= kDuplicateRows) {
        const DuplicateLines twice = duplicate_lines(shape.rows);
        if (line == twice.first || line == twice.second) return std::string(kTwice);
    }
    const auto* const odd = std::find_if(std::begin(kOddWords), std::end(kOddWords),
                                         [&](const OddWord& entry) { return entry.line >= line; });
    if (odd != std::end(kOddWords) && odd->line == line) return std::string(odd->word);
    std::string word;
    append_word(shape.seed, row, word);
    return word;
}

void make_text(const TextShape& shape, const std::function<bool(std::string_view)>& sink) {
    assert(shape.rows >= 1 && shape.dim >= 1);
    if (shape.format == TextFormat::word2vec || shape.format == TextFormat::word2vec_bin) {
        if (!sink(fmt::format("{} {}\n", shape.rows, shape.dim))) return;
    }
    Maker maker(shape);
    constexpr std::size_t kPieceBytes = 1 << 20;  // stays in the cache until it is written
    std::string piece(kPieceBytes + maker.most_row_bytes(), '\0');
    char* out = piece.data();
    for (std::uint64_t row = 0; row < shape.rows; ++row) {
        out = maker.write_row(row, out);
        const auto bytes = static_cast<std::size_t>(out - piece.data());
        if (bytes < kPieceBytes && row + 1 < shape.rows) continue;
        if (!sink(std::string_view(piece).substr(0, bytes))) return;
        out = piece.data();
    }
}

}  // namespace gloved::tests
