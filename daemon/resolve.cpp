#include "daemon/resolve.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/expr/expression.hpp"
#include "common/quoting.hpp"
#include "daemon/few_rows.hpp"
#include "daemon/text_source.hpp"
#include "kernels/canonical.hpp"
#include "kernels/query_vector.hpp"

namespace gloved::daemon {
namespace {

/// A word takes a loop some microseconds.
constexpr std::size_t kMaxQuickWords = 64;
/// All cases of so many bytes take a loop a tenth of a millisecond.
constexpr std::size_t kMaxQuickBytes = 2048;

/// The rows of `words`, without those that are skipped. Error: unknown_word, also if none is left.
Result<std::vector<kernels::Row>> find_rows(const std::vector<std::string>& words,
                                            WordFinder& finder) {
    std::vector<kernels::Row> rows;
    rows.reserve(words.size());
    for (const std::string& word : words) {
        const auto row = finder.find_or_skip(word);
        if (!row) return row.error();
        if (*row) rows.push_back(**row);
    }
    if (rows.empty()) return finder.unknown_word(words[0]);
    return rows;
}

Error zero_word(const std::string& word) {
    return error_with(ErrorCode::zero_vector,
                      "{} has a zero vector: it has no direction to compare with",
                      printable(word, kMaxWordInMessage));
}

/// A row's vector as a query vector. Error: zero_vector, with the word.
Result<kernels::QueryVector> vector_of(const format::Model& model, kernels::Row row,
                                       const std::string& word) {
    const auto values = model.vector(row);
    auto vector = kernels::make_query_vector(std::vector<float>(values.begin(), values.end()));
    if (!vector && vector.error().code == ErrorCode::zero_vector) return zero_word(word);
    return vector;
}

/// The rows of an expression's words, with their coefficients, without those that are skipped.
/// Error: unknown_word, also if none is left.
Result<std::vector<kernels::WeightedRow>> find_terms(const std::vector<expr::Term>& terms,
                                                     WordFinder& finder) {
    std::vector<kernels::WeightedRow> rows;
    rows.reserve(terms.size());
    for (const expr::Term& term : terms) {
        const auto row = finder.find_or_skip(term.word);
        if (!row) return row.error();
        if (*row) rows.push_back({term.coefficient, **row});
    }
    if (rows.empty()) return finder.unknown_word(terms[0].word);
    return rows;
}

/// The rows of an argument, with their coefficients. Error: unknown_word, also if none is left.
Result<std::vector<kernels::WeightedRow>> find_terms(const wire::Argument& argument,
                                                     WordFinder& finder) {
    if (!argument.terms.empty()) return find_terms(argument.terms, finder);
    const auto row = finder.find(argument.text);
    if (!row) return finder.unknown_word(argument.text);
    return std::vector{kernels::WeightedRow{1.0, *row}};
}

/// No cosine reaches it.
constexpr double kAboveAllScores = 2;

/// The row that an argument stands for; nullopt if that is a combination of rows.
std::optional<kernels::Row> only_row(const std::vector<kernels::WeightedRow>& terms) {
    if (terms.size() != 1 || terms[0].coefficient != 1.0) return std::nullopt;
    return terms[0].row;
}

/// An argument's vector and its norm, which may be 0.
struct ArgumentVector {
    std::span<const float> values;
    double norm = 0;
    std::vector<float> computed;  // what `values` are, unless they are a row's
};

/// How the rows of a group become one vector: weighted_sum or weighted_mean.
using Combine = Result<std::vector<float>> (*)(const format::Model&,
                                               std::span<const kernels::WeightedRow>, bool);

Result<ArgumentVector> argument_vector(const std::vector<kernels::WeightedRow>& terms,
                                       wire::Norm norm, const format::Model& model,
                                       Combine combine = kernels::weighted_sum) {
    ArgumentVector vector;
    const auto row = only_row(terms);
    if (row && norm == wire::Norm::raw) {
        vector.values = model.vector(*row);
        vector.norm = model.norms()[*row];
        return vector;
    }
    auto values = combine(model, terms, norm == wire::Norm::unit);
    if (!values) return values.error();
    vector.computed = *std::move(values);
    vector.values = vector.computed;
    vector.norm = kernels::canonical_norm(vector.values.data(), vector.values.size());
    return vector;
}

using ModelPointer = std::shared_ptr<const format::Model>;

/// SIM and DIST.
Result<Lines> similarity(const wire::Request& request, const format::Model& model,
                         WordFinder& finder, wire::Form form) {
    const bool is_distance = request.verb == wire::Verb::dist;
    std::array<ArgumentVector, 2> vectors;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
        const auto terms = find_terms(request.arguments[i], finder);
        if (!terms) return terms.error();
        auto vector = argument_vector(*terms, request.options.norm, model,
                                      is_distance ? kernels::weighted_mean : kernels::weighted_sum);
        if (!vector) return vector.error();
        vectors[i] = *std::move(vector);
    }
    const auto& [a, b] = vectors;
    if (is_distance) {
        return score_line(
            form, "distance",
            kernels::canonical_squared_distance(a.values.data(), b.values.data(), model.dim()));
    }
    if (a.norm == 0) return zero_word(request.arguments[0].text);
    return score_line(
        form, "score",
        kernels::canonical_score(a.values.data(), a.norm, b.values.data(), b.norm, model.dim()));
}

/// The reply of one line for each word of the request that is not skipped, which a `Source` renders
/// as `how` says.
template <class Source, class How>
Result<Lines> lines_of_rows(const wire::Request& request, How how, const ModelPointer& model,
                            WordFinder& finder, wire::Form form) {
    auto rows = find_rows(request.words, finder);
    if (!rows) return rows.error();
    const std::size_t count = rows->size();
    return Lines{count, {}, std::make_unique<Source>(form, how, *std::move(rows), model)};
}

/// What ODD compares.
struct OddArgument {
    const wire::Argument* argument;
    std::vector<kernels::WeightedRow> terms;
};

/// The arguments of ODD, without words that are skipped. Error: unknown_word, also if too few for a
/// majority are left.
Result<std::vector<OddArgument>> find_odd_arguments(const std::vector<wire::Argument>& arguments,
                                                    WordFinder& finder) {
    constexpr std::size_t kFewest = 3;
    std::vector<OddArgument> found;
    found.reserve(arguments.size());
    std::optional<Error> first_skipped;
    for (const wire::Argument& argument : arguments) {
        if (argument.terms.empty()) {
            const auto row = finder.find_or_skip(argument.text);
            if (!row) return row.error();
            if (*row) {
                found.push_back({&argument, {{1.0, **row}}});
            } else if (!first_skipped) {
                first_skipped = finder.unknown_word(argument.text);
            }
        } else {
            auto terms = find_terms(argument.terms, finder);
            if (!terms) return terms.error();
            found.push_back({&argument, *std::move(terms)});
        }
    }
    if (found.size() < kFewest && first_skipped) return *first_skipped;
    return found;
}

/// ODD: the argument with the smallest cosine to the sum of all unit vectors; of equals the first.
Result<Lines> odd_one(const wire::Request& request, const ModelPointer& model, WordFinder& finder,
                      wire::Form form) {
    const auto arguments = find_odd_arguments(request.arguments, finder);
    if (!arguments) return arguments.error();
    // Vectors of groups are computed twice: those of thousands would take much memory.
    std::vector<double> sum(model->dim(), 0.0);
    for (const OddArgument& each : *arguments) {
        const auto vector = argument_vector(each.terms, request.options.norm, *model);
        if (!vector) return vector.error();
        for (std::size_t i = 0; i < sum.size() && vector->norm != 0; ++i)
            sum[i] += static_cast<double>(vector->values[i]) / vector->norm;
    }
    const auto whole = kernels::make_query_vector(std::vector<float>(sum.begin(), sum.end()));
    if (!whole) return whole.error();
    const wire::Argument* odd = arguments->front().argument;
    double lowest = std::numeric_limits<double>::infinity();
    for (const OddArgument& each : *arguments) {
        const auto vector = argument_vector(each.terms, request.options.norm, *model);
        if (!vector) return vector.error();
        const double score = kernels::canonical_score(
            whole->values.data(), whole->norm, vector->values.data(), vector->norm, model->dim());
        if (score < lowest) {
            odd = each.argument;
            lowest = score;
        }
    }
    return Lines{1, {}, std::make_unique<OddLine>(form, odd->text, lowest, model)};
}

/// Names the lists of within= and without= in `filter`.
Status name_lists(const wire::Options& options, const WordLists& lists, kernels::Filter& filter) {
    const auto within = lists.find(options.within);
    if (!within) return within.error();
    const auto without = lists.find(options.without);
    if (!without) return without.error();
    filter.within = *within;
    filter.without = *without;
    filter.lists = lists.rows().get();
    return {};
}

Result<Lines> has_lines(const wire::Request& request, const ModelPointer& model,
                        const WordLists& lists, WordFinder& finder, wire::Form form) {
    kernels::Filter filter;
    if (Status named = name_lists(request.options, lists, filter); !named) return named.error();
    return Lines{
        request.words.size(),
        {},
        std::make_unique<PresenceLines>(form, request.words, finder, request.options.fields, model,
                                        lists.rows(), filter.within)};
}

/// PREFIX: the keys that start with the text, by rank.
Result<Lines> keys_with_prefix(const wire::Request& request, const ModelPointer& model,
                               const WordLists& lists, wire::Form form) {
    kernels::Filter filter;
    if (Status named = name_lists(request.options, lists, filter); !named) return named.error();
    const format::RowRange range = model->prefix_range(request.words[0]);
    const auto ranks = model->ranks();
    std::vector<kernels::Row> rows(range.size());
    std::iota(rows.begin(), rows.end(), static_cast<kernels::Row>(range.first));
    if (filter.names_lists()) {
        const auto memberships = lists.rows()->memberships();
        std::erase_if(rows,
                      [&](kernels::Row row) { return !filter.takes_lists(memberships[row]); });
    }
    const std::size_t k = std::min(request.options.k, rows.size());
    std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
                      [&](kernels::Row a, kernels::Row b) { return ranks[a] < ranks[b]; });
    rows.resize(k);
    rows.shrink_to_fit();  // an empty prefix matches all words
    return Lines{
        k, {}, std::make_unique<RowLines>(form, std::move(rows), request.options.fields, model)};
}

