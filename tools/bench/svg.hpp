// A bar chart as a file of its own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gloved::bench {

struct Bar {
    std::string label;
    double value = 0;    ///< finite and above 0; others get no bar
    bool faint = false;  ///< drawn lighter: beside the path
};

struct ChartText {
    std::string title;
    std::string subtitle;
    std::string unit;  ///< behind every value: «ms»
};

/// A vertical line across all bars.
struct ChartMark {
    std::string label;
    double value = 0;
};

/// A standalone SVG 1.1 document: horizontal bars on a logarithmic scale in the order given, each
/// with its value. It brings its own background, follows a dark viewer where that says it is one,
/// and asks for no font in particular. Any bytes may stand in the texts: what XML cannot hold is
/// replaced.
std::string bar_chart(const ChartText& text, std::span<const Bar> bars,
                      const std::optional<ChartMark>& mark = {});

/// Writes a chart to a file. Error: io.
Status write_chart(const std::string& path, const std::string& svg);

}  // namespace gloved::bench
