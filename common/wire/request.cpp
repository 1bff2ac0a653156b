#include "common/wire/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "common/base64.hpp"
#include "common/error_with.hpp"
#include "common/expr/token.hpp"
#include "common/format/layout.hpp"
#include "common/quoting.hpp"

namespace gloved::wire {
namespace {

using expr::Option;
using expr::Tokenizer;

struct VerbEntry {
    std::string_view name;
    Verb verb;
    std::string_view options;  ///< that it takes, each between spaces
    std::size_t min_words;
    std::size_t max_words;
};

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

/// The list of verbs.
constexpr std::array kVerbs = {
    VerbEntry{"NEAR", Verb::near,
              " k min top prefix within without only norm exclude unknown case engine model "
              "fields certify ",
              0, kAny},
    VerbEntry{"SIM", Verb::sim, " norm unknown case model ", 2, 2},
    VerbEntry{"DIST", Verb::dist, " norm unknown case model ", 2, 2},
    VerbEntry{"VEC", Verb::vec, " encoding unknown case model ", 1, kAny},
    VerbEntry{"ANALOGY", Verb::analogy,
              " k min top prefix within without only method case engine model fields certify ", 3,
              3},
    VerbEntry{"ODD", Verb::odd, " norm unknown case model ", 3, kAny},
    VerbEntry{"RANK", Verb::rank,
              " top prefix within without norm unknown case engine model fields ", 2, 2},
    VerbEntry{"MATRIX", Verb::matrix, " metric unknown case model ", 1, kMaxMatrixWords},
    VerbEntry{"PREFIX", Verb::prefix, " k within without model fields ", 1, 1},
    VerbEntry{"NEARVEC", Verb::nearvec,
              " k min top prefix within without base64 engine model fields certify ", 1,
              format::kMaxDim},
    VerbEntry{"HAS", Verb::has, " within case model fields ", 1, kAny},
    VerbEntry{"MODELS", Verb::models, "", 0, 0},
    VerbEntry{"USE", Verb::use, "", 1, 1},
    VerbEntry{"LISTS", Verb::lists, " model ", 0, 0},
    VerbEntry{"STATS", Verb::stats, " model ", 0, 1},
    VerbEntry{"PING", Verb::ping, "", 0, 0},
    VerbEntry{"FORMAT", Verb::format, "", 1, 1},
    VerbEntry{"RELOAD", Verb::reload, "", 0, 1},
    VerbEntry{"HELP", Verb::help, "", 0, 0},
    VerbEntry{"QUIT", Verb::quit, "", 0, 0},
};

const VerbEntry& entry_of(Verb verb) {
    return *std::find_if(kVerbs.begin(), kVerbs.end(),
                         [&](const VerbEntry& e) { return e.verb == verb; });
}

Result<std::uint64_t> parse_count(const Option& option, std::uint64_t low, std::uint64_t high) {
    std::uint64_t value = 0;
    const char* end = option.value.data() + option.value.size();
    const auto [stop, fault] = std::from_chars(option.value.data(), end, value);
    if (fault != std::errc() || stop != end || value < low || value > high) {
        return bad_request("{}= takes a whole number from {} to {}, not {}", option.name, low, high,
                           printable(option.value));
    }
    return value;
}

/// `of_first` for the value `first`, `of_second` for `second`.
template <class T>
Result<T> parse_choice(const Option& option, std::string_view first, T of_first,
                       std::string_view second, T of_second) {
    if (option.value == first) return of_first;
    if (option.value == second) return of_second;
    return bad_request("{}= takes '{}' or '{}', not {}", option.name, first, second,
                       printable(option.value));
}

constexpr std::array kHitFields = {Field::row, Field::rank, Field::norm};
constexpr std::array kRankFields = {Field::score, Field::eligible};

Result<std::vector<Field>> parse_fields(const Option& option, Verb verb) {
    const std::span<const Field> possible =
        verb == Verb::rank ? std::span<const Field>(kRankFields) : kHitFields;
    std::vector<Field> fields;
    std::string_view rest = option.value;
    while (true) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view name = rest.substr(0, comma);
        const auto field = std::ranges::find(possible, name, name_of);
        if (field == possible.end()) {
            return bad_request("fields= {} between commas, not {}",
                               verb == Verb::rank ? "of RANK takes score and eligible"
                                                  : "takes row, rank and norm",
                               printable(name));
        }
        if (std::find(fields.begin(), fields.end(), *field) != fields.end()) {
            return bad_request("fields= names '{}' twice", name);
        }
        fields.push_back(*field);
        if (comma == rest.size()) return fields;
        rest.remove_prefix(comma + 1);
    }
}

/// Names with commas between.
Result<std::vector<std::string>> parse_names(const Option& option) {
    std::vector<std::string> names;
    for (std::string_view rest = option.value;;) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        if (comma == 0) {
            return bad_request("{}= takes names of lists between commas, not {}", option.name,
                               printable(option.value));
        }
        names.emplace_back(rest.substr(0, comma));
        if (comma == rest.size()) return names;
        rest.remove_prefix(comma + 1);
    }
}

