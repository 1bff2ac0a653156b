#include "client/eval/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/error_with.hpp"
#include "common/expr/expression.hpp"
#include "common/quoting.hpp"

namespace gloved::client {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Iterates over the lines of a text and counts them.
class Lines {
  public:
    Lines(std::string_view text, const std::string& file) : rest_(text), file_(file) {
        if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
    }

    /// The next line that is not blank, without blanks at its ends.
    std::optional<std::string_view> next() {
        while (!rest_.empty()) {
            const std::size_t end = rest_.find('\n');
            std::string_view line = rest_.substr(0, end);
            rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
            ++number_;
            const std::size_t begin = line.find_first_not_of(kBlanks);
            if (begin == std::string_view::npos) continue;
            return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
        }
        return std::nullopt;
    }

    Error fault(const std::string& what) const {
        return error_with(ErrorCode::bad_request, "{}: line {}: {}", file_, number_, what);
    }

  private:
    std::string_view rest_;
    const std::string& file_;
    std::size_t number_ = 0;
};

std::vector<std::string_view> fields(std::string_view line, std::string_view separators) {
    std::vector<std::string_view> found;
    for (std::size_t begin = line.find_first_not_of(separators); begin != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
        found.push_back(line.substr(begin, end - begin));
        begin = line.find_first_not_of(separators, end);
    }
    return found;
}

std::optional<std::string_view> too_long(const std::vector<std::string_view>& words) {
    for (const std::string_view word : words) {
        if (word.size() > kMaxQuestionWordBytes) return word;
    }
    return std::nullopt;
}

Error too_long_fault(const Lines& lines, std::string_view word) {
    return lines.fault(
        fmt::format("a word of {} bytes ({}), more than the limit of {}; remove the line",
                    word.size(), printable(word, 20), kMaxQuestionWordBytes));
}

}  // namespace

Result<std::vector<AnalogySection>> parse_analogies(std::string_view text,
                                                    const std::string& file) {
    std::vector<AnalogySection> sections;
    std::size_t questions = 0;
    Lines lines(text, file);
    while (const auto line = lines.next()) {
        if (line->front() == ':') {
            const std::size_t begin = std::min(line->find_first_not_of(": \t"), line->size());
            sections.push_back({std::string(line->substr(begin)), {}});
            continue;
        }
        const auto words = fields(*line, kBlanks);
        if (words.size() != 4) {
            return lines.fault(
                fmt::format("{} {} where a question has four, {}; correct or remove the line",
                            words.size(), words.size() == 1 ? "word" : "words", printable(*line)));
        }
        if (sections.empty()) {
            return lines.fault(
                "a question before the first section; put a line «: NAME» before it");
        }
        if (const auto word = too_long(words)) return too_long_fault(lines, *word);
        sections.back().questions.push_back(
            {{std::string(words[0]), std::string(words[1]), std::string(words[2])},
             std::string(words[3])});
        ++questions;
    }
    if (questions == 0) return Error{ErrorCode::bad_request, file + " holds no questions"};
    return sections;
}

Result<RatedPairs> parse_pairs(std::string_view text, const std::string& file) {
    RatedPairs read;
    Lines lines(text, file);
    bool first = true;
    while (const auto line = lines.next()) {
        if (line->front() == '#') continue;
        const auto parts =
            fields(*line, line->find('\t') == std::string_view::npos ? kBlanks : "\t\r");
        if (parts.size() != 3) {
            return lines.fault(fmt::format(
                "{} {} where a pair has three (word, word, score), {}; cut the file to these, as "
                "with cut -f",
                parts.size(), parts.size() == 1 ? "field" : "fields", printable(*line)));
        }
        const auto score = expr::parse_number(parts[2]);
        const bool header = first && !score;
        first = false;
        if (header) {
            read.header = std::string(*line);
            continue;
        }
        if (!score || !std::isfinite(*score)) {
            return lines.fault(fmt::format(
                "the score {} is not a number; correct or remove the line", printable(parts[2])));
        }
        if (const auto word = too_long(parts)) return too_long_fault(lines, *word);
        read.pairs.push_back({{std::string(parts[0]), std::string(parts[1])}, *score});
    }
    if (read.pairs.empty()) return Error{ErrorCode::bad_request, file + " holds no pairs"};
    return read;
}

}  // namespace gloved::client
