#include "tools/source/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "common/quoting.hpp"
#include "tools/source/oddity.hpp"

namespace gloved::source {
namespace {

static_assert(std::endian::native == std::endian::little);

/// Numbers of usual size are 0, or lie between these. Bytes that are read in the wrong place are
/// numbers of any exponent: four of five are not usual.
constexpr float kMinUsual = 1e-12F;
constexpr float kMaxUsual = kLargeNumber;
/// How many signs of a wrong reading there must be for one sign of another, which is then taken.
constexpr std::uint64_t kClearRatio = 8;
/// More signs than any reading has: what no record can be.
constexpr std::uint64_t kImpossible = std::uint64_t{1} << 32;
/// Bytes to look at behind the last record.
constexpr std::size_t kPaddingBytes = 64;
/// The longest character of UTF-8.
constexpr std::size_t kCharacterBytes = 4;

std::uint64_t unusual_numbers(const char* numbers, std::size_t dim) {
    std::uint64_t unusual = 0;
    for (std::size_t i = 0; i < dim; ++i) {
        float value = 0;
        std::memcpy(&value, numbers + i * sizeof value, sizeof value);
        const float size = std::abs(value);
        if (size != 0 && !(size >= kMinUsual && size <= kMaxUsual)) ++unusual;
    }
    return unusual;
}

/// Whether a piece of a word is text: UTF-8 without control characters.
bool is_text(std::string_view word) {
    if (is_plain(word)) return true;
    while (!word.empty()) {
        if (invisible_bytes(word) != 0) return false;
        word.remove_prefix(utf8_sequence_length(word));
    }
    return true;
}

/// The signs that a word is none, as unusual_numbers counts those of a vector.
std::uint64_t signs_in_word(std::string_view word) {
    if (check_key(word)) return kImpossible;
    return is_text(word) ? 0 : 1;
}

/// The search for the end of one record.
class RecordSearch {
  public:
    RecordSearch(std::string_view bytes, bool ended, const RecordLayout& layout, std::uint64_t left)
        : bytes_(bytes), ended_(ended), layout_(layout), left_(left) {}

    Record find() {
        const Blanks blanks = blanks_at(0);
        if (incomplete_) return {};
        if (blanks.count == 0) {
            if (bytes_.size() <= kMaxWordBytes) return make(Record::State::cut);
            return refuse(
                fmt::format("no blank ends the word within {} KiB; the file is damaged, or holds "
                            "other than {} numbers a word; fetch it again",
                            kMaxWordBytes >> 10, layout_.dim));
        }
        return blanks.count == 1 ? find_plain(blanks.at[0]) : choose(blanks);
    }

  private:
    /// Where a word may end.
    struct Blanks {
        std::array<std::size_t, kMaxBlanksInWord + 1> at;
        std::size_t count = 0;
        bool too_many = false;
    };

    static Record make(Record::State state) {
        Record record;
        record.state = state;
        return record;
    }
    static Record refuse(std::string problem) {
        Record record = make(Record::State::refused);
        record.problem = std::move(problem);
        return record;
    }
    std::string_view word_before(std::size_t blank) const { return bytes_.substr(0, blank); }
    std::size_t end_of_numbers(std::size_t blank) const {
        return blank + 1 + layout_.dim * sizeof(float);
    }

    /// The blanks that may end the word at `begin`: the first, and others as long as text stands
    /// between them.
    Blanks blanks_at(std::size_t begin) {
        Blanks blanks;
        // One byte more than the longest word, for its blank.
        const std::size_t limit = std::min(bytes_.size(), begin + kMaxWordBytes + 1);
        const void* const first =
            std::memchr(bytes_.data() + begin, ' ', std::max(limit, begin) - begin);
        if (first == nullptr) {
            incomplete_ |= !ended_ && limit == bytes_.size() && limit - begin <= kMaxWordBytes;
            return blanks;
        }
        std::size_t at = static_cast<std::size_t>(static_cast<const char*>(first) - bytes_.data());
        blanks.at[blanks.count++] = at++;
        for (; at < limit; at += utf8_sequence_length(bytes_.substr(at))) {
            if (bytes_[at] == ' ') {
                blanks.too_many = blanks.count == blanks.at.size();
                if (blanks.too_many) break;
                blanks.at[blanks.count++] = at;
            } else if (invisible_bytes(bytes_.substr(at)) != 0) {
                break;
            }
        }
        // The last character may go on behind the bytes.
        incomplete_ |= !ended_ && limit == bytes_.size() && limit - begin <= kMaxWordBytes &&
                       at + kCharacterBytes > limit;
        return blanks;
    }

