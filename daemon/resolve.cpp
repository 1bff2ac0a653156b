#include "daemon/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "common/quoting.hpp"
#include "common/wire/reply.hpp"
#include "daemon/reply.hpp"
#include "kernels/canonical.hpp"
#include "kernels/query_vector.hpp"

namespace gloved::daemon {
namespace {

constexpr std::size_t kWordInMessage = 200;
/// Products of two numbers that are summed in a millisecond or two.
constexpr std::size_t kMatrixProducts = 2'000'000;

Result<kernels::Row> find_row(const std::string& word, const format::Model& model) {
    const auto row = model.find(word);
    if (row) return *row;
    return Error{ErrorCode::unknown_word, printable(word, kWordInMessage) + " is not in the model", word};
}

Result<std::vector<kernels::Row>> find_rows(const std::vector<std::string>& words, const format::Model& model) {
    std::vector<kernels::Row> rows;
    rows.reserve(words.size());
    for (const std::string& word : words) {
        const auto row = find_row(word, model);
        if (!row) return row.error();
        rows.push_back(*row);
    }
    return rows;
}

double cosine(const format::Model& model, kernels::Row a, kernels::Row b) {
    const double norm = model.norms()[a];
    if (norm == 0) return 0;
    return kernels::canonical_score(model.vector(a).data(), norm, model.vector(b).data(), model.norms()[b],
                                    model.dim());
}

double squared_distance(const format::Model& model, kernels::Row a, kernels::Row b) {
    return kernels::canonical_squared_distance(model.vector(a).data(), model.vector(b).data(), model.dim());
}

Error zero_word(const std::string& word) {
    return {ErrorCode::zero_vector,
            fmt::format("{} has a zero vector: it has no direction to compare with", printable(word, kWordInMessage))};
}

/// One row's vector as a query. Error: zero_vector, with the word.
Result<kernels::QueryVector> vector_of(const format::Model& model, kernels::Row row, const std::string& word) {
    const auto values = model.vector(row);
    auto vector = kernels::make_query_vector(std::vector<float>(values.begin(), values.end()));
    if (!vector && vector.error().code == ErrorCode::zero_vector) return zero_word(word);
    return vector;
}

Result<Lines> similarity(const wire::Request& request, const format::Model& model, wire::Form form) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    Lines lines{1, {}};
    wire::LineWriter line(lines.text, form, true);
    line.begin();
    if (request.verb == wire::Verb::dist) {
        line.score("distance", squared_distance(model, (*rows)[0], (*rows)[1]));
    } else {
        if (model.norms()[(*rows)[0]] == 0) return zero_word(request.words[0]);
        line.score("score", cosine(model, (*rows)[0], (*rows)[1]));
    }
    line.end();
    return lines;
}

Result<Lines> vector_line(const wire::Request& request, const format::Model& model, wire::Form form) {
    const auto row = find_row(request.words[0], model);
    if (!row) return row.error();
    Lines lines{1, {}};
    wire::LineWriter line(lines.text, form, true);
    line.begin();
    line.begin_list("vector");
    for (const float value : model.vector(*row)) line.list_float(value);
    line.end_list();
    line.end();
    return lines;
}

/// The word whose row points least the way of all of them together: of the sum of the unit rows. Of equal ones the first named.
Result<Lines> odd_one(const wire::Request& request, const format::Model& model, wire::Form form) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    std::vector<kernels::WeightedRow> terms;
    for (const kernels::Row row : *rows) terms.push_back({1.0, row});
    const auto sum = kernels::make_query_vector(model, terms, true);
    if (!sum) return sum.error();
    std::size_t odd = 0;
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < rows->size(); ++i) {
        const kernels::Row row = (*rows)[i];
        const double score = kernels::canonical_score(sum->values.data(), sum->norm, model.vector(row).data(),
                                                      model.norms()[row], model.dim());
        if (score < lowest) {
            lowest = score;
            odd = i;
        }
    }
    Lines lines{1, {}};
    wire::LineWriter line(lines.text, form, true);
    line.begin();
    line.text("word", request.words[odd]);
    line.score("score", lowest);
    line.end();
    return lines;
}

Lines presence(const wire::Request& request, const format::Model& model, wire::Form form) {
    Lines lines{request.words.size(), {}};
    wire::LineWriter line(lines.text, form, true);
    for (const std::string& word : request.words) {
        const auto row = model.find(word);
        line.begin();
        line.echo("word", word);
        line.flag("known", row.has_value());
        if (row) add_fields(line, request.options.fields, *row, model);
        line.end();
    }
    return lines;
}

/// The keys that start so, most frequent first.
Lines keys_with_prefix(const wire::Request& request, const format::Model& model, wire::Form form) {
    const format::RowRange range = model.prefix_range(request.words[0]);
    const auto ranks = model.ranks();
    std::vector<kernels::Row> rows(range.size());
    std::iota(rows.begin(), rows.end(), static_cast<kernels::Row>(range.first));
    const std::size_t k = std::min(request.options.k, rows.size());
    std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
                      [&](kernels::Row a, kernels::Row b) { return ranks[a] < ranks[b]; });
    Lines lines{k, {}};
    wire::LineWriter line(lines.text, form, true);
    for (std::size_t i = 0; i < k; ++i) {
        line.begin();
        line.text("word", model.key(rows[i]));
        add_fields(line, request.options.fields, rows[i], model);
        line.end();
    }
    return lines;
}