std::vector<kernels::Row> rows_of(const std::vector<kernels::WeightedRow>& terms) {
    std::vector<kernels::Row> rows;
    rows.reserve(terms.size());
    for (const kernels::WeightedRow& term : terms) rows.push_back(term.row);
    return rows;
}

/// NEAR: the sum of the terms, and the rows to exclude.
Status resolve_near(const wire::Request& request, const format::Model& model, WordFinder& finder,
                    kernels::Query& query) {
    const auto terms = find_terms(request.terms, finder);
    if (!terms) return terms.error();
    if (request.options.exclude_inputs) query.excluded = rows_of(*terms);
    auto vector =
        kernels::make_query_vector(model, *terms, request.options.norm == wire::Norm::unit);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    return {};
}

/// ANALOGY: a is to b as c is to the answer.
Status resolve_analogy(const wire::Request& request, const format::Model& model, WordFinder& finder,
                       kernels::Query& query) {
    const auto& words = request.words;
    const auto found = find_rows(words, finder);
    if (!found) return found.error();
    const std::vector<kernels::Row>& rows = *found;
    query.excluded = rows;
    if (request.options.method == wire::Method::add) {
        const std::array<kernels::WeightedRow, 3> terms = {
            {{1.0, rows[1]}, {-1.0, rows[0]}, {1.0, rows[2]}}};
        auto vector = kernels::make_query_vector(model, terms, true);
        if (!vector) return vector.error();
        query.kind = kernels::Cosine{*std::move(vector)};
        return {};
    }
    kernels::CosMul product;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
        auto vector = vector_of(model, rows[i], words[i]);
        if (!vector) return vector.error();
        (i == 0 ? product.negatives : product.positives).push_back(*std::move(vector));
    }
    query.kind = std::move(product);
    return {};
}