    /// Whether nothing follows the last record that ends at `end`, other than an LF and zeros.
    bool ends_source(std::size_t end) {
        std::string_view rest = bytes_.substr(end, kPaddingBytes);
        incomplete_ |= !ended_ && rest.size() < kPaddingBytes;
        if (rest.starts_with('\n')) rest.remove_prefix(1);
        return rest.find_first_not_of('\0') == std::string_view::npos;
    }

    /// A word that ends at its only blank, as nearly all do.
    Record find_plain(std::size_t blank) {
        Record record = make(Record::State::whole);
        record.word_bytes = blank;
        record.bytes = end_of_numbers(blank);
        record.newline = layout_.newline.value_or(false);
        if (record.bytes > bytes_.size()) {
            record.state = ended_ ? Record::State::cut : Record::State::incomplete;
            return record;
        }
        if (left_ == 1) return check_end(std::move(record));
        if (record.bytes == bytes_.size()) {
            if (!ended_) record.state = Record::State::incomplete;
            return record;
        }
        record.newline = bytes_[record.bytes] == '\n';
        if (record.newline != layout_.newline.value_or(record.newline)) {
            return refuse(fmt::format(
                "{} LF follows the {} numbers of the word {}, unlike those of the words before: "
                "the word holds a blank and other bytes that are no text, or the file is damaged; "
                "fetch it again, or the text file",
                record.newline ? "an" : "no", layout_.dim, printable(word_before(blank), 40)));
        }
        record.bytes += record.newline ? 1 : 0;
        return check_next_word(std::move(record));
    }

    /// If the last record's numbers stand elsewhere, some of their bytes are left.
    Record check_end(Record record) {
        const bool ends = ends_source(record.bytes);
        if (incomplete_) return {};
        if (ends || unusual_numbers(bytes_.data() + record.word_bytes + 1, layout_.dim) == 0)
            return record;
        return refuse(fmt::format(
            "the last word, {}, has numbers of no usual size, and other data follows them: the "
            "word holds a blank and other bytes that are no text, or the file is damaged; fetch it "
            "again, or the text file",
            printable(word_before(record.word_bytes), 40)));
    }

    /// If this record's numbers stand elsewhere, the next word begins with some of their bytes.
    Record check_next_word(Record record) {
        const std::string_view rest = bytes_.substr(record.bytes, kMaxWordBytes + 1);
        const std::size_t length = std::min(rest.find(' '), rest.size());
        if (length == rest.size() && rest.size() <= kMaxWordBytes && !ended_)
            return make(Record::State::incomplete);
        const std::string_view next = rest.substr(0, length);
        // In a file with LFs, the one behind the misplaced numbers would be in the next word.
        const bool fits = layout_.newline.value_or(false)
                              ? next.find('\n') == std::string_view::npos
                              : is_text(next);
        if (fits) return record;
        if (unusual_numbers(bytes_.data() + record.word_bytes + 1, layout_.dim) == 0) return record;
        return refuse(fmt::format(
            "the word {} has numbers of no usual size, and the next word, {}, is no text: the word "
            "holds a blank and other bytes that are no text, or the file is damaged; fetch it "
            "again, or the text file",
            printable(word_before(record.word_bytes), 40), printable(next, 40)));
    }

    /// The signs against a record at `begin` whose word ends at `blank`. Sets `next` to its end and
    /// `newline` to whether an LF is there.
    std::uint64_t signs_in_record(std::size_t begin, std::size_t blank, std::uint64_t left,
                                  std::optional<bool>& newline, std::size_t& next) {
        next = end_of_numbers(blank);
        if (next > bytes_.size() || (left > 1 && next == bytes_.size())) {
            incomplete_ |= !ended_;
            return kImpossible;
        }
        const std::uint64_t signs = signs_in_word(bytes_.substr(begin, blank - begin)) +
                                    unusual_numbers(bytes_.data() + blank + 1, layout_.dim);
        if (left == 1) return ends_source(next) ? signs : kImpossible;
        const bool is_newline = bytes_[next] == '\n';
        if (newline.value_or(is_newline) != is_newline) return kImpossible;
        newline = is_newline;
        next += is_newline ? 1 : 0;
        return signs;
    }

