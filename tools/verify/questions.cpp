#include "tools/verify/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <variant>

#include "common/format/layout.hpp"
#include "common/quoting.hpp"
#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/plane.hpp"
#include "kernels/query_vector.hpp"
#include "tools/random_list.hpp"
#include "tools/verify/check.hpp"

namespace gloved::verify {
namespace {

using format::Model;
using kernels::Query;
using kernels::QueryVector;
using kernels::Row;

constexpr std::size_t kMaxBatch = 1024;
constexpr std::size_t kMaxExcluded = 1000;
/// The questions that are always a 3CosMul and a count.
constexpr std::size_t kCosMulNumber = 1;
constexpr std::size_t kCountNumber = 2;

/// Random numbers that are the same with every library: integer arithmetic and operations that IEEE
/// 754 defines.
class Random {
  public:
    explicit Random(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
    bool one_in(std::size_t many) { return below(many) == 0; }
    double sign() { return one_in(2) ? 1 : -1; }
    /// In [1, limit], log-uniform: each power of two is equally likely.
    std::size_t log_uniform(std::size_t limit) {
        const std::size_t bits = 1 + below(static_cast<std::size_t>(std::bit_width(limit)));
        return 1 + below(std::min(limit, std::size_t{1} << bits));
    }
    /// Nearly normal with variance 1/3: the sum of four uniform numbers.
    double bell() {
        const std::uint64_t bits = random_();
        const auto sum = static_cast<double>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) +
                                             (bits >> 32 & 0xFFFF) + (bits >> 48));
        return sum / 0xFFFF - 2;
    }
    /// 2^-most … 2^-least.
    double small_power(int least, int most) {
        return std::ldexp(
            1.0, -least - static_cast<int>(below(static_cast<std::size_t>(most - least) + 1)));
    }

  private:
    std::mt19937_64 random_;
};

/// Draws one question.
class QuestionMaker {
  public:
    QuestionMaker(const Model& model, std::uint64_t seed, const kernels::RowLists& lists,
                  std::size_t number)
        : model_(model),
          chance_((seed + 1) * 0x9E3779B97F4A7C15 + number),
          lists_(lists),
          number_(number) {}

    Question draw() {
        question_.unit = chance_.one_in(4);
        // These two are rare: some engines score every row in float64 for them.
        const bool product =
            number_ == kCosMulNumber || (number_ > kCountNumber && chance_.one_in(200));
        const bool count =
            number_ == kCountNumber || (number_ > kCountNumber && chance_.one_in(200));
        if (product) {
            kernels::CosMul kind;
            for (std::size_t i = 0; i < 3; ++i)
                (i < 2 ? kind.positives : kind.negatives).push_back(vector());
            question_.query.kind = std::move(kind);
        } else if (count) {
            question_.query.kind = kernels::CountBefore{vector(), row()};
        } else {
            question_.query.kind = kernels::Cosine{vector()};
        }
        question_.query.k = draw_k();
        draw_excluded();
        draw_filter();
        draw_list_names();
        return std::move(question_);
    }

  private:
    Row row() { return static_cast<Row>(chance_.below(model_.rows())); }

    /// A row that is not zero, if 100 attempts find one.
    Row row_with_direction() {
        for (int attempt = 0; attempt < 100; ++attempt) {
            if (const Row found = row(); kernels::bound_covers(model_.norms()[found])) return found;
        }
        return row();
    }

    std::size_t draw_k() {
        // Such an answer has all rows: so rare that it doubles the total of hits at most.
        if (chance_.one_in(std::max<std::size_t>(500, model_.rows() / 8)))
            return model_.rows() + chance_.below(100);
        const std::size_t of_hundred = chance_.below(100);
        if (of_hundred < 10) return 1;
        if (of_hundred < 15) return 2;
        if (of_hundred < 20) return 100;
        return of_hundred < 21 ? 1024 : 10;
    }

