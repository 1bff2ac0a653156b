#include "tools/bench/rung_report.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "tools/bench/measure.hpp"

namespace gloved::bench {
namespace {

using kernels::ladder::RungTimes;

std::vector<double> of_all(const RungFigures& rung,
                           const std::function<double(const RungTimes&)>& part) {
    std::vector<double> values;
    for (const auto& round : rung.runs) {
        for (const RungTimes& times : round) values.push_back(part(times));
    }
    return values;
}

std::string label(const RungFigures& rung) {
    return rung.discarded ? rung.name + " (discarded)" : rung.name;
}

/// Milliseconds of a plain read of the memory that this rung reads.
std::optional<double> ceiling_ms(const RungReport& report, const RungFigures& rung) {
    return rung.on_host ? std::optional(report.host_read_ms) : report.device_read_ms;
}

/// The cells GB/s and % of ceiling for reading all vectors in `ms`.
std::vector<std::string> rate_cells(const RungReport& report, const RungFigures& rung, double ms) {
    if (!(ms > 0)) return {"", ""};
    const auto ceiling = ceiling_ms(report, rung);
    return {figure(static_cast<double>(report.vector_bytes) / ms / 1e6),
            ceiling ? fmt::format("{:.1f}", 100 * *ceiling / ms) : ""};
}

void append(std::vector<std::string>& cells, std::vector<std::string> more) {
    for (std::string& cell : more) cells.push_back(std::move(cell));
}

}  // namespace

double mean_total_ms(const RungFigures& rung) {
    return mean(of_all(rung, [](const RungTimes& times) { return times.total; }));
}

Table words_table(const RungReport& report, TableFormat format) {
    // CSV has a column for each number, text one for both.
    const bool split = format == TableFormat::csv;
    std::vector<std::string> headings = {"version", "rounds"};
    for (const std::string& word : report.words) {
        headings.push_back(split ? word + " mean" : word);
        if (split) headings.push_back(word + " error");
    }
    append(headings, {"mean", "GB/s", "% of read ceiling"});
    Table table(headings);
    for (const RungFigures& rung : report.rungs) {
        std::vector<std::string> cells = {label(rung), fmt::to_string(rung.runs.size())};
        for (std::size_t word = 0; word < report.words.size(); ++word) {
            std::vector<double> totals;
            for (const auto& round : rung.runs) totals.push_back(round[word].total);
            const std::string middle = figure(mean(totals));
            const auto error = standard_error(totals);
            const std::string error_text = error ? fmt::format("{:.3f}", *error) : "";
            cells.push_back(split || !error ? middle : fmt::format("{} ±{}", middle, error_text));
            if (split) cells.push_back(error_text);
        }
        const double ms = mean_total_ms(rung);
        cells.push_back(figure(ms));
        append(cells, rate_cells(report, rung, ms));
        table.add(std::move(cells));
    }
    return table;
}

Table speedup_table(const RungReport& report) {
    Table table(
        {"version", "ms", "x CPU", "x previous", "distances/ms", "GB/s", "% of read ceiling"});
    std::optional<double> processor;
    for (const RungFigures& rung : report.rungs) {
        if (rung.on_host && !processor) processor = mean_total_ms(rung);
    }
    std::optional<double> previous;
    for (const RungFigures& rung : report.rungs) {
        const double ms = mean_total_ms(rung);
        const auto gain = [&](const std::optional<double>& over) {
            return over ? fmt::format("{:.2f}", *over / ms) : std::string();
        };
        std::vector<std::string> cells = {
            label(rung), figure(ms), gain(processor), gain(previous),
            fmt::format("{:.0f}", static_cast<double>(report.rows) / ms)};
        append(cells, rate_cells(report, rung, ms));
        table.add(std::move(cells));
        if (!rung.discarded) previous = ms;
    }
    return table;
}

Table parts_table(const RungReport& report) {
    Table table({"version", "DotProduct", "FirstMerge", "BotchedMergeSort", "overhead", "total",
                 "DotProduct's GB/s", "% of read ceiling"});
    for (const RungFigures& rung : report.rungs) {
        const auto part = [&](const std::function<double(const RungTimes&)>& of) {
            return mean(of_all(rung, of));
        };
        const double dot = part([](const RungTimes& times) { return times.dot_product; });
        std::vector<std::string> cells = {
            label(rung),
            figure(dot),
            figure(part([](const RungTimes& times) { return times.first_merge; })),
            figure(part([](const RungTimes& times) { return times.botched_merge_sort; })),
            figure(part([](const RungTimes& times) { return times.overhead(); })),
            figure(mean_total_ms(rung)),
        };
        append(cells, rate_cells(report, rung, dot));
        table.add(std::move(cells));
    }
    return table;
}

}  // namespace gloved::bench