/// The components of a vector, from the base64 of their bytes (float32, little-endian).
Result<std::vector<float>> parse_base64(const Option& option) {
    const auto bytes = decode_base64(option.value);
    if (!bytes) {
        return bad_request("{}= takes base64 with padding (RFC 4648), not {}", option.name,
                           printable(option.value));
    }
    std::vector<float> values(bytes->size() / sizeof(float));
    if (values.empty() || values.size() > format::kMaxDim || bytes->size() % sizeof(float) != 0) {
        return bad_request("{}= takes 1 to {} numbers of {} bytes each, not {} bytes", option.name,
                           format::kMaxDim, sizeof(float), bytes->size());
    }
    std::memcpy(values.data(), bytes->data(), bytes->size());
    const auto fault = std::find_if(values.begin(), values.end(),
                                    [](float value) { return !std::isfinite(value); });
    if (fault != values.end()) {
        return bad_request("{}=: number {} is {}, which is not finite", option.name,
                           fault - values.begin() + 1, *fault);
    }
    return values;
}

Status apply(const Option& option, Request& request) {
    Options& options = request.options;
    const auto store = [](auto result, auto& target) -> Status {
        if (!result) return result.error();
        target = *std::move(result);
        return {};
    };
    if (option.name == "k") return store(parse_count(option, 1, 0xFFFFFFFF), options.k);
    if (option.name == "top") return store(parse_count(option, 1, 0xFFFFFFFF), options.top);
    if (option.name == "only") return store(parse_count(option, 1, kMaxLineBytes), options.only);
    if (option.name == "exclude")
        return store(parse_choice(option, "none", false, "inputs", true), options.exclude_inputs);
    if (option.name == "certify")
        return store(parse_choice(option, "0", false, "1", true), options.certify);
    if (option.name == "within") return store(parse_names(option), options.within);
    if (option.name == "without") return store(parse_names(option), options.without);
    if (option.name == "fields") return store(parse_fields(option, request.verb), options.fields);
    if (option.name == "min") {
        auto number = expr::parse_number(option.value);
        if (!number) return bad_request("min=: {}", number.error().message);
        options.min = *number;
        return {};
    }
    if (option.name == "norm")
        return store(parse_choice(option, "raw", Norm::raw, "unit", Norm::unit), options.norm);
    if (option.name == "method")
        return store(parse_choice(option, "add", Method::add, "mul", Method::mul), options.method);
    if (option.name == "metric") {
        return store(
            parse_choice(option, "cosine", Metric::cosine, "sqeuclidean", Metric::sqeuclidean),
            options.metric);
    }
    if (option.name == "encoding") {
        return store(parse_choice(option, "decimal", Encoding::decimal, "base64", Encoding::base64),
                     options.encoding);
    }
    if (option.name == "unknown") {
        return store(parse_choice(option, "error", Unknown::error, "skip", Unknown::skip),
                     options.unknown);
    }
    if (option.name == "case") {
        return store(parse_choice(option, "exact", WordCase::exact, "ignore", WordCase::ignore),
                     options.word_case);
    }
    if (option.name == "base64") return store(parse_base64(option), request.values);
    std::string& text = option.name == "prefix"   ? options.prefix
                        : option.name == "engine" ? options.engine
                                                  : options.model;
    if (option.value.empty()) return bad_request("{}= needs a value", option.name);
    text = option.value;
    return {};
}

