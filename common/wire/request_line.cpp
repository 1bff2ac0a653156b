#include "common/wire/request_line.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "common/base64.hpp"
#include "common/wire/reply.hpp"

namespace gloved::wire {
namespace {

/// The options, each with a space before it.
class OptionWriter {
  public:
    explicit OptionWriter(std::string& out) : out_(out) {}

    template <class Value>
    void add(std::string_view name, const Value& value) {
        fmt::format_to(std::back_inserter(out_), " {}={}", name, value);
    }
    void add_quoted(std::string_view name, std::string_view text) { add(name, quote_word(text)); }
    void add_names(std::string_view name, const std::vector<std::string>& names) {
        if (!names.empty()) add_quoted(name, fmt::format("{}", fmt::join(names, ",")));
    }

  private:
    std::string& out_;
};

void add_search_options(OptionWriter& line, const Options& options) {
    line.add("k", options.k);
    if (options.min) line.add("min", *options.min);
    if (options.top) line.add("top", *options.top);
    if (!options.prefix.empty()) line.add_quoted("prefix", options.prefix);
    line.add_names("within", options.within);
    line.add_names("without", options.without);
    if (options.only > 0) line.add("only", options.only);
    std::vector<std::string_view> fields;
    for (const Field field : options.fields) fields.push_back(name_of(field));
    if (!fields.empty()) line.add("fields", fmt::format("{}", fmt::join(fields, ",")));
    line.add("certify", options.certify ? 1 : 0);
}

void append_words(std::string& out, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        out += ' ';
        out += quote_word(word);
    }
}

void append_terms(std::string& out, const std::vector<expr::Term>& terms) {
    for (const expr::Term& term : terms) {
        const double size = std::abs(term.coefficient);
        if (std::signbit(term.coefficient)) {
            out += " -";
        } else if (&term != &terms.front()) {
            out += " +";
        }
        if (size != 1) fmt::format_to(std::back_inserter(out), " {} *", size);
        out += ' ';
        out += quote_word(term.word);
    }
}

}  // namespace

std::string request_line(const Request& request, Unknown unknown, WordCase word_case) {
    const Options& options = request.options;
    std::string text(verb_name(request.verb));
    OptionWriter line(text);
    add_search_options(line, options);
    if (request.verb == Verb::nearvec) {
        std::string vector;
        append_base64(vector, std::as_bytes(std::span(request.values)));
        line.add("base64", vector);
        return text;
    }
    if (request.verb == Verb::near) {
        line.add("norm", options.norm == Norm::unit ? "unit" : "raw");
        line.add("exclude", options.exclude_inputs ? "inputs" : "none");
        line.add("unknown", options.unknown.value_or(unknown) == Unknown::skip ? "skip" : "error");
    } else {
        assert(request.verb == Verb::analogy);
        line.add("method", options.method == Method::mul ? "mul" : "add");
    }
    line.add("case",
             options.word_case.value_or(word_case) == WordCase::ignore ? "ignore" : "exact");
    append_words(text, request.chosen);
    append_terms(text, request.terms);
    append_words(text, request.words);
    return text;
}

}  // namespace gloved::wire