    QueryVector vector() {
        const std::size_t of_twenty = chance_.below(20);
        if (of_twenty < 13) {
            if (auto words = expression(of_twenty < 8 ? 1 : 2 + chance_.below(3)))
                return *std::move(words);
        }
        for (;;) {
            near_row_.reset();
            std::string recipe;
            std::vector<double> values = numbers(recipe);
            if (chance_.one_in(4)) {
                const int power = static_cast<int>(chance_.below(270)) - 145;
                for (double& value : values) value = std::ldexp(value, power);
                recipe += fmt::format(" × 2^{}", power);
            }
            std::vector<float> floats(values.size());
            for (std::size_t i = 0; i < values.size(); ++i)
                floats[i] = static_cast<float>(values[i]);
            auto made = kernels::make_query_vector(std::move(floats));
            if (!made) continue;  // beyond float32 at either end
            question_.sources.push_back({{}, std::move(recipe)});
            return *std::move(made);
        }
    }

    /// nullopt if 100 attempts gave zero vectors: nearly all rows are zeros.
    std::optional<QueryVector> expression(std::size_t words) {
        for (int attempt = 0; attempt < 100; ++attempt) {
            Weights weights;
            std::vector<kernels::WeightedRow> terms;
            for (std::size_t i = 0; i < words; ++i) {
                weights.emplace_back(i == 0 ? 1.0 : coefficient(), row());
                terms.push_back({weights.back().first, weights.back().second});
            }
            auto made = kernels::make_query_vector(model_, terms, question_.unit);
            if (!made) continue;
            near_row_ = weights[0].second;
            question_.sources.push_back({std::move(weights)});
            return *std::move(made);
        }
        return std::nullopt;
    }

    /// 1, −1, a fraction that is inexact in binary, or a very large or very small power of two.
    double coefficient() {
        const double sign = chance_.sign();
        if (chance_.one_in(2)) return sign;
        if (chance_.one_in(10))
            return sign * std::ldexp(1.0, static_cast<int>(chance_.below(60)) - 30);
        return sign * static_cast<double>(1 + chance_.below(30)) / 10;
    }

    std::vector<double> numbers(std::string& recipe) {
        const std::size_t dim = model_.dim();
        std::vector<double> values(dim, 0.0);
        switch (chance_.below(11)) {
            case 0:
                recipe = "a random direction";
                for (double& value : values) value = chance_.bell();
                break;
            case 1:
            case 2: {
                const bool opposite = chance_.one_in(3);
                const Row of = row_with_direction();
                const double noise = chance_.one_in(4) ? 0 : chance_.small_power(3, 26);
                recipe = fmt::format("{}{} and {:.1e} of noise", opposite ? "the opposite of " : "",
                                     row_name(model_, of), noise);
                const double size =
                    noise * model_.norms()[of] / std::sqrt(static_cast<double>(dim) / 3);
                for (std::size_t i = 0; i < dim; ++i) {
                    const double value = double{model_.vector(of)[i]} + size * chance_.bell();
                    values[i] = opposite ? -value : value;
                }
                if (!opposite) near_row_ = of;
                break;
            }
            case 3:
                recipe = "one component";
                values[chance_.below(dim)] = chance_.sign();
                break;
            case 4: {
                recipe = "components of one size";
                const bool mixed = chance_.one_in(2);
                const double sign = chance_.sign();
                for (double& value : values) value = mixed ? chance_.sign() : sign;
                break;
            }
            case 5:
                recipe = "few components";
                for (std::size_t left = chance_.log_uniform(8); left > 0; --left)
                    values[chance_.below(dim)] = chance_.bell();
                break;
            case 6:
                recipe = "components far apart";
                for (double& value : values) value = chance_.bell() * chance_.small_power(0, 150);
                break;
            case 7:
                recipe = "components on levels";
                for (double& value : values)
                    value =
                        static_cast<double>(2 * chance_.below(16)) - (chance_.one_in(8) ? 14 : 15);
                break;
            default:
                tight_for_a_row(values, recipe);
                break;
        }
        return values;
    }

