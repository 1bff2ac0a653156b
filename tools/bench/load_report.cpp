#include "tools/bench/load_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "common/byte_count.hpp"

namespace gloved::bench {
namespace {

void add_code(LoadCounts& counts, std::string_view code, std::uint64_t replies) {
    for (auto& [known, count] : counts.codes) {
        if (known != code) continue;
        count += replies;
        return;
    }
    counts.codes.emplace_back(code, replies);
}

/// Of each reply that differs, so that a long one does not fill the screen.
constexpr std::size_t kMaxShownLines = 5;

std::string microseconds(std::uint64_t ns) { return figure(static_cast<double>(ns) / 1e3); }

/// The sum of what was counted for each part of the mix.
struct PartCounts {
    LatencyHistogram latencies{};
    std::uint64_t answers_in_time = 0;
    std::uint64_t errors = 0;
};

PartCounts part_of(const LoadCounts& counts, std::size_t part) {
    return {counts.latencies[part], counts.answers_in_time[part], counts.errors[part]};
}

PartCounts sum_of(const LoadCounts& counts) {
    PartCounts sum;
    for (std::size_t i = 0; i < counts.latencies.size(); ++i) {
        sum.latencies.add(counts.latencies[i]);
        sum.answers_in_time += counts.answers_in_time[i];
        sum.errors += counts.errors[i];
    }
    return sum;
}

std::vector<std::string> answers_row(std::string what, const PartCounts& counts, double seconds) {
    std::vector<std::string> row = {std::move(what), fmt::to_string(counts.latencies.count()),
                                    figure(static_cast<double>(counts.answers_in_time) / seconds)};
    for (const double share : {0.5, 0.99, 0.999})
        row.push_back(microseconds(counts.latencies.percentile_ns(share)));
    row.push_back(microseconds(counts.latencies.max_ns()));
    row.push_back(fmt::to_string(counts.errors));
    return row;
}

std::uint64_t all_answers(const LoadFigures& figures) {
    return sum_of(figures.counts).latencies.count() +
           (figures.lone ? sum_of(*figures.lone).latencies.count() : 0);
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

/// Appends a reply: its status line, and its lines from `from` on.
void append_reply(std::vector<std::string>& text, std::string_view name,
                  const std::vector<std::string_view>& lines, std::size_t from) {
    text.push_back(fmt::format("{}: {}", name, lines.empty() ? "" : lines.front()));
    const std::size_t end = std::min(lines.size(), from + kMaxShownLines);
    for (std::size_t i = from; i < end; ++i)
        text.push_back(fmt::format("  line {}: {}", i, lines[i]));
    if (end < lines.size()) text.push_back(fmt::format("  … {} more lines", lines.size() - end));
}

}  // namespace

void LoadCounts::add_error(std::size_t part, std::string_view code) {
    ++errors[part];
    add_code(*this, code, 1);
}

void LoadCounts::add(const LoadCounts& other) {
    for (std::size_t i = 0; i < latencies.size(); ++i) {
        latencies[i].add(other.latencies[i]);
        answers_in_time[i] += other.answers_in_time[i];
        errors[i] += other.errors[i];
    }
    for (const auto& [code, count] : other.codes) add_code(*this, code, count);
    checked += other.checked;
    wrong += other.wrong;
    if (!first_wrong) first_wrong = other.first_wrong;
    lateness.add(other.lateness);
    unsent += other.unsent;
    unanswered += other.unanswered;
}

Table answers_table(const LoadFigures& figures) {
    Table table({"what", "answers", "answers/s", "us p50", "us p99", "us p99.9", "us max", "ERR"});
    const LoadCounts& counts = figures.counts;
    for (std::size_t i = 0; i < figures.parts.size(); ++i)
        table.add(answers_row(figures.parts[i], part_of(counts, i), figures.seconds));
    if (figures.parts.size() > 1) table.add(answers_row("all", sum_of(counts), figures.seconds));
    if (figures.lone) table.add(answers_row("lone client", sum_of(*figures.lone), figures.seconds));
    return table;
}

Table processor_table(const LoadFigures& figures) {
    Table table({"processor time", "seconds", "us an answer", "cores"});
    const auto answers = static_cast<double>(all_answers(figures));
    const auto add = [&](const char* side, double seconds) {
        table.add({side, figure(seconds), answers > 0 ? figure(seconds * 1e6 / answers) : "",
                   figure(seconds / figures.wall_seconds)});
    };
    add("gloved-bench", figures.own_cpu_seconds);
    if (figures.daemon_cpu_seconds) add("daemon", *figures.daemon_cpu_seconds);
    return table;
}

std::vector<std::string> load_notes(const LoadFigures& figures) {
    LoadCounts all = figures.counts;
    if (figures.lone) all.add(*figures.lone);
    std::vector<std::string> notes;
    notes.push_back(fmt::format("checked    {} answers, {} wrong", with_commas(all.checked),
                                with_commas(all.wrong)));
    for (const auto& [code, count] : all.codes)
        notes.push_back(fmt::format("ERR        {}: {}", code, with_commas(count)));
    if (all.lateness.count() > 0) {
        notes.push_back(fmt::format("sent late  by {} us (p50), {} us (p99), {} us (max)",
                                    microseconds(all.lateness.percentile_ns(0.5)),
                                    microseconds(all.lateness.percentile_ns(0.99)),
                                    microseconds(all.lateness.max_ns())));
    }
    if (all.unsent > 0) {
        notes.push_back(
            fmt::format("unsent     {} requests were due, but the daemon did not take them",
                        with_commas(all.unsent)));
    }
    if (all.unanswered > 0) {
        notes.push_back(fmt::format("unanswered {} requests, when it stopped waiting",
                                    with_commas(all.unanswered)));
    }
    return notes;
}

std::vector<std::string> wrong_answer_text(const WrongAnswer& wrong) {
    const auto expected = lines_of(wrong.expected);
    const auto received = lines_of(wrong.received);
    std::size_t from = 1;
    while (from < std::min(expected.size(), received.size()) && expected[from] == received[from])
        ++from;
    std::vector<std::string> text;
    for (const std::string_view line : lines_of(wrong.request))
        text.push_back(fmt::format("request: {}", line));
    append_reply(text, "right reply", expected, from);
    append_reply(text, "wrong reply", received, from);
    return text;
}

}  // namespace gloved::bench
