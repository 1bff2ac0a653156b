#include "daemon/resolve.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/error_with.hpp"
#include "common/expr/expression.hpp"
#include "common/quoting.hpp"
#include "daemon/text_source.hpp"
#include "kernels/canonical.hpp"
#include "kernels/query_vector.hpp"
#include "kernels/row_pairs.hpp"

namespace gloved::daemon {
namespace {

constexpr std::size_t kMaxWordInMessage = 200;
/// A word takes a loop some microseconds.
constexpr std::size_t kMaxQuickWords = 64;

Result<kernels::Row> find_row(const std::string& word, const format::Model& model) {
    const auto row = model.find(word);
    if (row) return *row;
    return Error{ErrorCode::unknown_word,
                 printable(word, kMaxWordInMessage) + " is not in the model", word};
}

Result<std::vector<kernels::Row>> find_rows(const std::vector<std::string>& words,
                                            const format::Model& model) {
    std::vector<kernels::Row> rows;
    rows.reserve(words.size());
    for (const std::string& word : words) {
        const auto row = find_row(word, model);
        if (!row) return row.error();
        rows.push_back(*row);
    }
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

using ModelPointer = std::shared_ptr<const format::Model>;

Result<Lines> similarity(const wire::Request& request, const format::Model& model,
                         wire::Form form) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    if (request.verb == wire::Verb::dist)
        return score_line(form, "distance",
                          kernels::squared_distance(model, (*rows)[0], (*rows)[1]));
    if (model.norms()[(*rows)[0]] == 0) return zero_word(request.words[0]);
    return score_line(form, "score", kernels::cosine(model, (*rows)[0], (*rows)[1]));
}

/// The reply of one line for each word of the request, which a `Source` renders as `how` says.
template <class Source, class How>
Result<Lines> lines_of_rows(const wire::Request& request, How how, const ModelPointer& model,
                            wire::Form form) {
    auto rows = find_rows(request.words, *model);
    if (!rows) return rows.error();
    const std::size_t count = rows->size();
    return Lines{count, {}, std::make_unique<Source>(form, how, *std::move(rows), model)};
}

/// ODD: the word with the smallest cosine to the sum of all unit rows; of equals the first.
Result<Lines> odd_one(const wire::Request& request, const ModelPointer& model, wire::Form form) {
    const auto rows = find_rows(request.words, *model);
    if (!rows) return rows.error();
    std::vector<kernels::WeightedRow> terms;
    for (const kernels::Row row : *rows) terms.push_back({1.0, row});
    const auto sum = kernels::make_query_vector(*model, terms, true);
    if (!sum) return sum.error();
    kernels::Hit odd{rows->front(), std::numeric_limits<double>::infinity()};
    for (const kernels::Row row : *rows) {
        const double score =
            kernels::canonical_score(sum->values.data(), sum->norm, model->vector(row).data(),
                                     model->norms()[row], model->dim());
        if (score < odd.score) odd = {row, score};
    }
    return Lines{
        1,
        {},
        std::make_unique<HitLines>(form, std::vector{odd}, std::vector<wire::Field>{}, model)};
}

Lines has_lines(const wire::Request& request, const ModelPointer& model, wire::Form form) {
    return {request.words.size(),
            {},
            std::make_unique<PresenceLines>(form, request.words, request.options.fields, model)};
}

/// PREFIX: the keys that start with the text, by rank.
Lines keys_with_prefix(const wire::Request& request, const ModelPointer& model, wire::Form form) {
    const format::RowRange range = model->prefix_range(request.words[0]);
    const auto ranks = model->ranks();
    std::vector<kernels::Row> rows(range.size());
    std::iota(rows.begin(), rows.end(), static_cast<kernels::Row>(range.first));
    const std::size_t k = std::min(request.options.k, rows.size());
    std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
                      [&](kernels::Row a, kernels::Row b) { return ranks[a] < ranks[b]; });
    rows.resize(k);
    rows.shrink_to_fit();  // an empty prefix matches all words
    return {
        k, {}, std::make_unique<RowLines>(form, std::move(rows), request.options.fields, model)};
}

/// NEAR: the sum of the terms, and the rows to exclude.
Status resolve_near(const wire::Request& request, const format::Model& model,
                    kernels::Query& query) {
    std::vector<kernels::WeightedRow> terms;
    terms.reserve(request.terms.size());
    for (const expr::Term& term : request.terms) {
        const auto row = find_row(term.word, model);
        if (!row) return row.error();
        terms.push_back({term.coefficient, *row});
        if (request.options.exclude_inputs) query.excluded.push_back(*row);
    }
    auto vector =
        kernels::make_query_vector(model, terms, request.options.norm == wire::Norm::unit);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    return {};
}

/// ANALOGY: a is to b as c is to the answer.
Status resolve_analogy(const wire::Request& request, const format::Model& model,
                       kernels::Query& query) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    query.excluded = *rows;
    const auto& words = request.words;
    if (request.options.method == wire::Method::add) {
        const std::array<kernels::WeightedRow, 3> terms = {
            {{1.0, (*rows)[1]}, {-1.0, (*rows)[0]}, {1.0, (*rows)[2]}}};
        auto vector = kernels::make_query_vector(model, terms, true);
        if (!vector) return vector.error();
        query.kind = kernels::Cosine{*std::move(vector)};
        return {};
    }
    kernels::CosMul product;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
        auto vector = vector_of(model, (*rows)[i], words[i]);
        if (!vector) return vector.error();
        (i == 0 ? product.negatives : product.positives).push_back(*std::move(vector));
    }
    query.kind = std::move(product);
    return {};
}

