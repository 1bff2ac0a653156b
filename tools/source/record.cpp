#include "tools/source/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "common/quoting.hpp"
#include "tools/source/oddity.hpp"

namespace gloved::source {
namespace {

static_assert(std::endian::native == std::endian::little);

/// Fewer numbers a word tell little alone; of those that tell something, none may hold a blank.
constexpr std::size_t kFewNumbers = 16;
constexpr std::size_t kTooFewNumbers = 8;
/// In more numbers, all sizes occur again.
constexpr std::size_t kManyNumbers = 256;
/// One in so many numbers may be of another size than usual, in a record after which the next word
/// is text, and in any other.
constexpr std::size_t kFewUnusual = 8;
constexpr std::size_t kVeryFewUnusual = 64;
/// Bytes to look at behind the last record.
constexpr std::size_t kPaddingBytes = 64;
/// The longest character of UTF-8.
constexpr std::size_t kCharacterBytes = 4;

// Signs against a reading are bits: with each, it is half as likely. They were set by random files:
// hardly any is read wrong, and few are refused.
constexpr double kClearly = 12;       ///< so much fewer has the reading that is taken
constexpr double kWithBlank = 8;      ///< a word with a blank
constexpr double kNoText = 6;         ///< a word with bytes that are no text
constexpr double kOddByte = 3;        ///< each of them
constexpr double kTextByte = 1.5;     ///< each at the front of the numbers
constexpr double kForbidden = 8;      ///< an empty word, NUL, TAB, LF or CR in one
constexpr double kMaxInWord = 400;    ///< no word that has more is looked for
constexpr double kPadded = 8;         ///< zeros after the last record
constexpr double kEndElsewhere = 24;  ///< other data after the last record, or an end before it
constexpr double kOtherNewline = 30;  ///< an LF that is not as in the rest of the file
constexpr double kGarbage = 0.75;     ///< for each number, where they are of any size
constexpr double kRandomBits = NumberSizes::kRandomBits;

/// Whether a piece of a word is text: UTF-8 without control characters.
bool is_text(std::string_view word) {
    if (is_plain(word)) return true;
    while (!word.empty()) {
        if (invisible_bytes(word) != 0) return false;
        word.remove_prefix(utf8_sequence_length(word));
    }
    return true;
}

bool is_forbidden(char c) { return c == '\0' || c == '\t' || c == '\n' || c == '\r'; }

/// The search for the end of one record.
class RecordSearch {
  public:
    RecordSearch(std::string_view bytes, bool ended, const RecordLayout& layout, std::uint64_t left)
        : bytes_(bytes), ended_(ended), layout_(layout), left_(left) {}

    Record find() {
        const std::size_t blank = first_blank(0);
        if (incomplete_) return {};
        if (blank == kNone) {
            if (bytes_.size() <= kMaxWordBytes) return make(Record::State::cut);
            return refuse(
                fmt::format("no blank ends the word within {} KiB; the file is damaged, or holds "
                            "other than {} numbers a word; fetch it again",
                            kMaxWordBytes >> 10, layout_.dim));
        }
        const bool surely = layout_.dim >= kTooFewNumbers && layout_.sizes.tell_at_a_glance() &&
                            surely_ends_at(blank);
        if (incomplete_) return {};
        return surely ? whole(blank) : choose();
    }

  private:
    static constexpr std::size_t kNone = std::string_view::npos;

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
    Record whole(std::size_t blank) const {
        Record record = make(Record::State::whole);
        record.word_bytes = blank;
        record.bytes = end_of_numbers(blank);
        record.newline = layout_.newline.value_or(false);
        if (left_ > 1 && record.bytes < bytes_.size()) {
            record.newline = bytes_[record.bytes] == '\n';
            record.bytes += record.newline ? 1 : 0;
        }
        return record;
    }
    std::string shown(std::size_t blank) const { return printable(bytes_.substr(0, blank), 40); }
    const char* numbers(std::size_t blank) const { return bytes_.data() + blank + 1; }
    std::size_t end_of_numbers(std::size_t blank) const {
        return blank + 1 + layout_.dim * sizeof(float);
    }

    /// Where the first blank behind `begin` is, if a word may be as long.
    std::size_t first_blank(std::size_t begin) {
        // One byte more than the longest word, for its blank.
        const std::string_view word = bytes_.substr(begin, kMaxWordBytes + 1);
        const std::size_t blank = word.find(' ');
        if (blank != kNone) return begin + blank;
        incomplete_ |= !ended_ && word.size() <= kMaxWordBytes;
        return kNone;
    }

