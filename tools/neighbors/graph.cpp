#include "tools/neighbors/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>

#include "common/error_with.hpp"
#include "common/npy.hpp"
#include "common/output_file.hpp"
#include "kernels/row_pairs.hpp"

namespace gloved::neighbors {
namespace {

using format::kNoRow;
using format::Model;
using format::Neighbors;
using format::Row;

/// The share of the words that count as hubs.
constexpr std::size_t kHubsOneIn = 100;
/// Text is written in pieces of about this size.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

bool has(std::span<const Row> list, std::size_t row) {
    return std::ranges::find(list, row) != list.end();
}

/// A word and the number that is told of it.
struct NumberedWord {
    std::uint32_t number = 0;
    Row row = 0;
};

/// Writes text to a file in large pieces, and publishes it at the end.
class Text {
  public:
    static Result<Text> create(const std::string& path, const std::atomic<bool>& stop) {
        auto file = OutputFile::create(path, stop);
        if (!file) return file.error();
        return Text(*std::move(file));
    }

    template <class... Arguments>
    Status add(fmt::format_string<Arguments...> line, Arguments&&... arguments) {
        fmt::format_to(std::back_inserter(text_), line, std::forward<Arguments>(arguments)...);
        return text_.size() < kPieceBytes ? Status() : flush();
    }
    /// Adds a row of number and word for each of `words`. In a table, numbers have the `heading`.
    Status add_words(const Model& model, std::span<const NumberedWord> words, const char* heading,
                     RowStyle style) {
        if (style.is_table) append_row(text_, {heading, "word"}, style);
        for (const auto& [number, row] : words) {
            append_row(text_, {fmt::format_int(number).c_str(), model.key(row)}, style);
            if (text_.size() < kPieceBytes) continue;
            if (Status flushed = flush(); !flushed) return flushed;
        }
        return {};
    }
    Status finish() {
        if (Status flushed = flush(); !flushed) return flushed;
        if (Status synced = file_.sync(); !synced) return synced;
        return file_.publish();
    }

  private:
    explicit Text(OutputFile file) : file_(std::move(file)) {}
    Status flush() {
        Status written = file_.write(text_);
        text_.clear();
        return written;
    }

    OutputFile file_;
    std::string text_;
};

double percent(std::size_t part, std::size_t whole) {
    return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// For each row of `other`, the row of the same word in `model`, or kNoRow. Both are sorted.
std::vector<Row> rows_in(const Model& model, const Model& other) {
    std::vector<Row> rows(other.rows(), kNoRow);
    std::size_t row = 0;
    for (std::size_t of_other = 0; of_other < other.rows(); ++of_other) {
        while (row < model.rows() && model.key(row) < other.key(of_other)) ++row;
        if (row < model.rows() && model.key(row) == other.key(of_other))
            rows[of_other] = static_cast<Row>(row);
    }
    return rows;
}

double median_share(const std::vector<Agreement>& agreements) {
    std::vector<double> shares;
    shares.reserve(agreements.size());
    for (const Agreement& agreement : agreements)
        shares.push_back(static_cast<double>(agreement.shared) / agreement.length);
    const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
    std::nth_element(shares.begin(), middle, shares.end());
    return *middle;
}

}  // namespace

std::vector<std::uint32_t> count_occurrences(const Neighbors& neighbors, std::size_t k) {
    std::vector<std::uint32_t> occurrences(neighbors.header().rows);
    for (std::size_t row = 0; row < occurrences.size(); ++row) {
        for (const Row neighbor : neighbors.of(row, k))
            if (neighbor < occurrences.size()) ++occurrences[neighbor];
    }
    return occurrences;
}

Hubness describe_occurrences(std::span<const std::uint32_t> occurrences) {
    Hubness hubness;
    const auto count = static_cast<double>(occurrences.size());
    const double places = std::accumulate(occurrences.begin(), occurrences.end(), 0.0);
    hubness.mean = places / count;
    double squares = 0;
    double cubes = 0;
    for (const std::uint32_t occurrence : occurrences) {
        const double difference = occurrence - hubness.mean;
        squares += difference * difference;
        cubes += difference * difference * difference;
        if (occurrence == 0) ++hubness.orphans;
    }
    hubness.deviation = std::sqrt(squares / count);
    if (squares > 0) hubness.skewness = cubes / count / std::pow(hubness.deviation, 3);
    std::vector<std::uint32_t> sorted(occurrences.begin(), occurrences.end());
    std::ranges::sort(sorted, std::greater<>());
    const std::size_t hubs = (sorted.size() + kHubsOneIn - 1) / kHubsOneIn;
    const double of_hubs =
        std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(hubs), 0.0);
    if (places > 0) hubness.share_of_hubs = of_hubs / places;
    return hubness;
}

std::vector<std::pair<Row, Row>> find_mutual(const Neighbors& neighbors, std::size_t k) {
    std::vector<std::pair<Row, Row>> pairs;
    const std::size_t rows = neighbors.header().rows;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t first = pairs.size();
        for (const Row other : neighbors.of(row, k)) {
            if (other > row && other < rows && has(neighbors.of(other, k), row))
                pairs.emplace_back(static_cast<Row>(row), other);
        }
        std::sort(pairs.begin() + static_cast<std::ptrdiff_t>(first), pairs.end());
    }
    return pairs;
}