Status resolve_rank(const wire::Request& request, const format::Model& model, WordFinder& finder,
                    kernels::Query& query) {
    const auto asked = find_terms(request.arguments[0], finder);
    if (!asked) return asked.error();
    const auto counted = find_terms(request.arguments[1], finder);
    if (!counted) return counted.error();
    const auto a = argument_vector(*asked, request.options.norm, model);
    if (!a) return a.error();
    auto vector = kernels::make_query_vector(std::vector(a->values.begin(), a->values.end()));
    if (!vector && vector.error().code == ErrorCode::zero_vector)
        return zero_word(request.arguments[0].text);
    if (!vector) return vector.error();
    kernels::CountBefore count{*std::move(vector)};
    const auto row = only_row(*counted);
    if (row && row == only_row(*asked)) {
        // Other words may have the same direction, and so come before it in an answer.
        count.score = kAboveAllScores;
    } else if (row) {
        count.row = *row;
    } else {
        const auto b = argument_vector(*counted, request.options.norm, model);
        if (!b) return b.error();
        count.score = kernels::canonical_score(count.vector.values.data(), count.vector.norm,
                                               b->values.data(), b->norm, model.dim());
    }
    query.excluded = rows_of(*asked);
    query.kind = std::move(count);
    return {};
}

Status resolve_nearvec(const wire::Request& request, const format::Model& model, WordFinder&,
                       kernels::Query& query) {
    if (request.values.size() != model.dim()) {
        return bad_request("{} numbers; this model's vectors have {}", request.values.size(),
                           model.dim());
    }
    auto vector = kernels::make_query_vector(request.values);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    return {};
}