    /// Whether the numbers behind the first blank leave no doubt, as nearly always. If the word
    /// goes on behind it, they are of any size, or one of them has a blank as its highest byte.
    bool surely_ends_at(std::size_t blank) {
        const std::size_t end = end_of_numbers(blank);
        if (end > bytes_.size() || (left_ > 1 && end == bytes_.size() && !ended_)) {
            incomplete_ = !ended_;
            return false;
        }
        bool fits = false;
        if (left_ == 1) {
            const std::string_view rest = bytes_.substr(end, kPaddingBytes);
            incomplete_ = !ended_ && rest.size() < kPaddingBytes;
            fits = rest.empty() || rest == "\n";
        } else if (end < bytes_.size()) {
            const bool newline = bytes_[end] == '\n';
            if (newline != layout_.newline.value_or(newline)) return false;
            const std::size_t next = end + (newline ? 1 : 0);
            const std::size_t next_blank = first_blank(next);
            fits = next_blank != kNone && is_text(bytes_.substr(next, next_blank - next));
        }
        if (incomplete_) return false;
        // A long number in a word may have usual sizes.
        if (is_plain(bytes_.substr(blank + 1, kFewNumbers))) return false;
        const bool few = layout_.dim < kFewNumbers;
        const bool some = fits && layout_.sizes.some_are_usual(numbers(blank), layout_.dim);
        if (few) return some && bytes_.substr(blank + 1, end - blank - 1).find(' ') == kNone;
        return some || layout_.sizes.all_are_usual(numbers(blank), layout_.dim,
                                                   fits ? kFewUnusual : kVeryFewUnusual);
    }

    /// A blank at which a word may end, and the signs against that word.
    struct WordEnd {
        std::size_t blank;
        double signs;
    };

    /// Where the word at `begin` may end, one after the other.
    struct WordEnds {
        std::size_t begin;
        std::size_t at = begin;
        std::size_t blanks = 0;
        std::size_t odd_bytes = 0;
        bool forbidden = false;
        bool too_many = false;  ///< blanks

        double signs() const {
            return (blanks == 0 ? 0 : kWithBlank) + (odd_bytes == 0 ? 0 : kNoText) +
                   kOddByte * static_cast<double>(odd_bytes) +
                   (forbidden || at == begin ? kForbidden : 0);
        }
    };

    /// The next end that has at most so many signs against it.
    std::optional<WordEnd> next_end(WordEnds& ends, double most) {
        const std::size_t limit = std::min(bytes_.size(), ends.begin + kMaxWordBytes + 1);
        while (ends.at < limit) {
            const std::string_view rest = bytes_.substr(ends.at);
            // The last character may go on behind the bytes.
            incomplete_ |= !ended_ && rest.size() < kCharacterBytes;
            const bool text = invisible_bytes(rest) == 0;
            const WordEnd end = {ends.at, ends.signs()};
            ends.too_many = rest[0] == ' ' && ends.blanks > kMaxBlanksInWord;
            if (ends.blanks > 0 && (end.signs > most || ends.too_many)) return std::nullopt;
            ends.odd_bytes += text ? 0 : 1;
            ends.forbidden |= is_forbidden(rest[0]);
            ends.at += text ? utf8_sequence_length(rest) : 1;
            if (rest[0] != ' ') continue;
            ++ends.blanks;
            return end;
        }
        incomplete_ |= !ended_ && limit == bytes_.size();
        return std::nullopt;
    }

    /// The most bits that the numbers of a record can save.
    double most_saved() const { return kRandomBits * static_cast<double>(layout_.dim); }

    /// A record as it may be.
    struct Reading {
        std::size_t blank = 0;
        std::size_t end = 0;
        std::size_t next_end = kNone;
        double signs = 0;        ///< against it, and against the best reading of the next
        double later_signs = 0;  ///< those of what follows
        bool cut = false;
        bool newline = false;        ///< behind it
        bool other_newline = false;  ///< unlike those of the rest of the file
    };

    /// Reads a record without a look at the next. `newline`: as in RecordLayout.
    Reading read(const WordEnd& word, std::uint64_t left, std::optional<bool> newline) {
        Reading reading;
        reading.blank = word.blank;
        reading.end = end_of_numbers(word.blank);
        reading.cut = reading.end > bytes_.size();
        const std::size_t there = std::min(reading.end, bytes_.size()) - word.blank - 1;
        const std::string_view vector = bytes_.substr(word.blank + 1, there);
        const auto no_text = std::ranges::find_if_not(
            vector, [](char c) { return is_plain(std::string_view(&c, 1)); });
        reading.signs =
            word.signs + kTextByte * static_cast<double>(no_text - vector.begin()) +
            layout_.sizes.bits_over_random(vector.data(), vector.size() / sizeof(float));
        if (left == 1 && !reading.cut) {
            reading.later_signs = signs_behind_last(reading.end);
        } else if (reading.end >= bytes_.size()) {
            incomplete_ |= !ended_;
            reading.later_signs = kEndElsewhere;
        } else {
            const bool is_newline = bytes_[reading.end] == '\n';
            reading.other_newline = newline.value_or(is_newline) != is_newline;
            reading.later_signs = reading.other_newline ? kOtherNewline : 0;
            reading.newline = is_newline;
            reading.end += is_newline ? 1 : 0;
        }
        reading.signs += reading.later_signs;
        return reading;
    }

    double signs_behind_last(std::size_t end) {
        std::string_view rest = bytes_.substr(end, kPaddingBytes);
        incomplete_ |= !ended_ && rest.size() < kPaddingBytes;
        if (rest.starts_with('\n')) rest.remove_prefix(1);
        if (rest.empty()) return 0;
        return rest.find_first_not_of('\0') == kNone ? kPadded : kEndElsewhere;
    }

