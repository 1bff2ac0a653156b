#include "daemon/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/quoting.hpp"
#include "common/wire/reply.hpp"
#include "kernels/canonical.hpp"
#include "kernels/query_vector.hpp"

namespace gloved::daemon {
namespace {

constexpr std::size_t kWordInMessage = 200;

/// «"word" is not in the model», with what helps.
Error unknown_word(std::string_view word, const format::Model& model) {
    std::string message = fmt::format("{} is not in the model", printable(word, kWordInMessage));
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
    if (lower != word && model.find(lower)) message += fmt::format("; {} is", printable(lower, kWordInMessage));
    return {ErrorCode::unknown_word, std::move(message)};
}

Result<kernels::Row> find_row(std::string_view word, const format::Model& model) {
    const auto row = model.find(word);
    if (!row) return unknown_word(word, model);
    return *row;
}

Result<std::string> similarity(const wire::Request& request, const format::Model& model) {
    const auto first = find_row(request.words[0], model);
    if (!first) return first.error();
    const auto second = find_row(request.words[1], model);
    if (!second) return second.error();
    const double norm = model.norms()[*first];
    if (norm == 0) {
        return Error{ErrorCode::zero_vector, fmt::format("{} has a zero vector: it has no direction to compare with",
                                                         printable(request.words[0], kWordInMessage))};
    }
    std::string reply = wire::ok_line(1);
    wire::append_score(reply, kernels::canonical_score(model.vector(*first).data(), norm, model.vector(*second).data(),
                                                       model.norms()[*second], model.dim()));
    reply += '\n';
    return reply;
}

std::string presence(const wire::Request& request, const format::Model& model) {
    std::string reply = wire::ok_line(request.words.size());
    for (const std::string& word : request.words) {
        // A word with a TAB or a line end in it (it came as \xHH) would tear the line apart.
        const bool plain = word.find_first_of("\t\r\n") == std::string::npos;
        reply += plain ? word : wire::quote_word(word);
        reply += model.find(word) ? "\t1\n" : "\t0\n";
    }
    return reply;
}

}  // namespace

Result<kernels::Query> resolve_near(const wire::Request& request, const format::Model& model) {
    const wire::Options& options = request.options;
    std::vector<kernels::WeightedRow> terms;
    terms.reserve(request.terms.size());
    kernels::Query query;
    for (const expr::Term& term : request.terms) {
        const auto row = find_row(term.word, model);
        if (!row) return row.error();
        terms.push_back({term.coefficient, *row});
        if (options.exclude_inputs) query.excluded.push_back(*row);
    }
    auto vector = kernels::make_query_vector(model, terms, options.norm == wire::Norm::unit);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    query.k = options.k;
    if (options.top) query.filter.rank_below = *options.top;
    if (options.min) query.filter.min_score = *options.min;
    if (!options.prefix.empty()) query.filter.rows = model.prefix_range(options.prefix);
    return query;
}

Result<std::string> answer_directly(const wire::Request& request, const format::Model& model) {
    if (request.verb == wire::Verb::sim) return similarity(request, model);
    assert(request.verb == wire::Verb::has);
    return presence(request, model);
}

}  // namespace gloved::daemon