/// Makes the query for a search.
Status make_query(const wire::Request& request, const Vocabulary& vocabulary, WordFinder& finder,
                  kernels::Query& query) {
    const format::Model& model = vocabulary.model();
    const wire::Options& options = request.options;
    const auto resolve = request.verb == wire::Verb::near      ? resolve_near
                         : request.verb == wire::Verb::nearvec ? resolve_nearvec
                         : request.verb == wire::Verb::analogy ? resolve_analogy
                                                               : resolve_rank;
    if (Status resolved = resolve(request, model, finder, query); !resolved) return resolved;
    if (Status named = name_lists(options, vocabulary.lists(), query.filter); !named) return named;
    query.k = options.k;
    if (options.top) query.filter.rank_below = *options.top;
    if (options.min) query.filter.min_score = *options.min;
    if (!options.prefix.empty()) query.filter.rows = model.prefix_range(options.prefix);
    return {};
}

/// The answer to a search among the words that the request chooses. Errors: as resolve_query.
Result<kernels::Answer> search_chosen(const wire::Request& request, const Vocabulary& vocabulary,
                                      WordFinder& finder) {
    auto rows = find_rows(request.chosen, finder);
    if (!rows) return rows.error();
    kernels::Query query;
    if (Status made = make_query(request, vocabulary, finder, query); !made) return made.error();
    return search_among(*std::move(rows), query, vocabulary.model());
}

Result<Lines> lines_without_engine(const wire::Request& request,
                                   const std::shared_ptr<const format::Model>& model,
                                   const WordLists& lists, WordFinder& finder, wire::Form form) {
    const wire::Options& options = request.options;
    switch (request.verb) {
        case wire::Verb::sim:
        case wire::Verb::dist:
            return similarity(request, *model, finder, form);
        case wire::Verb::vec:
            return lines_of_rows<VectorLines>(request, options.encoding, model, finder, form);
        case wire::Verb::odd:
            return odd_one(request, model, finder, form);
        case wire::Verb::matrix:
            return lines_of_rows<MatrixLines>(request, options.metric, model, finder, form);
        case wire::Verb::prefix:
            return keys_with_prefix(request, model, lists, form);
        default:
            assert(request.verb == wire::Verb::has);
            return has_lines(request, model, lists, finder, form);
    }
}

