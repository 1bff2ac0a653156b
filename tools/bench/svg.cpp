#include "tools/bench/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <fstream>

#include "common/files.hpp"
#include "common/quoting.hpp"
#include "tools/bench/table.hpp"

namespace gloved::bench {
namespace {

constexpr double kWidth = 860;
constexpr double kLeft = 130;   // where bars begin
constexpr double kRight = 750;  // where the scale ends; values stand behind their bars
constexpr double kTop = 74;
constexpr double kPitch = 30;
constexpr double kBarHeight = 20;

// The colours come last, where a dark viewer replaces them. All text is at least 4.5 : 1 against
// its background.
constexpr const char* kStyle = R"(  <style>
    text { font: 13px sans-serif; fill: #1f2328 }
    .title { font-size: 16px; font-weight: bold }
    .small { font-size: 12px; fill: #57606a }
    .ground { fill: #ffffff }
    .bar { fill: #2f6fb3 }
    .faint { fill: #9db9d6 }
    .grid { stroke: #d0d7de; stroke-width: 1 }
    .mark { stroke: #b3472f; stroke-width: 1.5; stroke-dasharray: 5 4 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9da7b1 }
      .ground { fill: #0d1117 }
      .bar { fill: #58a6ff }
      .faint { fill: #33557d }
      .grid { stroke: #30363d }
      .mark { stroke: #ff8f73 }
    }
  </style>
)";

/// The length of the UTF-8 sequence at the beginning of `text` where it is one that XML may hold,
/// else 0.
std::size_t xml_sequence(std::string_view text) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 1 && static_cast<unsigned char>(text[0]) < 0x20 && text[0] != '\t') return 0;
    // U+FFFE and U+FFFF.
    return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF") ? 0 : length;
}

/// As the content of an element.
std::string escaped(std::string_view text) {
    std::string xml;
    while (!text.empty()) {
        const std::size_t length = xml_sequence(text);
        if (length == 0) {
            xml += '?';
        } else if (text[0] == '&') {
            xml += "&amp;";
        } else if (text[0] == '<') {
            xml += "&lt;";
        } else if (text[0] == '>') {
            xml += "&gt;";
        } else {
            xml += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return xml;
}

bool drawable(double value) { return std::isfinite(value) && value > 0; }

/// Whole powers of ten around all values, at least one decade.
struct Scale {
    int first = 0;
    int last = 1;

    double x(double value) const {
        return kLeft +
               (kRight - kLeft) * (std::log10(value) - first) / static_cast<double>(last - first);
    }
};

Scale scale_for(std::span<const Bar> bars, const std::optional<ChartMark>& mark) {
    std::optional<double> least;
    double most = 0;
    const auto include = [&](double value) {
        if (!drawable(value)) return;
        least = std::min(least.value_or(value), value);
        most = std::max(most, value);
    };
    for (const Bar& bar : bars) include(bar.value);
    if (mark) include(mark->value);
    if (!least) return {};
    Scale scale;
    // A little lower, so that the shortest bar can be seen.
    scale.first = static_cast<int>(std::floor(std::log10(*least) - 0.1));
    scale.last = std::max(static_cast<int>(std::ceil(std::log10(most))), scale.first + 1);
    return scale;
}

}  // namespace

std::string bar_chart(const ChartText& text, std::span<const Bar> bars,
                      const std::optional<ChartMark>& mark) {
    const Scale scale = scale_for(bars, mark);
    const double bottom = kTop + kPitch * static_cast<double>(bars.size());
    const bool marked = mark && drawable(mark->value);
    const double height = bottom + (marked ? 52 : 32);

    std::string svg = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" role=\"img\">\n  <title>{2}</title>\n",
        kWidth, height, escaped(text.title));
    svg += kStyle;
    svg += fmt::format("  <rect class=\"ground\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", kWidth,
                       height);
    svg +=
        fmt::format("  <text class=\"title\" x=\"16\" y=\"28\">{}</text>\n", escaped(text.title));
    svg += fmt::format("  <text class=\"small\" x=\"16\" y=\"48\">{}</text>\n",
                       escaped(text.subtitle));
    for (int power = scale.first; power <= scale.last; ++power) {
        const double value = std::pow(10.0, power);
        const double x = scale.x(value);
        svg += fmt::format(
            "  <line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
            "y2=\"{2:.1f}\"/>\n",
            x, kTop - 8, bottom);
        svg += fmt::format(
            "  <text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g} "
            "{}</text>\n",
            x, bottom + 18, value, escaped(text.unit));
    }
    double y = kTop;
    for (const Bar& bar : bars) {
        const double base = y + kBarHeight - 5;
        svg += fmt::format("  <text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                           kLeft - 8, base, escaped(bar.label));
        if (drawable(bar.value)) {
            const double end = scale.x(bar.value);
            svg += fmt::format(
                "  <rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                "height=\"{:.1f}\"/>\n",
                bar.faint ? "faint" : "bar", kLeft, y, end - kLeft, kBarHeight);
            svg += fmt::format("  <text x=\"{:.1f}\" y=\"{:.1f}\">{} {}</text>\n", end + 6, base,
                               figure(bar.value), escaped(text.unit));
        }
        y += kPitch;
    }
    if (marked) {
        const double x = scale.x(mark->value);
        svg += fmt::format(
            "  <line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
            "y2=\"{2:.1f}\"/>\n",
            x, kTop - 8, bottom + 24);
        svg += fmt::format("  <text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}: {} {}</text>\n",
                           x + 6, bottom + 38, escaped(mark->label), figure(mark->value),
                           escaped(text.unit));
    }
    return svg + "</svg>\n";
}

Status write_chart(const std::string& path, const std::string& svg) {
    std::ofstream file(path, std::ios::binary);
    file << svg;
    file.close();
    return file ? Status() : system_error(path, "cannot write", errno);
}

}  // namespace gloved::bench