    /// The signs against a word that ends at a blank, in its record and the next.
    struct Signs {
        std::uint64_t count = kImpossible;
        std::size_t end = 0;       ///< of the record
        std::size_t next_end = 0;  ///< of the next, whose word ends where there are fewest signs
    };
    Signs signs_against(std::size_t blank) {
        std::optional<bool> newline = layout_.newline;
        Signs signs;
        signs.count = signs_in_record(0, blank, left_, newline, signs.end);
        if (left_ == 1 || signs.count >= kImpossible) return signs;
        const Blanks blanks = blanks_at(signs.end);
        std::uint64_t fewest = kImpossible;
        for (std::size_t i = 0; i < blanks.count && fewest > 0; ++i) {
            std::size_t end = 0;
            const std::uint64_t count =
                signs_in_record(signs.end, blanks.at[i], left_ - 1, newline, end);
            if (count >= fewest) continue;
            fewest = count;
            signs.next_end = end;
        }
        signs.count += fewest;
        return signs;
    }

    /// Chooses between several blanks: takes the only one without a sign against it, or with far
    /// fewer than all others.
    Record choose(const Blanks& blanks) {
        std::vector<Signs> signs;
        for (std::size_t i = 0; i < blanks.count; ++i) signs.push_back(signs_against(blanks.at[i]));
        if (incomplete_) return {};
        const std::uint64_t fewest = std::ranges::min_element(signs, {}, &Signs::count)->count;
        const auto shown = [&](std::size_t i) { return printable(word_before(blanks.at[i]), 40); };
        const std::string way_out =
            "fetch the text file, or have it written again with another character in the place of "
            "blanks";
        if (blanks.too_many) {
            return refuse(fmt::format("the word {} seems to hold more than {} blanks; {}", shown(1),
                                      kMaxBlanksInWord, way_out));
        }
        if (fewest >= kImpossible) {
            return refuse(fmt::format(
                "the word may end at any of {} blanks, as {} or {}, and no numbers and no next "
                "word fit behind one of them: the file is damaged or cut; fetch it again, or the "
                "text file",
                blanks.count, shown(0), shown(1)));
        }
        std::vector<std::size_t> likely;
        for (std::size_t i = 0; i < signs.size(); ++i) {
            if (signs[i].count <= kClearRatio * fewest) likely.push_back(i);
        }
        Record record = make(Record::State::whole);
        if (likely.size() > 1) {
            record.doubt =
                fmt::format("the word may be {} or {}: the numbers behind each are as likely; {}",
                            shown(likely[0]), shown(likely[1]), way_out);
            // Two records or one, which the number of words decides, or others that nothing does.
            const bool counted = std::all_of(likely.begin() + 1, likely.end(), [&](std::size_t i) {
                return signs[i].end == signs[likely[0]].next_end;
            });
            if (!counted) return refuse(record.doubt);
        }
        record.word_bytes = blanks.at[likely[0]];
        record.bytes = end_of_numbers(record.word_bytes);
        record.newline = left_ > 1 ? bytes_[record.bytes] == '\n' : layout_.newline.value_or(false);
        record.bytes += left_ > 1 && record.newline ? 1 : 0;
        return record;
    }

    std::string_view bytes_;
    bool ended_;
    const RecordLayout& layout_;
    std::uint64_t left_;
    bool incomplete_ = false;
};

}  // namespace

Record find_record(std::string_view bytes, bool ended, const RecordLayout& layout,
                   std::uint64_t left) {
    return RecordSearch(bytes, ended, layout, left).find();
}

std::optional<LineProblem> parse_record(std::string_view word, const char* numbers, std::size_t dim,
                                        float* values, bool& has_large) {
    std::memcpy(values, numbers, dim * sizeof(float));
    has_large = has_large_number({values, dim});
    if (!has_large) return check_key(word);
    const float* const bad =
        std::find_if(values, values + dim, [](float value) { return !std::isfinite(value); });
    if (bad != values + dim) {
        return LineProblem{
            LineFault::not_finite,
            fmt::format("number {} of {} is {}, which is not finite (the word is {})",
                        bad - values + 1, dim, *bad, printable(word))};
    }
    return check_key(word);
}

}  // namespace gloved::source