Status parse_options(Tokenizer& tokens, const VerbEntry& entry, Request& request) {
    std::vector<std::string> seen;
    while (true) {
        auto option = tokens.next_option();
        if (!option) return option.error();
        if (!option->has_value()) return {};
        const std::string& name = (*option)->name;
        if (entry.options.find(" " + name + " ") == std::string_view::npos) {
            return bad_request("{} has no option {}=; to mean a word, quote it: {}", entry.name,
                               printable(name), printable(name + "=" + (*option)->value));
        }
        if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
            return bad_request("{}= is given twice", name);
        }
        seen.push_back(name);
        if (Status applied = apply(**option, request); !applied) return applied;
    }
}

/// The words of only=, which stand before all others.
Status parse_chosen(Tokenizer& tokens, Request& request) {
    const std::size_t count = request.options.only;
    if (count > 0 && !request.options.engine.empty())
        return bad_request("only= and engine=: no engine chooses among the words of a request");
    while (request.chosen.size() < count) {
        auto token = tokens.next();
        if (!token) return token.error();
        if (!token->has_value()) {
            return bad_request("only={} takes the first {} words, and there are {}", count, count,
                               request.chosen.size());
        }
        if ((*token)->text.empty()) return bad_request("an empty word");
        request.chosen.push_back(std::move((*token)->text));
    }
    return {};
}

/// «2 words or groups», «at least 1 word», «1 to 4096 words».
std::string wanted_words(const VerbEntry& entry) {
    const std::size_t last = entry.max_words == kAny ? entry.min_words : entry.max_words;
    if (last == 0) return "no words";
    const std::string_view what = entry.verb == Verb::nearvec ? "number" : "word";
    const std::string_view plural = last == 1 ? "" : takes_groups(entry.verb) ? "s or groups" : "s";
    const std::string count =
        entry.min_words == entry.max_words ? fmt::format("{}", entry.min_words)
        : entry.max_words == kAny          ? fmt::format("at least {}", entry.min_words)
                                  : fmt::format("{} to {}", entry.min_words, entry.max_words);
    return fmt::format("{} {}{}", count, what, plural);
}

Status check_count(std::size_t count, const VerbEntry& entry) {
    if (count >= entry.min_words && count <= entry.max_words) return {};
    return bad_request("{} takes {}, not {}", entry.name, wanted_words(entry), count);
}

Status parse_words(Tokenizer& tokens, const VerbEntry& entry, Request& request) {
    while (true) {
        auto token = tokens.next();
        if (!token) return token.error();
        if (!token->has_value()) break;
        if ((*token)->text.empty()) return bad_request("an empty word");
        request.words.push_back(std::move((*token)->text));
    }
    if (Status counted = check_count(request.words.size(), entry); !counted) return counted;
    if (entry.verb == Verb::format) {
        const std::string& form = request.words[0];
        if (form != "text" && form != "json") {
            return bad_request("FORMAT takes 'text' or 'json', not {}", printable(form));
        }
        request.form = form == "json" ? Form::json : Form::text;
    }
    if (entry.verb == Verb::stats && !request.words.empty() && request.words[0] != "prometheus") {
        return bad_request("STATS takes nothing or 'prometheus', not {}",
                           printable(request.words[0]));
    }
    return {};
}

/// For each token that opens a group, the place of the ')' that closes it; 0 for all others. A '('
/// that is never closed, or has nothing inside, opens no group.
std::vector<std::size_t> find_groups(const std::vector<expr::Token>& tokens) {
    std::vector<std::size_t> closing(tokens.size());
    std::vector<std::size_t> open;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
        if (tokens[at].is("(")) {
            open.push_back(at);
        } else if (tokens[at].is(")") && !open.empty()) {
            if (open.back() + 1 < at) closing[open.back()] = at;
            open.pop_back();
        }
    }
    return closing;
}

/// The line from the token `first` to the token `last`. A TAB would end a field of the reply.
std::string typed_text(const expr::Token& first, const expr::Token& last) {
    const char* const end = last.typed.data() + last.typed.size();
    std::string text(first.typed.data(), end);
    std::ranges::replace(text, '\t', ' ');
    return text;
}