std::vector<Agreement> compare_lists(const Model& model, const Neighbors& neighbors,
                                     const Model& other, const Neighbors& other_neighbors,
                                     std::size_t k) {
    const auto rows = rows_in(model, other);
    std::vector<Agreement> agreements;
    for (std::size_t of_other = 0; of_other < other.rows(); ++of_other) {
        if (rows[of_other] == kNoRow) continue;
        const auto list = neighbors.of(rows[of_other], k);
        const auto other_list = other_neighbors.of(of_other, k);
        const auto shared = std::ranges::count_if(other_list, [&](Row neighbor) {
            return neighbor < rows.size() && rows[neighbor] != kNoRow && has(list, rows[neighbor]);
        });
        const std::size_t length = std::max(list.size(), other_list.size());
        if (length == 0) continue;
        agreements.push_back({rows[of_other], static_cast<std::uint32_t>(shared),
                              static_cast<std::uint32_t>(length)});
    }
    return agreements;
}

Status write_hubs(const Model& model, const Neighbors& neighbors, std::size_t k, std::size_t shown,
                  const std::string& path, const std::atomic<bool>& stop) {
    auto text = Text::create(path, stop);
    if (!text) return text.error();
    const auto occurrences = count_occurrences(neighbors, k);
    std::vector<NumberedWord> words;
    words.reserve(occurrences.size());
    for (const std::uint32_t number : occurrences)
        words.push_back({number, static_cast<Row>(words.size())});
    std::ranges::sort(words, [&](const NumberedWord& a, const NumberedWord& b) {
        if (a.number != b.number) return a.number > b.number;
        return model.ranks()[a.row] < model.ranks()[b.row];
    });
    if (path == "-") {
        const Hubness hubness = describe_occurrences(occurrences);
        Status added = text->add(
            "words\t{}\nneighbours\t{}\nmean occurrences\t{:.3f}\nstandard deviation\t{:.3f}\n"
            "skewness\t{:.3f}\nnobody's neighbour\t{}\t{:.2f} %\n"
            "places of the most frequent 1 %\t{:.2f} %\n\noccurrences\tword\n",
            words.size(), k, hubness.mean, hubness.deviation, hubness.skewness, hubness.orphans,
            percent(hubness.orphans, words.size()), 100 * hubness.share_of_hubs);
        if (!added) return added;
        words.resize(std::min(shown, words.size()));
    }
    Status added = text->add_words(model, words, "occurrences", style_of(list_format_of(path)));
    return added ? text->finish() : added;
}

Status write_mutual(const Model& model, const Neighbors& neighbors, std::size_t k,
                    const ListOutput& output, const std::atomic<bool>& stop) {
    auto text = Text::create(output.path, stop);
    if (!text) return text.error();
    const auto pairs = find_mutual(neighbors, k);
    if (output.format == ListFormat::npy) {
        const std::size_t shape[] = {pairs.size(), 2};
        const std::string_view rows(reinterpret_cast<const char*>(pairs.data()),
                                    pairs.size() * 2 * sizeof(Row));
        Status added = text->add("{}{}", npy::make_header("<i4", shape), rows);
        return added ? text->finish() : added;
    }
    const ListText lines(model, output.format, 1);
    std::string line = lines.head(pairs.size());
    if (Status added = text->add("{}", line); !added) return added;
    for (const auto& [a, b] : pairs) {
        const kernels::Hit hit{b, kernels::cosine(model, a, b)};
        line.clear();
        lines.append(line, a, model.key(a), {&hit, 1});
        if (Status added = text->add("{}", line); !added) return added;
    }
    return text->finish();
}

Status write_comparison(const Model& model, const Neighbors& neighbors, const Model& other,
                        const Neighbors& other_neighbors, std::size_t k, std::size_t shown,
                        const std::string& path, const std::atomic<bool>& stop) {
    auto text = Text::create(path, stop);
    if (!text) return text.error();
    auto agreements = compare_lists(model, neighbors, other, other_neighbors, k);
    if (agreements.empty()) {
        return error_with(ErrorCode::mismatch, "{} and {} have no words with neighbours in common",
                          model.path(), other.path());
    }
    if (path == "-") {
        double sum = 0;
        for (const Agreement& agreement : agreements)
            sum += static_cast<double>(agreement.shared) / agreement.length;
        const auto all = std::ranges::count_if(
            agreements, [](const Agreement& of) { return of.shared == of.length; });
        const auto none =
            std::ranges::count_if(agreements, [](const Agreement& of) { return of.shared == 0; });
        const auto count = agreements.size();
        Status added = text->add(
            "words in both\t{}\nwords\t{}\t{}\nneighbours\t{}\nmean share in common\t{:.4f}\n"
            "median\t{:.4f}\nall in common\t{}\t{:.2f} %\nnone in common\t{}\t{:.2f} %\n\n"
            "shared\tword\n",
            count, model.rows(), other.rows(), k, sum / static_cast<double>(count),
            median_share(agreements), all, percent(static_cast<std::size_t>(all), count), none,
            percent(static_cast<std::size_t>(none), count));
        if (!added) return added;
        std::ranges::sort(agreements, [&](const Agreement& a, const Agreement& b) {
            if (a.shared != b.shared) return a.shared < b.shared;
            return model.ranks()[a.row] < model.ranks()[b.row];
        });
        agreements.resize(std::min(shown, count));
    }
    std::vector<NumberedWord> words;
    words.reserve(agreements.size());
    for (const Agreement& agreement : agreements)
        words.push_back({agreement.shared, agreement.row});
    Status added = text->add_words(model, words, "shared", style_of(list_format_of(path)));
    return added ? text->finish() : added;
}

}  // namespace gloved::neighbors