/// What is searched for, and what is left out.
Status resolve_near(const wire::Request& request, const format::Model& model, kernels::Query& query) {
    std::vector<kernels::WeightedRow> terms;
    terms.reserve(request.terms.size());
    for (const expr::Term& term : request.terms) {
        const auto row = find_row(term.word, model);
        if (!row) return row.error();
        terms.push_back({term.coefficient, *row});
        if (request.options.exclude_inputs) query.excluded.push_back(*row);
    }
    auto vector = kernels::make_query_vector(model, terms, request.options.norm == wire::Norm::unit);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    return {};
}

/// a is to b as c is to …
Status resolve_analogy(const wire::Request& request, const format::Model& model, kernels::Query& query) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    query.excluded = *rows;
    const auto& words = request.words;
    if (request.options.method == wire::Method::add) {
        const std::array<kernels::WeightedRow, 3> terms = {{{1.0, (*rows)[1]}, {-1.0, (*rows)[0]}, {1.0, (*rows)[2]}}};
        auto vector = kernels::make_query_vector(model, terms, true);
        if (!vector) return vector.error();
        query.kind = kernels::Cosine{*std::move(vector)};
        return {};
    }
    kernels::CosMul product;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
        auto vector = vector_of(model, (*rows)[i], words[i]);
        if (!vector) return vector.error();
        product.positives.push_back(*std::move(vector));
    }
    auto vector = vector_of(model, (*rows)[0], words[0]);
    if (!vector) return vector.error();
    product.negatives.push_back(*std::move(vector));
    query.kind = std::move(product);
    return {};
}

Status resolve_rank(const wire::Request& request, const format::Model& model, kernels::Query& query) {
    const auto rows = find_rows(request.words, model);
    if (!rows) return rows.error();
    auto vector = vector_of(model, (*rows)[0], request.words[0]);
    if (!vector) return vector.error();
    query.excluded.push_back((*rows)[0]);
    query.kind = kernels::CountBefore{*std::move(vector), (*rows)[1]};
    return {};
}

Status resolve_nearvec(const wire::Request& request, const format::Model& model, kernels::Query& query) {
    if (request.values.size() != model.dim()) {
        return Error{ErrorCode::bad_request,
                     fmt::format("{} numbers; this model's vectors have {}", request.values.size(), model.dim())};
    }
    auto vector = kernels::make_query_vector(request.values);
    if (!vector) return vector.error();
    query.kind = kernels::Cosine{*std::move(vector)};
    return {};
}

}  // namespace

bool needs_engine(wire::Verb verb) {
    return verb == wire::Verb::near || verb == wire::Verb::nearvec || verb == wire::Verb::analogy ||
           verb == wire::Verb::rank;
}

Result<kernels::Query> resolve_query(const wire::Request& request, const format::Model& model) {
    assert(needs_engine(request.verb));
    kernels::Query query;
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
    return query;
}

Result<Lines> answer_directly(const wire::Request& request, const format::Model& model, wire::Form form) {
    switch (request.verb) {
        case wire::Verb::sim:
        case wire::Verb::dist:
            return similarity(request, model, form);
        case wire::Verb::vec:
            return vector_line(request, model, form);
        case wire::Verb::odd:
            return odd_one(request, model, form);
        case wire::Verb::prefix:
            return keys_with_prefix(request, model, form);
        default:
            assert(request.verb == wire::Verb::has);
            return presence(request, model, form);
    }
}

Result<Matrix> Matrix::create(const wire::Request& request, std::shared_ptr<const format::Model> model,
                              wire::Form form) {
    auto rows = find_rows(request.words, *model);
    if (!rows) return rows.error();
    Matrix matrix;
    matrix.model_ = std::move(model);
    matrix.form_ = form;
    matrix.metric_ = request.options.metric;
    matrix.rows_ = *std::move(rows);
    return matrix;
}

void Matrix::append_lines(std::string& out) {
    assert(!finished());
    const bool is_cosine = metric_ == wire::Metric::cosine;
    const std::size_t line_products = rows_.size() * model_->dim();
    std::size_t next = next_;
    std::string lines;
    wire::LineWriter line(lines, form_, next_ == 0);
    for (std::size_t products = 0; next < rows_.size() && products < kMatrixProducts; products += line_products) {
        const kernels::Row row = rows_[next++];
        line.begin();
        line.begin_list(is_cosine ? "scores" : "distances");
        for (const kernels::Row other : rows_) {
            line.list_score(is_cosine ? cosine(*model_, row, other) : squared_distance(*model_, row, other));
        }
        line.end_list();
        line.end();
    }
    if (next == rows_.size()) wire::append_tail(lines, form_);
    out += lines;
    next_ = next;  // only now: had there been no memory for the lines, nothing would have changed
}

}  // namespace gloved::daemon
