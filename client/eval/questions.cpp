#include "client/eval/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/expr/expression.hpp"
#include "common/quoting.hpp"

namespace gloved::client {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
/// Maximum number of questions or pairs, which are held in memory. word2vec's file has 19,544.
constexpr std::size_t kMaxQuestions = 10'000'000;

/// The next line that is not blank, without blanks at its ends; nullopt at the end.
Result<std::optional<std::string_view>> next_line(TextLines& lines) {
    for (;;) {
        auto line = lines.next();
        if (!line || !*line) return line;
        const std::size_t begin = (*line)->find_first_not_of(kBlanks);
        if (begin == std::string_view::npos) continue;
        return std::optional(
            (*line)->substr(begin, (*line)->find_last_not_of(kBlanks) - begin + 1));
    }
}

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

Error too_long_fault(const TextLines& lines, std::string_view word) {
    return lines.fault(
        fmt::format("a word of {} bytes ({}), more than the limit of {}; remove the line",
                    word.size(), printable(word, 20), kMaxQuestionWordBytes));
}

Error too_many_fault(const TextLines& lines) {
    return lines.fault(fmt::format("more than {} questions; split the file", kMaxQuestions));
}

}  // namespace

Result<std::vector<AnalogySection>> parse_analogies(TextLines& lines) {
    std::vector<AnalogySection> sections;
    std::size_t questions = 0;
    for (;;) {
        const auto read = next_line(lines);
        if (!read) return read.error();
        const auto& line = *read;
        if (!line) break;
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
        if (++questions > kMaxQuestions) return too_many_fault(lines);
    }
    if (questions == 0) return Error{ErrorCode::bad_source, lines.name() + " holds no questions"};
    return sections;
}

Result<RatedPairs> parse_pairs(TextLines& lines) {
    RatedPairs found;
    bool first = true;
    for (;;) {
        const auto read = next_line(lines);
        if (!read) return read.error();
        const auto& line = *read;
        if (!line) break;
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
            found.header = std::string(*line);
            continue;
        }
        if (!score || !std::isfinite(*score)) {
            return lines.fault(fmt::format(
                "the score {} is not a number; correct or remove the line", printable(parts[2])));
        }
        if (const auto word = too_long(parts)) return too_long_fault(lines, *word);
        if (found.pairs.size() == kMaxQuestions) return too_many_fault(lines);
        found.pairs.push_back({{std::string(parts[0]), std::string(parts[1])}, *score});
    }
    if (found.pairs.empty()) return Error{ErrorCode::bad_source, lines.name() + " holds no pairs"};
    return found;
}

}  // namespace gloved::client