    /// Makes a vector in the plane of a row's direction u and its code c, on u's far side from c.
    /// For it the plane's inequality is an equation (docs/certified-search.md, §1) if the threshold
    /// is the row's score: only rounding keeps the row in.
    void tight_for_a_row(std::vector<double>& values, std::string& recipe) {
        const Row of = row_with_direction();
        const auto row = model_.vector(of);
        const double norm = model_.norms()[of];
        if (!kernels::bound_covers(norm)) return;  // `values` is zero, so the caller draws again
        near_row_ = of;
        const double far = chance_.one_in(8) ? 0 : 8 * chance_.small_power(0, 12);
        recipe = fmt::format("{}, by {:.1e} away from its code", row_name(model_, of), far);
        const auto code = kernels::planes::encode_row(row, norm);
        double projection = 0;
        double square = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const double level = 2.0 * code.codes[i] - kernels::planes::kTopLevel;
            projection += row[i] / norm * level;
            square += level * level;
        }
        const double length = std::sqrt(square);
        const double cosine = std::min(1.0, projection / length);
        const double sine = std::sqrt((1 - cosine) * (1 + cosine));
        double largest = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const double direction = row[i] / norm;
            values[i] = direction;
            if (sine > 0) {
                const double level = 2.0 * code.codes[i] - kernels::planes::kTopLevel;
                values[i] += far * (direction * cosine - level / length) / sine;
            }
            largest = std::max(largest, std::abs(values[i]));
        }
        if (!(largest > 0)) return;
        // Whole digits leave no remainder in the bound (§4). Halves with the signs of the code's
        // levels leave the largest one.
        const std::size_t of_three = chance_.below(3);
        if (of_three == 0) return;
        const bool halves = of_three == 1;
        recipe += halves ? ", between digits" : ", of whole digits";
        constexpr double kAlmostHalf = 0.49;
        const double digit = kernels::planes::kTwoByteDigit / largest;
        for (std::size_t i = 0; i < row.size(); ++i) {
            values[i] = std::rint(values[i] * digit);
            // The largest component defines the digit.
            if (!halves || std::abs(values[i]) >= kernels::planes::kTwoByteDigit) continue;
            values[i] +=
                2 * code.codes[i] > kernels::planes::kTopLevel ? kAlmostHalf : -kAlmostHalf;
        }
    }

    void draw_excluded() {
        std::vector<Row>& excluded = question_.query.excluded;
        if (!chance_.one_in(4)) {
            for (const Question::Source& source : question_.sources) {
                for (const auto& [coefficient, row] : source.weights) excluded.push_back(row);
            }
        }
        if (!chance_.one_in(8)) return;
        // In some models neighbours in the alphabet have high scores: this excludes the best rows.
        const bool neighbours = chance_.one_in(2);
        std::size_t at = near_row_.value_or(row());
        for (std::size_t left = chance_.log_uniform(kMaxExcluded); left > 0; --left)
            excluded.push_back(neighbours ? static_cast<Row>(at++ % model_.rows()) : row());
    }

    void draw_filter() {
        kernels::Filter& filter = question_.query.filter;
        const std::size_t rows = model_.rows();
        if (chance_.one_in(6))
            filter.rank_below = static_cast<std::uint32_t>(chance_.log_uniform(rows));
        if (chance_.one_in(12)) {
            if (chance_.one_in(3)) {
                filter.rows =
                    model_.prefix_range(model_.key(row()).substr(0, chance_.log_uniform(4)));
            } else {
                const std::size_t count = chance_.log_uniform(rows);
                const std::size_t first = chance_.below(rows - count + 1);
                filter.rows =
                    kernels::RowRange{static_cast<Row>(first), static_cast<Row>(first + count)};
            }
        }
        const auto* const cosine = std::get_if<kernels::Cosine>(&question_.query.kind);
        if (cosine != nullptr && near_row_ && chance_.one_in(3)) {
            filter.min_score = score_of(*near_row_, cosine->vector);
        } else if (cosine != nullptr && chance_.one_in(20)) {
            filter.min_score = score_of(row(), cosine->vector);
        } else if (chance_.one_in(8)) {
            constexpr double kScores[] = {-2, -1, -0.1, 0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1, 1.5};
            filter.min_score = kScores[chance_.below(std::size(kScores))];
        }
    }

    void draw_list_names() {
        if (lists_.size() == 0 || !chance_.one_in(2)) return;
        kernels::Filter& filter = question_.query.filter;
        filter.lists = &lists_;
        const auto list = [&] { return kernels::ListMask{1} << chance_.below(lists_.size()); };
        const std::size_t of_ten = chance_.below(10);
        if (of_ten < 8) filter.within |= list();
        if (of_ten == 6) filter.within |= list();
        if (of_ten >= 7) filter.without |= list();
        if (of_ten == 9) filter.without |= list();
    }

    /// The row's score, or sometimes the next float64 above or below.
    double score_of(Row row, const QueryVector& vector) {
        const double score =
            kernels::canonical_score(vector.values.data(), vector.norm, model_.vector(row).data(),
                                     model_.norms()[row], model_.dim());
        if (!chance_.one_in(8)) return score;
        return std::nextafter(score, 2 * chance_.sign());
    }

    const Model& model_;
    Random chance_;
    const kernels::RowLists& lists_;
    const std::size_t number_;
    Question question_;
    std::optional<Row> near_row_;  // the row near which the last vector lies
};

