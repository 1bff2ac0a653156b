#include "client/reply_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/error_with.hpp"
#include "common/expr/token.hpp"
#include "common/quoting.hpp"

namespace gloved::client {
namespace {

using wire::Verb;

/// HAS for the words of a MATRIX or VEC, as they were typed, with what decides how they are found.
std::string has_request(std::string_view line) {
    std::string request = "HAS";
    expr::Tokenizer tokens(line);
    static_cast<void>(tokens.next());
    for (auto option = tokens.next_option(); option && *option; option = tokens.next_option()) {
        const auto& [name, value] = **option;
        if (name == "model") request += fmt::format(" model={}", printable(value, value.size()));
        if (name == "case") request += " case=" + value;
    }
    const auto words = tokens.take_all();
    const char* const begin = words->front().typed.data();
    request += ' ';
    request += line.substr(static_cast<std::size_t>(begin - line.data()));
    return request;
}

}  // namespace

Result<ReplyTable> ReplyTable::create(std::string_view line, RowStyle style) {
    const auto request = wire::parse_request(line);
    if (!request) return request.error();
    ReplyTable table(style);
    table.describe(*request);
    if (table.headings_.empty()) {
        return bad_request("the answer to {} is no table; leave --format out",
                           wire::verb_name(request->verb));
    }
    if (request->verb == Verb::matrix || request->verb == Verb::vec)
        table.first_request_ = has_request(line);
    return table;
}

void ReplyTable::describe(const wire::Request& request) {
    verb_ = request.verb;
    const auto add_fields = [&] {
        for (const wire::Field field : request.options.fields)
            headings_.emplace_back(wire::name_of(field));
    };
    const auto compare = [&](const char* heading) {
        headings_ = {"a", "b", heading};
        add_label({request.arguments[0].text, request.arguments[1].text});
        add_fields();
    };
    switch (request.verb) {
        case Verb::near:
        case Verb::nearvec:
        case Verb::analogy:
            headings_ = {"word", "score"};
            return add_fields();
        case Verb::odd:
            headings_ = {"word", "score"};
            return;
        case Verb::prefix:
            headings_ = {"word"};
            return add_fields();
        case Verb::sim:
            return compare("score");
        case Verb::dist:
            return compare("distance");
        case Verb::rank:
            return compare("rank");
        case Verb::matrix:
        case Verb::vec:
        case Verb::has:
            break;
        default:
            return;
    }
    headings_ = {"word"};
    for (const std::string& word : request.words) add_label({word});
    if (request.verb == Verb::matrix) {
        headings_.insert(headings_.end(), request.words.begin(), request.words.end());
    } else if (request.verb == Verb::has) {
        headings_.emplace_back("known");
        if (!request.options.within.empty()) headings_.emplace_back("within");
        add_fields();
    } else if (request.options.encoding == wire::Encoding::decimal) {
        is_numbers_ = true;
    } else {
        headings_.emplace_back("vector_base64");
    }
}

void ReplyTable::add_label(std::initializer_list<std::string_view> cells) {
    append_row(labels_.emplace_back(), cells, style_);
    labels_.back().back() = style_.separator;
    label_cells_ = cells.size();
}

void ReplyTable::take_first(std::string_view bytes) {
    lines_.append(bytes);
    while (const auto line = lines_.next()) known_.push_back(line->ends_with("\t1"));
}

void ReplyTable::take(std::string_view bytes, std::string& out) {
    lines_.append(bytes);
    while (const auto line = lines_.next()) add_line(*line, out);
}

void ReplyTable::finish(std::string& out) {
    if (!is_begun_) add_line({}, out);
    add_missing_rows(out);
}

void ReplyTable::add_line(std::string_view line, std::string& out) {
    if (!std::exchange(is_begun_, true)) {
        known_.resize(labels_.size(), true);
        if (verb_ == Verb::matrix) {
            is_numbers_ = std::ranges::find(known_, false) == known_.end();
        } else if (is_numbers_) {
            // Of vectors, the first line tells how many columns there are.
            const auto columns = std::ranges::count(line, '\t') + 1;
            for (std::ptrdiff_t i = 0; i < columns; ++i) headings_.push_back(fmt::format("v{}", i));
        }
        for (const std::string& heading : headings_) {
            append_cell(out, heading, style_);
            out += style_.separator;
        }
        out.back() = '\n';
    }
    if (line.empty()) return;
    add_missing_rows(out);
    // The label is the word as it was typed; the reply may have it in quotes.
    if (verb_ == Verb::has) line.remove_prefix(line.find('\t') + 1);
    add_row(line, out);
}

void ReplyTable::add_missing_rows(std::string& out) {
    while (row_ < known_.size() && !known_[row_]) add_row(std::nullopt, out);
}

void ReplyTable::add_row(std::optional<std::string_view> line, std::string& out) {
    if (row_ < labels_.size()) out += labels_[row_];
    ++row_;
    if (line && is_numbers_) {
        // No cell needs a look.
        const auto begin = static_cast<std::ptrdiff_t>(out.size());
        out += *line;
        std::replace(out.begin() + begin, out.end(), '\t', style_.separator);
        out += '\n';
        return;
    }
    for (std::size_t column = 0; column + label_cells_ < headings_.size(); ++column) {
        if (line && !(verb_ == Verb::matrix && !known_[column])) {
            const std::size_t end = std::min(line->find('\t'), line->size());
            append_cell(out, line->substr(0, end), style_);
            line->remove_prefix(std::min(end + 1, line->size()));
        }
        out += style_.separator;
    }
    out.back() = '\n';
}

}  // namespace gloved::client