    /// Adds the signs against the next record, read in the way that has the fewest: only within the
    /// first `compared` bytes, so that readings of the same bytes are compared.
    void add_next(Reading& reading, std::size_t compared) {
        if (left_ == 1 || reading.end >= std::min(compared, bytes_.size())) return;
        Reading best;
        best.signs = kEndElsewhere;  // without a blank
        WordEnds next_ends{reading.end};
        while (const auto next_word =
                   next_end(next_ends, std::min(best.signs + most_saved(), kMaxInWord))) {
            const Reading next = read(*next_word, left_ - 1, reading.newline);
            if (best.end != 0 && next.signs >= best.signs) continue;
            best = next;
            reading.later_signs = next_word->signs;
        }
        if (best.end == 0) {
            reading.later_signs = kEndElsewhere;
        } else {
            reading.next_end = best.end;
        }
        reading.signs += best.signs;
    }

    /// Whether the numbers have any sizes: not those of the file, nor some of their own. Where all
    /// numbers of the file are such, the LF behind them tells that they are in their place.
    bool is_garbage(std::size_t blank) const {
        if (layout_.dim < kFewNumbers) return false;
        if (layout_.newline.value_or(false) && !layout_.sizes.tell_at_a_glance()) return false;
        const std::size_t looked_at = std::min(layout_.dim, kManyNumbers);
        const double bits = std::min(layout_.sizes.bits_over_random(numbers(blank), looked_at),
                                     NumberSizes().bits_over_random(numbers(blank), looked_at));
        return bits > kGarbage * static_cast<double>(looked_at);
    }

    /// Takes the reading that has clearly fewer signs against it than all others.
    Record choose() {
        std::vector<Reading> readings;
        WordEnds ends{0};
        double fewest = 0;
        double most_in_word = 0;
        while (const auto end = next_end(ends, most_in_word)) {
            readings.push_back(read(*end, left_, layout_.newline));
            if (readings.size() > 1) continue;
            add_next(readings.front(), kNone);
            fewest = readings.front().signs;
            most_in_word = std::min(fewest + kClearly + 2 * most_saved(), kMaxInWord);
        }
        if (incomplete_) return {};
        const std::size_t compared = readings.front().next_end;
        // The most likely first: what can no longer be as likely is not read on.
        std::vector<Reading*> others;
        for (Reading& reading : std::span(readings).subspan(1)) others.push_back(&reading);
        std::ranges::stable_sort(others, {}, &Reading::signs);
        for (Reading* const other : others) {
            if (other->signs - most_saved() < fewest + kClearly) add_next(*other, compared);
            fewest = std::min(fewest, other->signs);
        }
        if (incomplete_) return {};
        std::vector<Reading> likely;
        std::ranges::copy_if(readings, std::back_inserter(likely), [&](const Reading& reading) {
            return reading.signs < fewest + kClearly;
        });
        if (ends.too_many || likely.size() > 1) {
            return refuse(fmt::format(
                "{}; fetch the text file, or have it written again with another character in the "
                "place of blanks",
                ends.too_many
                    ? fmt::format("the word {} seems to hold more than {} blanks",
                                  shown(readings[1].blank), kMaxBlanksInWord)
                    : fmt::format("the word may be {} or {}: the numbers behind each are as likely",
                                  shown(likely[0].blank), shown(likely[1].blank))));
        }
        const Reading& best = likely.front();
        if (best.cut) return make(Record::State::cut);
        if (!best.other_newline && !(best.later_signs > 0 && is_garbage(best.blank)))
            return whole(best.blank);
        return refuse(fmt::format(
            "{} the word {}{}: the file is damaged, or the word holds blanks and many bytes that "
            "are no text; fetch it again, or the text file",
            best.other_newline ? fmt::format("{} LF follows the {} numbers of",
                                             *layout_.newline ? "no" : "an", layout_.dim)
                               : "the numbers have no usual size, and no text follows them, behind",
            shown(best.blank), best.other_newline ? ", unlike those of the words before" : ""));
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

std::optional<LineProblem> parse_row(std::string_view word, const char* numbers,
                                     const ArrayLayout& layout, float* values, bool& has_large) {
    convert_numbers(numbers, layout, values);
    has_large = has_large_number({values, layout.dim});
    if (!has_large) return check_key(word);
    float* const end = values + layout.dim;
    const float* const bad =
        std::find_if_not(values, end, [](float value) { return std::isfinite(value); });
    if (bad == end) return check_key(word);
    const auto i = static_cast<std::size_t>(bad - values);
    const double number =
        layout.type == NumberType::float64 ? float64_at(numbers, layout, i) : double{*bad};
    const bool too_large = std::isfinite(number);
    return LineProblem{
        too_large ? LineFault::overflow : LineFault::not_finite,
        fmt::format("number {} of {} is {}, which is {} (the word is {})", i + 1, layout.dim,
                    number, too_large ? "too large for float32" : "not finite", printable(word))};
}

}  // namespace gloved::source