/// The word whose rank `query` asks for, as fields= of RANK tells it. A group is not eligible; a
/// word of the request is, where the filter takes it.
RankedWord ranked_word(const kernels::Query& query, const Vocabulary& vocabulary) {
    const auto& count = std::get<kernels::CountBefore>(query.kind);
    const bool is_own = count.score == kAboveAllScores;
    if (count.score && !is_own) return {*count.score, false};
    const kernels::Row row = is_own ? query.excluded.at(0) : count.row;
    const format::Model& model = vocabulary.model();
    const double score =
        kernels::canonical_score(count.vector.values.data(), count.vector.norm,
                                 model.vector(row).data(), model.norms()[row], model.dim());
    return {score, takes(query.filter, row, model)};
}

}  // namespace

bool needs_engine(const wire::Request& request) {
    if (!request.chosen.empty()) return false;
    switch (request.verb) {
        case wire::Verb::near:
        case wire::Verb::nearvec:
        case wire::Verb::analogy:
        case wire::Verb::rank:
            return true;
        default:
            return false;
    }
}

Result<ResolvedQuery> resolve_query(const wire::Request& request, const Vocabulary& vocabulary,
                                    wire::Form form) {
    assert(needs_engine(request));
    const wire::Options& options = request.options;
    WordFinder finder(vocabulary, request);
    // In its place: g++ 12 with -O1 warns wrongly of a query that is moved there.
    Result<ResolvedQuery> result = ResolvedQuery{};
    kernels::Query& query = result->query;
    if (Status made = make_query(request, vocabulary, finder, query); !made) return made.error();
    if (request.verb == wire::Verb::rank && !options.fields.empty())
        result->ranked = ranked_word(query, vocabulary);
    result->notes = finder.take_notes();
    if (options.certify && form == wire::Form::json)
        result->audited = audited_request(request, vocabulary);
    return result;
}

bool is_quick(const wire::Request& request, LookUpRules rules) {
    if (request.verb == wire::Verb::matrix || request.verb == wire::Verb::prefix) return false;
    std::size_t words = 0;
    std::size_t bytes = 0;
    const auto add = [&](const std::string& word) {
        ++words;
        bytes += word.size();
    };
    for (const expr::Term& term : request.terms) add(term.word);
    for (const std::string& word : request.chosen) add(word);
    for (const std::string& word : request.words) add(word);
    for (const wire::Argument& argument : request.arguments) {
        if (argument.terms.empty()) add(argument.text);
        for (const expr::Term& term : argument.terms) add(term.word);
    }
    // A word that is looked up in other cases is made in these cases first.
    const bool is_short = rules.word_case == wire::WordCase::exact || bytes <= kMaxQuickBytes;
    return words <= kMaxQuickWords && is_short;
}

Result<Reply> reply_without_engine(const wire::Request& request,
                                   const std::shared_ptr<const format::Model>& model,
                                   const Vocabulary& vocabulary, const std::string& name,
                                   wire::Form form, Clock::time_point arrived) {
    WordFinder finder(vocabulary, request);
    std::optional<kernels::Answer> searched;
    Result<Lines> lines = Lines{};
    if (request.chosen.empty()) {
        lines = lines_without_engine(request, model, vocabulary.lists(), finder, form);
    } else {
        auto answer = search_chosen(request, vocabulary, finder);
        if (!answer) return answer.error();
        searched = *std::move(answer);
        lines =
            Lines{searched->hits.size(),
                  {},
                  std::make_unique<HitLines>(form, searched->hits, request.options.fields, model)};
    }
    if (!lines) return lines.error();
    auto fields = model_fields(name, *model);
    fields.insert(fields.begin(), time_field(Clock::now() - arrived));
    if (const auto notes = finder.take_notes()) notes->append_to(fields);
    if (searched && request.options.certify) {
        const auto audited =
            form == wire::Form::json ? audited_request(request, vocabulary) : nullptr;
        append_certificate(fields, *searched, audited.get());
    }
    return Reply(form, request.verb, fields, *std::move(lines));
}

}  // namespace gloved::daemon