/// The words and groups of a verb that takes groups.
Status parse_arguments(Tokenizer& tokens, const VerbEntry& entry, Request& request) {
    auto list = tokens.take_all();
    if (!list) return list.error();
    const std::vector<std::size_t> closing = find_groups(*list);
    for (std::size_t at = 0; at < list->size(); ++at) {
        const std::size_t last = closing[at];
        expr::Token& first = (*list)[at];
        if (last == 0) {
            if (first.text.empty()) return bad_request("an empty word");
            request.arguments.push_back({std::move(first.text), {}});
            continue;
        }
        std::string typed = typed_text(first, (*list)[last]);
        const auto begin = list->begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = list->begin() + static_cast<std::ptrdiff_t>(last) + 1;
        auto terms = expr::parse_expression(
            std::vector(std::make_move_iterator(begin), std::make_move_iterator(end)));
        if (!terms) return terms.error();
        request.arguments.push_back({std::move(typed), *std::move(terms)});
        at = last;
    }
    return check_count(request.arguments.size(), entry);
}

Status parse_terms(Tokenizer& tokens, const VerbEntry&, Request& request) {
    auto terms = expr::parse_expression(tokens);
    if (!terms) return terms.error();
    request.terms = *std::move(terms);
    return {};
}

/// The numbers of NEARVEC, unless base64= had them.
Status parse_vector(Tokenizer& tokens, const VerbEntry& entry, Request& request) {
    const bool is_given = !request.values.empty();
    while (true) {
        if (!is_given) tokens.take_numbers(request.values);
        // The end, a number in quotes, or a fault.
        const auto token = tokens.next();
        if (!token) return token.error();
        if (!token->has_value()) break;
        if (is_given) return bad_request("NEARVEC takes numbers or base64=, not both");
        const auto value = expr::parse_float32((*token)->text);
        if (!value) return value.error();
        request.values.push_back(*value);
    }
    return check_count(request.values.size(), entry);
}

}  // namespace

bool takes_groups(Verb verb) {
    return verb == Verb::sim || verb == Verb::dist || verb == Verb::rank || verb == Verb::odd;
}

std::string_view name_of(Field field) {
    constexpr std::array<std::string_view, 5> kNames = {"row", "rank", "norm", "score", "eligible"};
    return kNames[static_cast<std::size_t>(field)];
}

std::string_view verb_name(Verb verb) { return entry_of(verb).name; }

std::optional<Verb> find_verb(std::string_view token) {
    const auto found = std::find_if(kVerbs.begin(), kVerbs.end(),
                                    [&](const VerbEntry& e) { return e.name == token; });
    if (found == kVerbs.end()) return std::nullopt;
    return found->verb;
}

std::optional<Verb> find_verb_with_option(std::string_view name) {
    const std::string between_spaces = fmt::format(" {} ", name);
    const auto found = std::ranges::find_if(kVerbs, [&](const VerbEntry& e) {
        return e.options.find(between_spaces) != std::string_view::npos;
    });
    if (found == kVerbs.end()) return std::nullopt;
    return found->verb;
}

Result<Request> parse_request(std::string_view line) {
    if (line.find('\0') != std::string_view::npos) return bad_request("a NUL byte in the line");
    if (line.find('\r') != std::string_view::npos)
        return bad_request("a CR inside the line; lines end with LF or CR LF");

    Tokenizer tokens(line);
    auto first = tokens.next();
    if (!first) return first.error();
    if (!first->has_value()) return bad_request("an empty line; try HELP");

    Request request;
    const auto verb = (*first)->quoted ? std::nullopt : find_verb((*first)->text);
    if (!verb) {
        auto terms = expr::parse_expression(line);
        if (!terms) return terms.error();
        request.terms = *std::move(terms);
        return request;
    }
    request.verb = *verb;
    const VerbEntry& entry = entry_of(*verb);
    if (Status parsed = parse_options(tokens, entry, request); !parsed) return parsed.error();
    if (Status parsed = parse_chosen(tokens, request); !parsed) return parsed.error();
    const auto parse_rest = *verb == Verb::near      ? parse_terms
                            : *verb == Verb::nearvec ? parse_vector
                            : takes_groups(*verb)    ? parse_arguments
                                                     : parse_words;
    if (const Status parsed = parse_rest(tokens, entry, request); !parsed) {
        Error error = parsed.error();
        if (request.options.only > 0)
            error.message += fmt::format(" (after the {} of only=)", request.options.only);
        return error;
    }
    return request;
}

}  // namespace gloved::wire
