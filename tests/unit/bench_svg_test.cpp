// The chart: well-formed whatever it is given, and as long as its values say.
#include "tools/bench/svg.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/quoting.hpp"

namespace gloved::tests {
namespace {

using bench::Bar;
using bench::bar_chart;
using bench::ChartMark;
using bench::ChartText;

struct Element {
    std::string name;
    std::map<std::string, std::string> attributes;
    std::string text;
};

/// As much of an XML reader as the chart needs, and strict: every tag is closed in order, every
/// attribute quoted and named once, no bare «<» or «&», no byte that XML forbids. Throws
/// std::runtime_error with the place.
class Reader {
  public:
    explicit Reader(std::string_view xml) : all_(xml), left_(xml) {}

    std::vector<Element> read() {
        check_bytes();
        expect("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        element();
        skip_blanks();
        if (!left_.empty()) fail("something after the document");
        return std::move(elements_);
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(what + " at " + std::to_string(all_.size() - left_.size()));
    }
    void check_bytes() const {
        for (std::string_view rest = all_; !rest.empty();) {
            const std::size_t length = utf8_sequence_length(rest);
            const auto byte = static_cast<unsigned char>(rest[0]);
            if (length == 0) fail("invalid UTF-8");
            if (byte < 0x20 && byte != '\n' && byte != '\t') fail("control character");
            if (rest.starts_with("\xEF\xBF\xBE") || rest.starts_with("\xEF\xBF\xBF"))
                fail("not a character");
            rest.remove_prefix(length);
        }
    }
    void expect(std::string_view text) {
        if (!left_.starts_with(text)) fail("expected " + std::string(text));
        left_.remove_prefix(text.size());
    }
    bool accept(std::string_view text) {
        if (!left_.starts_with(text)) return false;
        left_.remove_prefix(text.size());
        return true;
    }
    void skip_blanks() {
        while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
    }
    std::string name() {
        std::size_t length = 0;
        while (
            length < left_.size() &&
            (std::isalnum(static_cast<unsigned char>(left_[length])) != 0 || left_[length] == '-'))
            ++length;
        if (length == 0) fail("expected a name");
        std::string found(left_.substr(0, length));
        left_.remove_prefix(length);
        return found;
    }
    /// Up to, not including, `end`; entities are resolved.
    std::string text_until(char end) {
        std::string text;
        while (true) {
            if (left_.empty()) fail("ends too early");
            if (left_[0] == end) return text;
            if (left_[0] == '<') fail("bare <");
            if (left_[0] != '&') {
                text += left_[0];
                left_.remove_prefix(1);
            } else if (accept("&amp;")) {
                text += '&';
            } else if (accept("&lt;")) {
                text += '<';
            } else if (accept("&gt;")) {
                text += '>';
            } else if (accept("&quot;")) {
                text += '"';
            } else {
                fail("bare &");
            }
        }
    }
    void element() {
        expect("<");
        const std::size_t index = elements_.size();
        elements_.push_back({name(), {}, {}});
        const std::string tag = elements_[index].name;
        while (accept(" ")) {
            const std::string attribute = name();
            expect("=\"");
            if (!elements_[index].attributes.emplace(attribute, text_until('"')).second)
                fail("twice: " + attribute);
            expect("\"");
        }
        if (accept("/>")) return;
        expect(">");
        while (!accept("</" + tag + ">")) {
            elements_[index].text += text_until('<');
            if (left_.starts_with("</" + tag + ">")) continue;
            element();
        }
    }

    std::string_view all_;
    std::string_view left_;
    std::vector<Element> elements_;
};

std::vector<Element> read(const std::string& svg) {
    try {
        return Reader(svg).read();
    } catch (const std::runtime_error& error) {
        ADD_FAILURE() << error.what() << "\n" << svg;
        return {};
    }
}

std::vector<Element> of_class(const std::vector<Element>& elements, const std::string& name) {
    std::vector<Element> found;
    for (const Element& element : elements) {
        const auto attribute = element.attributes.find("class");
        if (attribute != element.attributes.end() && attribute->second == name)
            found.push_back(element);
    }
    return found;
}

bool has_text(const std::vector<Element>& elements, const std::string& text) {
    for (const Element& element : elements) {
        if (element.name == "text" && element.text == text) return true;
    }
    return false;
}

double number(const Element& element, const char* attribute) {
    return std::stod(element.attributes.at(attribute));
}

const ChartText kText = {"One query on a device", "2,196,016 words of 300 float32", "ms"};

TEST(Chart, BarsAreAsLongAsTheLogarithmOfTheirValues) {
    const std::vector<Bar> bars = {{"v0", 1000}, {"v1", 100}, {"v3-16B", 10, true}, {"v5", 1}};
    const auto elements = read(bar_chart(kText, bars));
    const auto solid = of_class(elements, "bar");
    const auto faint = of_class(elements, "faint");
    ASSERT_EQ(solid.size(), 3U);
    ASSERT_EQ(faint.size(), 1U);
    const double decade = number(solid[0], "width") - number(solid[1], "width");
    EXPECT_GT(decade, 50);
    EXPECT_NEAR(number(solid[1], "width") - number(faint[0], "width"), decade, 0.2);
    EXPECT_NEAR(number(faint[0], "width") - number(solid[2], "width"), decade, 0.2);
    // The shortest can be seen, the longest is on the sheet, and none covers another.
    EXPECT_GT(number(solid[2], "width"), 5);
    EXPECT_LT(number(solid[0], "x") + number(solid[0], "width"), number(elements[0], "width"));
    EXPECT_GT(number(solid[1], "y"), number(solid[0], "y") + number(solid[0], "height"));
    EXPECT_TRUE(has_text(elements, "v3-16B"));
    EXPECT_TRUE(has_text(elements, "1000 ms"));
    EXPECT_TRUE(has_text(elements, "10.00 ms"));
    EXPECT_TRUE(has_text(elements, kText.title));
    EXPECT_TRUE(has_text(elements, kText.subtitle));
}

TEST(Chart, MarkStandsWhereABarOfItsValueEnds) {
    const std::vector<Bar> bars = {{"a", 3}, {"b", 0.85}};
    const auto elements = read(bar_chart(kText, bars, ChartMark{"read", 0.85}));
    const auto mark = of_class(elements, "mark");
    const auto solid = of_class(elements, "bar");
    ASSERT_EQ(mark.size(), 1U);
    ASSERT_EQ(solid.size(), 2U);
    EXPECT_NEAR(number(mark[0], "x1"), number(solid[1], "x") + number(solid[1], "width"), 0.11);
    EXPECT_EQ(number(mark[0], "x1"), number(mark[0], "x2"));
    EXPECT_TRUE(has_text(elements, "read: 0.850 ms"));
}

TEST(Chart, IsStandaloneAndReadableInLightAndDark) {
    const std::vector<Bar> bars = {{"v0", 1}};
    const std::string svg = bar_chart(kText, bars);
    const auto elements = read(svg);
    ASSERT_FALSE(elements.empty());
    EXPECT_EQ(elements[0].name, "svg");
    EXPECT_EQ(elements[0].attributes.at("xmlns"), "http://www.w3.org/2000/svg");
    EXPECT_EQ(of_class(elements, "ground").size(), 1U);
    EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
    for (const char* outside : {"href", "url(", "@import", "@font-face", "<script", "<image"}) {
        EXPECT_EQ(svg.find(outside), std::string::npos) << outside;
    }
}

TEST(Chart, AnyBytesAreWellFormed) {
    std::string hostile = "</text><script>&amp;\"'";
    for (int byte = 0; byte < 256; ++byte) hostile += static_cast<char>(byte);
    hostile += "\xEF\xBF\xBF\xED\xA0\x80é";
    const std::vector<Bar> bars = {{hostile, 5}};
    const auto elements = read(bar_chart({hostile, hostile, hostile}, bars, ChartMark{hostile, 2}));
    ASSERT_EQ(of_class(elements, "bar").size(), 1U);
    for (const Element& element : elements) EXPECT_NE(element.name, "script");
}

TEST(Chart, ValuesThatAreNoLengthGetNoBar) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<Bar> bars = {
        {"zero", 0}, {"less", -1}, {"nan", nan}, {"endless", infinity}, {"one", 1}};
    const auto elements = read(bar_chart(kText, bars, ChartMark{"none", nan}));
    EXPECT_EQ(of_class(elements, "bar").size(), 1U);
    EXPECT_TRUE(of_class(elements, "mark").empty());
    EXPECT_TRUE(has_text(elements, "nan"));
    EXPECT_TRUE(of_class(read(bar_chart(kText, {})), "bar").empty());
}

}  // namespace
}  // namespace gloved::tests
