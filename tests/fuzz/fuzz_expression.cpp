// Any bytes as an expression. What parses is finite and names words, and its flattened terms,
// written out as an expression, parse to the same terms.
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/expr/expression.hpp"
#include "common/result.hpp"
#include "common/wire/reply.hpp"
#include "tests/fuzz/check.hpp"

using namespace gloved;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto terms = expr::parse_expression(text);
    if (!terms) {
        GLOVED_CHECK(terms.error().code == ErrorCode::bad_request);
        GLOVED_CHECK(terms.error().message.find('\n') == std::string::npos);
        return 0;
    }
    GLOVED_CHECK(!terms->empty());
    std::string flattened;
    for (const expr::Term& term : *terms) {
        GLOVED_CHECK(std::isfinite(term.coefficient));
        GLOVED_CHECK(!term.word.empty());
        // fmt's default form of a double is the shortest that reads back as the same.
        flattened += fmt::format("+ {} * {} ", term.coefficient, wire::quote_word(term.word));
    }
    const auto again = expr::parse_expression(flattened);
    GLOVED_CHECK(again);
    GLOVED_CHECK(*again == *terms);
    return 0;
}
