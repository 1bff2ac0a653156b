#include "client/eval/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "client/eval/letter_case.hpp"
#include "common/wire/json_string.hpp"

namespace gloved::client {
namespace {

constexpr std::string_view kSemantic = "semantic";
constexpr std::string_view kSyntactic = "syntactic";
constexpr std::string_view kTotal = "total";

std::string fixed(double number, int decimals) {
    return std::isfinite(number) ? fmt::format("{:.{}f}", number, decimals) : "-";
}

/// The shortest decimals that read back to the same number, or null.
std::string shortest(double number) {
    return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

std::string json_quoted(std::string_view text) {
    std::string out;
    wire::append_json_string(out, text);
    return out;
}

std::string row(std::string name, std::string_view kind, const AnalogyCount& count) {
    std::ranges::replace(name, '\t', ' ');
    return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", name, kind, count.correct, count.asked,
                       count.skipped, fixed(count.percent(), 2));
}

std::string members(const AnalogyCount& count) {
    return fmt::format(R"("correct":{},"asked":{},"skipped":{},"percent":{})", count.correct,
                       count.asked, count.skipped, shortest(count.percent()));
}

std::string members(const Evaluated& evaluated) {
    return fmt::format(R"("model":{},"generation":{},"top":{},"case":"{}")",
                       json_quoted(evaluated.model), json_quoted(evaluated.generation),
                       evaluated.settings.top,
                       evaluated.settings.letter_case == LetterCase::ignore ? "ignore" : "exact");
}

}  // namespace

std::string table(const AnalogyScore& score) {
    std::string text = "section\tkind\tcorrect\tasked\tskipped\tpercent\n";
    for (const auto& section : score.sections)
        text += row(section.name, section.syntactic ? kSyntactic : kSemantic, section.count);
    text += row("*", kSemantic, score.semantic);
    text += row("*", kSyntactic, score.syntactic);
    text += row("*", kTotal, score.total);
    return text;
}

std::string table(const PairScore& score) {
    return fmt::format("pairs\tskipped\tskipped_percent\tpearson\tspearman\n{}\t{}\t{}\t{}\t{}\n",
                       score.pairs, score.skipped, fixed(score.skipped_percent(), 2),
                       fixed(score.pearson, 6), fixed(score.spearman, 6));
}

std::string json(const Evaluated& evaluated, const AnalogyScore& score) {
    std::string text = fmt::format(R"({{{},"method":{},"sections":[)", members(evaluated),
                                   json_quoted(evaluated.settings.method));
    std::string_view separator;
    for (const auto& section : score.sections) {
        text += fmt::format(R"({}{{"section":{},"kind":"{}",{}}})", separator,
                            json_quoted(section.name), section.syntactic ? kSyntactic : kSemantic,
                            members(section.count));
        separator = ",";
    }
    text += fmt::format(R"(],"semantic":{{{}}},"syntactic":{{{}}},"total":{{{}}}}})",
                        members(score.semantic), members(score.syntactic), members(score.total));
    return text + "\n";
}

std::string json(const Evaluated& evaluated, const PairScore& score) {
    return fmt::format(
               R"({{{},"pairs":{},"skipped":{},"skipped_percent":{},"pearson":{},"spearman":{}}})",
               members(evaluated), score.pairs, score.skipped, shortest(score.skipped_percent()),
               shortest(score.pearson), shortest(score.spearman)) +
           "\n";
}

}  // namespace gloved::client