std::string name_of(const Model& model, const Question::Source& source) {
    if (source.weights.empty()) return source.recipe;
    std::string text;
    for (std::size_t i = 0; i < source.weights.size(); ++i) {
        const auto& [coefficient, row] = source.weights[i];
        if (i != 0 || coefficient != 1)
            text += fmt::format("{}{} × ", i == 0 ? "" : " + ", coefficient);
        text += printable(model.key(row));
    }
    return text;
}

}  // namespace

Question Questions::at(std::size_t number) const {
    return QuestionMaker(model_, seed_, lists_, number).draw();
}

Lists draw_lists(const Model& model, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Lists lists;
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{10}, std::size_t{1000}, std::size_t{100'000},
          std::size_t{2'000'000}, model.rows() / 2, model.rows() / 2}) {
        lists.push_back(random_list(model.rows(), count, random));
    }
    return lists;
}

std::vector<std::size_t> batch_sizes(std::size_t questions, std::uint64_t seed) {
    Random chance(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t left = questions; left > 0; left -= sizes.back()) {
        // Engines choose different passes for one, few and many queries.
        const std::size_t of_sixteen = chance.below(16);
        const std::size_t size = of_sixteen < 12    ? 1
                                 : of_sixteen < 14  ? 2 + chance.below(15)
                                 : of_sixteen == 14 ? 17 + chance.below(112)
                                                    : 129 + chance.below(kMaxBatch - 128);
        sizes.push_back(std::min(size, left));
    }
    return sizes;
}

std::string describe(const Model& model, const Question& question) {
    const Query& query = question.query;
    std::string text = std::holds_alternative<kernels::CosMul>(query.kind) ? "3CosMul of " : "";
    if (const auto* const count = std::get_if<kernels::CountBefore>(&query.kind)) {
        text = fmt::format("rows before {} to ", row_name(model, count->row));
    }
    for (std::size_t i = 0; i < question.sources.size(); ++i)
        text += (i == 0 ? "" : ", ") + name_of(model, question.sources[i]);
    text += fmt::format(", {}, k = {}", question.unit ? "unit" : "raw", query.k);
    const kernels::Filter& filter = query.filter;
    if (filter.rank_below != std::numeric_limits<std::uint32_t>::max())
        text += fmt::format(", rank < {}", filter.rank_below);
    if (filter.rows) text += fmt::format(", rows {} to {}", filter.rows->first, filter.rows->last);
    if (filter.min_score > -std::numeric_limits<double>::infinity())
        text += fmt::format(", score >= {}", filter.min_score);
    const auto named = [&](const char* how, kernels::ListMask lists) {
        for (; lists != 0; lists &= lists - 1)
            text += fmt::format(", {} list {}", how, std::countr_zero(lists));
    };
    named("within", filter.within);
    named("without", filter.without);
    if (!query.excluded.empty()) text += fmt::format(", {} excluded", query.excluded.size());
    return text;
}

}  // namespace gloved::verify
