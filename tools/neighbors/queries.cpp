#include "tools/neighbors/queries.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "common/error_with.hpp"
#include "common/format/neighbors.hpp"
#include "common/quoting.hpp"
#include "kernels/query_vector.hpp"
#include "tools/neighbors/nearest_rows.hpp"
#include "tools/source/input.hpp"
#include "tools/source/source.hpp"

namespace gloved::neighbors {
namespace {

/// Records of .fvecs that are read at a time.
constexpr std::size_t kPieceRecords = 4096;

}  // namespace

QueryFormat query_format_of(const std::string& path) {
    if (path.ends_with(".npy")) return QueryFormat::numbers;
    if (path.ends_with(".fvecs")) return QueryFormat::fvecs;
    return QueryFormat::words;
}

Result<Queries> Queries::read(const std::string& path, QueryFormat format,
                              const distmat::WordRules& rules, const format::Model& model,
                              std::size_t threads, const std::atomic<bool>& stop) {
    Queries queries(path, model.dim());
    const Status read = [&] {
        switch (format) {
            case QueryFormat::words:
                return queries.read_words(rules, model, stop);
            case QueryFormat::glove:
                return queries.read_glove(threads, stop);
            case QueryFormat::fvecs:
                return queries.read_fvecs(stop);
            case QueryFormat::numbers:
                break;
        }
        return queries.read_matrix(threads, stop);
    }();
    if (!read) return read.error();
    if (queries.size() == 0) return bad_source("{}: holds no queries", path);
    return queries;
}

std::string Queries::name(std::size_t number) const {
    return names_.empty() ? std::to_string(number) : names_[number];
}

Result<bool> Queries::make(const format::Model& model, std::size_t number, std::size_t k,
                           kernels::Query& query) const {
    if (!rows_.empty() && rows_[number] == format::kNoRow) return false;
    if (!rows_.empty()) return make_row_query(model, rows_[number], k, query);
    const float* const values = values_.data() + number * dim_;
    auto vector = kernels::make_query_vector(std::vector<float>(values, values + dim_));
    if (!vector) {
        if (vector.error().code == ErrorCode::zero_vector) return false;
        return error_with(vector.error().code, "{}: query {}: {}", path_, printable(name(number)),
                          vector.error().message);
    }
    std::get<kernels::Cosine>(query.kind).vector = *std::move(vector);
    query.k = k;
    return true;
}

Status Queries::read_words(const distmat::WordRules& rules, const format::Model& model,
                           const std::atomic<bool>& stop) {
    const auto matrix = distmat::read_words(path_, model, rules, stop);
    if (!matrix) return matrix.error();
    names_ = matrix->words();
    rows_ = matrix->model_rows();
    return {};
}

Status Queries::read_matrix(std::size_t threads, const std::atomic<bool>& stop) {
    const auto matrix = distmat::read_matrix(path_, {.threads = threads}, stop);
    if (!matrix) return matrix.error();
    if (matrix->dim() != dim_) {
        return bad_source(
            "{}: has {} numbers a query; the model's words "
            "have {}",
            path_, matrix->dim(), dim_);
    }
    std::visit([&](const auto values) { values_.assign(values.begin(), values.end()); },
               matrix->values());
    return matrix->verify_size();
}

Status Queries::read_glove(std::size_t threads, const std::atomic<bool>& stop) {
    auto input = source::Input::open(path_, stop);
    if (!input) return input.error();
    source::SourceOptions options;
    options.format = source::SourceFormat::glove;
    options.dim = dim_;
    options.threads = threads;
    source::SourceSink sink;
    sink.commit = [&](source::Batch& batch) -> Status {
        const auto rows = std::span(batch.values).first(batch.rows() * dim_);
        values_.insert(values_.end(), rows.begin(), rows.end());
        for (std::size_t row = 0; row < batch.rows(); ++row) names_.emplace_back(batch.key(row));
        return {};
    };
    const auto summary = source::read_source(*input, options, sink);
    return summary ? Status() : Status(summary.error());
}

Status Queries::read_fvecs(const std::atomic<bool>& stop) {
    auto input = source::Input::open(path_, stop);
    if (!input) return input.error();
    const std::size_t record_bytes = sizeof(std::int32_t) + dim_ * sizeof(float);
    std::vector<char> piece(kPieceRecords * record_bytes);
    for (;;) {
        const auto got = input->read(piece);
        if (!got) return got.error();
        const std::size_t records = *got / record_bytes;
        for (std::size_t record = 0; record < records; ++record) {
            const char* const at = piece.data() + record * record_bytes;
            std::int32_t dim = 0;
            std::memcpy(&dim, at, sizeof dim);
            if (dim < 0 || static_cast<std::size_t>(dim) != dim_) {
                return bad_source(
                    "{}: record {} says that it has {} numbers; the model's words "
                    "have {}",
                    path_, size(), dim, dim_);
            }
            values_.resize(values_.size() + dim_);
            std::memcpy(values_.data() + values_.size() - dim_, at + sizeof dim,
                        dim_ * sizeof(float));
        }
        if (*got % record_bytes != 0) {
            return damaged(
                "{}: ends within record {}; it is not complete, "
                "or its records have another length than {} numbers",
                path_, size(), dim_);
        }
        if (*got < piece.size()) return {};
    }
}

}  // namespace gloved::neighbors