Status resolve_rank(const wire::Request& request, const format::Model& model,
                    kernels::Query& query) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    auto vector = vector_of(model, (*rows)[0], request.words[0]);
    if (!vector) return vector.error();
    query.excluded.push_back((*rows)[0]);
    query.kind = kernels::CountBefore{*std::move(vector), (*rows)[1]};
    return {};
}

Status resolve_nearvec(const wire::Request& request, const format::Model& model,
                       kernels::Query& query) {
    if (request.values.size() != model.dim()) {
        return error_with(ErrorCode::bad_request, "{} numbers; this model's vectors have {}",
                          request.values.size(), model.dim());
    }
    auto vector = kernels::make_query_vector(request.values);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    return {};
}

Result<Lines> lines_without_engine(const wire::Request& request,
                                   const std::shared_ptr<const format::Model>& model,
                                   wire::Form form) {
    switch (request.verb) {
        case wire::Verb::sim:
        case wire::Verb::dist:
            return similarity(request, *model, form);
        case wire::Verb::vec:
            return lines_of_rows<VectorLines>(request, request.options.encoding, model, form);
        case wire::Verb::odd:
            return odd_one(request, model, form);
        case wire::Verb::matrix:
            return lines_of_rows<MatrixLines>(request, request.options.metric, model, form);
        case wire::Verb::prefix:
            return keys_with_prefix(request, model, form);
        default:
            assert(request.verb == wire::Verb::has);
            return has_lines(request, model, form);
    }
}

}  // namespace

bool needs_engine(wire::Verb verb) {
    return verb == wire::Verb::near || verb == wire::Verb::nearvec || verb == wire::Verb::analogy ||
           verb == wire::Verb::rank;
}

Result<kernels::Query> resolve_query(const wire::Request& request, const format::Model& model) {
    assert(needs_engine(request.verb));
    // In its place: g++ 12 with -O1 warns wrongly of a query that is moved there.
    Result<kernels::Query> result = kernels::Query{};
    kernels::Query& query = *result;
    const auto resolve = request.verb == wire::Verb::near      ? resolve_near
                         : request.verb == wire::Verb::nearvec ? resolve_nearvec
                         : request.verb == wire::Verb::analogy ? resolve_analogy
                                                               : resolve_rank;
    if (Status resolved = resolve(request, model, query); !resolved) return resolved.error();
    const wire::Options& options = request.options;
    query.k = options.k;
    if (options.top) query.filter.rank_below = *options.top;
    if (options.min) query.filter.min_score = *options.min;
    if (!options.prefix.empty()) query.filter.rows = model.prefix_range(options.prefix);
    return result;
}

bool is_quick(const wire::Request& request) {
    switch (request.verb) {
        case wire::Verb::sim:
        case wire::Verb::dist:
            return true;
        case wire::Verb::vec:
        case wire::Verb::odd:
        case wire::Verb::has:
            return request.words.size() <= kMaxQuickWords;
        case wire::Verb::matrix:
        case wire::Verb::prefix:
            return false;
        default:
            assert(needs_engine(request.verb));
            return request.terms.size() <= kMaxQuickWords;
    }
}

Result<Reply> reply_without_engine(const wire::Request& request,
                                   const std::shared_ptr<const format::Model>& model,
                                   const std::string& name, wire::Form form,
                                   Clock::time_point arrived) {
    auto lines = lines_without_engine(request, model, form);
    if (!lines) return lines.error();
    auto fields = model_fields(name, *model);
    fields.insert(fields.begin(), time_field(Clock::now() - arrived));
    return Reply(form, request.verb, fields, *std::move(lines));
}

}  // namespace gloved::daemon
