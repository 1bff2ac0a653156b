// The plane's stored bounds against exact arithmetic, and its cutoffs against canonical scores, on
// rows made to hurt. Sections (§) are of docs/certified-search.md.
#include "kernels/planes/plane.hpp"
#include "common/format/model.hpp"
#include "kernels/cuda/int8_cutoff.hpp"
#include "kernels/cuda/row_upper.hpp"
#include "kernels/engine.hpp"
#include "kernels/planes/cutoff.hpp"
#include "kernels/planes/encode.hpp"
#include "kernels/planes/fine_plane.hpp"
#include "kernels/planes/shape.hpp"
#include "kernels/thread_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <boost/multiprecision/detail/default_ops.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/bounds.hpp"
#include "kernels/canonical.hpp"
#include "kernels/cpu/plane_scan.hpp"
#include "kernels/query_vector.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temp_dir.hpp"

namespace gloved::tests {
namespace {

using boost::multiprecision::cpp_rational;
using Random = std::mt19937_64;
using Vector = std::vector<float>;

/// How rows are drawn: what is easy, and what four bits, float32 or its ends find hard.
const std::vector<std::pair<std::string, std::function<Vector(Random&, std::size_t)>>> kDraws = {
    {"normal",
     [](Random& random, std::size_t dim) {
         Vector row(dim);
         std::normal_distribution<float> normal;
         for (float& value : row) value = normal(random);
         return row;
     }},
    {"heavy_tails",
     [](Random& random, std::size_t dim) {
         Vector row(dim);
         std::normal_distribution<float> normal;
         for (float& value : row) value = std::pow(normal(random), 5.0F);
         return row;
     }},
    {"one_hot",
     [](Random& random, std::size_t dim) {
         Vector row(dim, 0.0F);
         row[random() % dim] = random() % 2 ? 3.0F : -3.0F;
         return row;
     }},
    {"nearly_one_hot",
     [](Random& random, std::size_t dim) {
         Vector row(dim, -1e-30F);
         row[random() % dim] = 1.0F;
         return row;
     }},
    {"constant",
     [](Random& random, std::size_t dim) { return Vector(dim, random() % 2 ? 0.25F : -0.25F); }},
    {"levels",
     [](Random& random, std::size_t dim) {
         Vector row(dim);
         for (float& value : row)
             value = static_cast<float>(2 * static_cast<int>(random() % 16) - 15);
         return row;
     }},
    {"between_levels",
     [](Random& random, std::size_t dim) {
         Vector row(dim);
         for (float& value : row)
             value = static_cast<float>(2 * static_cast<int>(random() % 16) - 14);
         row[0] = 15;
         return row;
     }},
    {"huge",
     [](Random& random, std::size_t dim) {
         Vector row(dim, 0.0F);
         for (float& value : row) value = std::ldexp(static_cast<float>(random() % 1000) - 500, 40);
         row[0] = std::ldexp(1.0F, 49);
         return row;
     }},
    {"tiny",
     [](Random& random, std::size_t dim) {
         Vector row(dim, 0.0F);
         for (float& value : row)
             value = std::ldexp(static_cast<float>(random() % 1000) - 500, -66);
         row[0] = std::ldexp(1.0F, -58);
         return row;
     }},
    {"denormal_parts",
     [](Random& random, std::size_t dim) {
         Vector row(dim, 0.0F);
         for (float& value : row)
             value = std::ldexp(static_cast<float>(random() % 1000) - 500, -149);
         row[0] = 1;
         return row;
     }},
};

const std::vector<std::size_t> kDims = {1, 2, 3, 7, 8, 9, 25, 50, 100, 300, 301, 1025};

cpp_rational exact(double value) {
    if (value == 0) return 0;
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);
    cpp_rational result(static_cast<std::int64_t>(std::ldexp(mantissa, 53)));
    const boost::multiprecision::cpp_int power = boost::multiprecision::cpp_int(1)
                                                 << std::abs(exponent - 53);
    return exponent >= 53 ? cpp_rational(result * power) : cpp_rational(result / power);
}

using boost::multiprecision::cpp_int;

/// value · 2^149, an integer for every float32.
cpp_int scaled(float value) {
    if (value == 0) return 0;
    int exponent = 0;
    const float mantissa = std::frexp(value, &exponent);
    const bool negative = mantissa < 0;
    const cpp_int size = (cpp_int(static_cast<std::int64_t>(std::ldexp(std::abs(mantissa), 24)))
                          << (exponent + 149)) >>
                         24;
    return negative ? cpp_int(-size) : size;
}

/// What the true cosine of two vectors is made of, scaled and exact.
struct TrueCosine {
    cpp_int product = 0;
    cpp_int squares = 0;  // those of both vectors, multiplied

    TrueCosine(const Vector& a, const Vector& b) {
        cpp_int of_a = 0;
        cpp_int of_b = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            const cpp_int x = scaled(a[i]);
            const cpp_int y = scaled(b[i]);
            product += x * y;
            of_a += x * x;
            of_b += y * y;
        }
        squares = of_a * of_b;
    }

    /// Whether the cosine is at most `bound`: product <= bound √squares.
    bool is_at_most(float bound) const {
        const cpp_int left = product * abs(product) << 298;
        const cpp_int b = scaled(bound);
        return left <= cpp_int(b * abs(b) * squares);
    }
};

double norm_of(const Vector& row) { return kernels::canonical_norm(row.data(), row.size()); }

/// A row's code in the plane whose top level is `top_level`.
kernels::planes::RowCode encode(const Vector& row, int top_level) {
    return top_level == kernels::planes::kFineTopLevel
               ? kernels::planes::encode_fine_row(row, norm_of(row))
               : kernels::planes::encode_row(row, norm_of(row));
}

class PlaneOfLevels : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(, PlaneOfLevels,
                         testing::Values(kernels::planes::kTopLevel,
                                         kernels::planes::kFineTopLevel));

TEST_P(PlaneOfLevels, StoredBoundsHoldInExactArithmetic) {
    const int top_level = GetParam();
    Random random(1);
    for (const auto& [name, draw] : kDraws) {
        for (const std::size_t dim : kDims) {
            for (int i = 0; i < 20; ++i) {
                const Vector row = draw(random, dim);
                const double norm = norm_of(row);
                ASSERT_TRUE(kernels::bound_covers(norm)) << name;
                const auto code = encode(row, top_level);
                ASSERT_EQ(code.codes.size(), dim);
                ASSERT_LE(*std::ranges::max_element(code.codes), top_level);
                cpp_rational row_squares = 0;
                cpp_rational code_squares = 0;
                cpp_rational product = 0;
                for (std::size_t k = 0; k < dim; ++k) {
                    const cpp_rational value = exact(row[k]);
                    const cpp_rational level(2 * code.codes[k] - top_level);
                    row_squares += value * value;
                    code_squares += level * level;
                    product += value * level;
                }
                // §3, squared and multiplied by x·x: w p <= P < w (p + 1.5) and w (h - 1.5) < H <=
                // w h.
                const cpp_rational unit_squared =
                    cpp_rational(top_level * top_level) * dim / (cpp_rational(65535) * 65535);
                const cpp_rational p(code.projection);
                const cpp_rational h(code.residual);
                ASSERT_GT(product, 0) << name << " of " << dim;
                ASSERT_LE(unit_squared * p * p * row_squares, product * product)
                    << name << " of " << dim;
                const cpp_rational within = exact(kernels::planes::kStoredWithin);
                const cpp_rational left = code_squares * row_squares - product * product;  // H² x·x
                ASSERT_LE(left, unit_squared * h * h * row_squares) << name << " of " << dim;
                ASSERT_LT(product * product,
                          unit_squared * (p + within) * (p + within) * row_squares)
                    << name << " of " << dim;
                if (h > within) {
                    ASSERT_LT(unit_squared * (h - within) * (h - within) * row_squares, left)
                        << name << " of " << dim;
                }
            }
        }
    }
}

// The same codes and the same bits of the bounds, so that a plane does not depend on the machine
// that made it.
TEST(Plane, EveryInstructionSetMakesTheSameCode) {
    Random random(4);
    const auto& baseline = *kernels::planes::all_encode_kernels().back();
    for (const auto& [name, draw] : kDraws) {
        for (const std::size_t dim : kDims) {
            for (int i = 0; i < 20; ++i) {
                Vector row = draw(random, dim);
                // A damaged component must not tell them apart either.
                if (i == 19) row[random() % dim] = NAN;
                if (i == 18) row[random() % dim] = INFINITY;
                if (i == 17) row.assign(dim, 0.0F);
                std::vector<std::uint8_t> wanted(dim + 16, 99);
                const auto sums = baseline.encode(row.data(), dim, wanted.data());
                for (const auto* kernel : kernels::planes::all_encode_kernels()) {
                    if (!kernel->supported()) continue;
                    std::vector<std::uint8_t> codes(dim + 16, 99);
                    const auto other = kernel->encode(row.data(), dim, codes.data());
                    ASSERT_EQ(codes, wanted) << kernel->name << ", " << name << " of " << dim;
                    ASSERT_EQ(std::bit_cast<std::uint64_t>(other.product),
                              std::bit_cast<std::uint64_t>(sums.product))
                        << kernel->name << ", " << name << " of " << dim;
                    ASSERT_EQ(other.square, sums.square)
                        << kernel->name << ", " << name << " of " << dim;
                }
                double square = 0;
                for (std::size_t k = 0; k < dim; ++k) square += std::pow(2.0 * wanted[k] - 15, 2);
                ASSERT_EQ(sums.square, square) << name << " of " << dim;
            }
        }
    }
}

std::int64_t sum_of(const kernels::planes::RowCode& code,
                    const std::function<int(std::size_t)>& digit) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < code.codes.size(); ++i) sum += code.codes[i] * digit(i);
    return sum;
}

int high_byte(const kernels::planes::PlaneQuery& query, std::size_t i) {
    return query.bytes[i / 8 * 16 + i % 8];
}
int digit(const kernels::planes::PlaneQuery& query, std::size_t i) {
    return 128 * high_byte(query, i) + query.bytes[i / 8 * 16 + 8 + i % 8];
}

/// Σ a Q.
std::int64_t sum_of(const kernels::planes::RowCode& code,
                    const kernels::planes::PlaneQuery& query) {
    return sum_of(code, [&](std::size_t i) { return digit(query, i); });
}

/// Σ a high.
std::int64_t high_byte_sum(const kernels::planes::RowCode& code,
                           const kernels::planes::PlaneQuery& query) {
    return sum_of(code, [&](std::size_t i) { return high_byte(query, i); });
}

/// Whether the comparison of §5 rejects a sum: fused or not.
bool rejects(const kernels::planes::RowCode& code, std::int64_t sum,
             const kernels::planes::PlaneCutoff& cutoff, bool fused) {
    const auto p = static_cast<float>(code.projection);
    const auto h = static_cast<float>(code.residual);
    const float least =
        fused ? std::fma(p, cutoff.of_projection, std::fma(-h, cutoff.of_residual, cutoff.constant))
              : p * cutoff.of_projection + (cutoff.constant - h * cutoff.of_residual);
    return static_cast<float>(sum) < least;
}

bool rejects(const kernels::planes::RowCode& code, const kernels::planes::PlaneQuery& query,
             const kernels::planes::PlaneCutoff& cutoff, bool fused) {
    return rejects(code, sum_of(code, query), cutoff, fused);
}

/// The slack of a cutoff for roundings comes from these (certified-search.md, §5): where they are
/// too small, no row of a test has to be lost for it.
TEST(Plane, FactsOfDigitsAreThoseOfTheirBytes) {
    using kernels::planes::kStepDims;
    Random random(6);
    for (const auto& [name, draw] : kDraws) {
        for (const std::size_t dim : kDims) {
            const auto query = kernels::make_query_vector(draw(random, dim));
            if (!query) continue;
            for (const int largest :
                 {kernels::planes::kTwoByteDigit, kernels::planes::kOneByteDigit}) {
                const auto digits = kernels::planes::make_plane_query(*query, largest);
                double sum = 0;
                double size = 0;
                double high_sum = 0;
                double high_size = 0;
                for (std::size_t i = 0; i < dim; ++i) {
                    const std::size_t at = i / kStepDims * 2 * kStepDims + i % kStepDims;
                    const int high = digits.bytes[at];
                    const int digit = 128 * high + digits.bytes[at + kStepDims];
                    sum += digit;
                    size += std::abs(digit);
                    high_sum += high;
                    high_size += std::abs(high);
                }
                SCOPED_TRACE(testing::Message() << name << " of " << dim << ", up to " << largest);
                EXPECT_GT(size, 0);
                EXPECT_EQ(digits.facts.sum, sum);
                EXPECT_EQ(digits.facts.size, size);
                EXPECT_EQ(digits.high_facts.sum, high_sum);
                EXPECT_EQ(digits.high_facts.size, high_size);
            }
        }
    }
}

// A row whose canonical score reaches the threshold is never left out; one that is far below it
// mostly is.
TEST(Plane, CutsKeepEveryRowThatReachesTheThreshold) {
    Random random(2);
    std::uint64_t far = 0;
    std::uint64_t far_rejected = 0;
    for (const auto& [row_name, draw_row] : kDraws) {
        for (const auto& [query_name, draw_query] : kDraws) {
            for (const std::size_t dim : kDims) {
                for (int i = 0; i < 10; ++i) {
                    const Vector row = draw_row(random, dim);
                    Vector direction = draw_query(random, dim);
                    // Near rows are where it matters: some queries are rows, a little moved.
                    if (i % 2 == 0) {
                        for (std::size_t k = 0; k < dim; ++k)
                            direction[k] = row[k] + std::ldexp(row[k], -1 - i);
                    }
                    const auto query = kernels::make_query_vector(direction);
                    if (!query) continue;
                    const double score = kernels::canonical_score(query->values.data(), query->norm,
                                                                  row.data(), norm_of(row), dim);
                    const auto code = kernels::planes::encode_row(row, norm_of(row));
                    const auto digits = kernels::planes::make_plane_query(*query);
                    const auto cutoff = kernels::planes::plane_cutoff(digits.facts, score, dim);
                    const auto coarse_cutoff =
                        kernels::planes::plane_cutoff(digits.high_facts, score, dim);
                    for (const bool fused : {false, true}) {
                        ASSERT_FALSE(rejects(code, digits, cutoff, fused))
                            << row_name << " of " << dim << ", asked " << query_name << ": score "
                            << score;
                        ASSERT_FALSE(
                            rejects(code, high_byte_sum(code, digits), coarse_cutoff, fused))
                            << row_name << " of " << dim << ", asked " << query_name << ": score "
                            << score;
                    }
                    const auto none = kernels::planes::plane_cutoff(digits.facts, -1, dim);
                    ASSERT_FALSE(rejects(code, digits, none, false));
                    if (row_name != "normal" || query_name != "normal" || dim < 100 ||
                        std::abs(score) > 0.3)
                        continue;
                    ++far;
                    far_rejected +=
                        rejects(code, digits, kernels::planes::plane_cutoff(digits.facts, 0.6, dim),
                                false)
                            ? 1U
                            : 0U;
                }
            }
        }
    }
    EXPECT_GT(far, 10U);
    EXPECT_GT(10 * far_rejected, 9 * far) << far_rejected << " of " << far;
}

/// Levels that stand for a row.
std::vector<double> levels_of(const kernels::planes::RowCode& code, int top_level) {
    std::vector<double> levels;
    for (const std::uint8_t a : code.codes) levels.push_back(2.0 * a - top_level);
    return levels;
}

/// A query for which the inequality (§1) leaves nothing over: the row stands between it and its own
/// code, in one plane. `beyond`: how far.
Vector query_beyond(const Vector& row, const std::vector<double>& code, double beyond) {
    double product = 0;
    double squares = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        product += static_cast<double>(row[i]) * code[i];
        squares += code[i] * code[i];
    }
    Vector query(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        const auto x = static_cast<double>(row[i]);
        query[i] = static_cast<float>(x + beyond * (x - product / squares * code[i]));
    }
    return query;
}

constexpr int kQueryKinds = 8;

/// Queries of a row: drawn, about the row itself and its opposite, its code, and some for which
/// bounds have nothing to spare.
Vector query_of_kind(int kind, const Vector& row, const std::vector<double>& code,
                     const Vector& drawn) {
    Vector query = row;
    switch (kind) {
        case 0:
            return drawn;
        case 1:
            return row;
        case 2:
            for (float& value : query) value = -value;
            return query;
        case 3:
            for (std::size_t i = 0; i < row.size(); ++i) query[i] = static_cast<float>(code[i]);
            return query;
        case 4:
            // Near enough to tie in float32, and not the same.
            for (std::size_t i = 0; i < row.size(); i += 3)
                query[i] = std::nextafter(query[i], 1e30F);
            return query;
        default:
            return query_beyond(row, code, kind == 5 ? 0.1 : kind == 6 ? 1.0 : 5.0);
    }
}

std::int64_t sum_of(const std::vector<std::uint8_t>& codes,
                    const kernels::planes::PlaneQuery& query) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) sum += codes[i] * digit(query, i);
    return sum;
}

/// Every row and query that is worth a test: `check(row, norm, query, facts about both for
/// messages)`. Codes are the plane's, or what `code_of` makes.
void for_hard_pairs(std::uint64_t seed,
                    const std::function<std::vector<double>(const Vector&)>& code_of,
                    const std::function<void(const Vector&, const kernels::QueryVector&, bool,
                                             const std::string&)>& check) {
    Random random(seed);
    for (const auto& [row_name, draw_row] : kDraws) {
        for (const auto& [query_name, draw_query] : kDraws) {
            for (const std::size_t dim : kDims) {
                const Vector row = draw_row(random, dim);
                const std::vector<double> code = code_of(row);
                for (int kind = 0; kind < kQueryKinds; ++kind) {
                    const auto query = kernels::make_query_vector(
                        query_of_kind(kind, row, code, draw_query(random, dim)));
                    if (!query) continue;
                    const bool far =
                        kind == 0 && row_name == "normal" && query_name == "normal" && dim >= 100;
                    check(row, *query, far,
                          row_name + " of " + std::to_string(dim) + ", asked " + query_name +
                              ", kind " + std::to_string(kind));
                }
            }
        }
    }
}

std::vector<double> plane_levels(const Vector& row) {
    return levels_of(kernels::planes::encode_row(row, norm_of(row)), kernels::planes::kTopLevel);
}

// Exactly: no row's cosine is above its upper bound (§7), and a far row's bound is far below 1.
TEST(Plane, UpperBoundsHoldInExactArithmetic) {
    for (const int largest : {kernels::planes::kTwoByteDigit, kernels::planes::kOneByteDigit}) {
        float far_upper = 0;
        std::uint64_t tight = 0;
        for_hard_pairs(5, plane_levels,
                       [&](const Vector& row, const kernels::QueryVector& query, bool far,
                           const std::string& what) {
                           const std::size_t dim = row.size();
                           const auto code = kernels::planes::encode_row(row, norm_of(row));
                           const auto digits = kernels::planes::make_plane_query(query, largest);
                           const auto facts = kernels::cuda::upper_facts(digits.facts, dim);
                           float estimate = 0;
                           const float upper = kernels::cuda::row_upper(
                               static_cast<std::int32_t>(sum_of(code.codes, digits)),
                               code.projection, code.residual, facts, estimate);
                           ASSERT_LE(upper, 1.0F + kernels::cuda::kUpperSlack) << what;
                           const TrueCosine cosine(row, query.values);
                           ASSERT_TRUE(cosine.is_at_most(upper)) << what << ": " << upper;
                           const double score = kernels::canonical_score(
                               query.values.data(), query.norm, row.data(), norm_of(row), dim);
                           ASSERT_LE(score, static_cast<double>(upper)) << what;
                           if (static_cast<double>(upper) < score + 1e-3) ++tight;
                           if (far && std::abs(score) < 0.3) far_upper = std::max(far_upper, upper);
                       });
        EXPECT_GT(tight, 1000U) << "queries that leave the bound little to spare";
        EXPECT_GT(far_upper, 0.0F);
        EXPECT_LT(far_upper, 0.6F) << largest;
    }
}

/// §7's bound for a sum D, in far more than float32's precision.
long double exact_upper(double d, double to_units, double remainder, double p, double h) {
    const long double n =
        std::sqrt(static_cast<long double>(p) * p + static_cast<long double>(h) * h);
    const long double x0 = static_cast<long double>(d) * to_units / n;
    const long double x =
        std::max(x0 + 1.51L * std::fabs(x0) / n + static_cast<long double>(remainder), -1.0L);
    const long double cosine = static_cast<long double>(p) / n;
    if (x >= cosine) return 1;
    return x * cosine + std::sqrt((1 - x) * (1 + x)) * static_cast<long double>(h) / n;
}

// Whatever p, h and the sum are: float32 takes less than 10⁻⁶ of the 2⁻¹⁶ that are added. Near x =
// −1, near x = cos θ and where either part of the code is nearly nothing, above all.
TEST(Plane, UpperBoundsRoundByLessThanIsAdded) {
    Random random(9);
    const auto between = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(random);
    };
    long double least = 1;
    for (int i = 0; i < 1'000'000; ++i) {
        // |c| is between √dim and 15 √dim.
        const double n = std::exp(between(std::log(4369.0), std::log(65535.0)));
        const double angle = i % 4 == 0 ? std::exp(between(-11, 0.45)) : between(0, std::acos(0.0));
        const double p = std::floor(n * (i % 8 == 0 ? std::sin(angle) : std::cos(angle)));
        const double h =
            std::max(1.0, std::ceil(n * (i % 8 == 0 ? std::cos(angle) : std::sin(angle))));
        const double length = std::hypot(p, h);
        const double near = std::exp(between(-20, 0)) * (random() % 2 == 0 ? 1 : -1);
        const double aim = i % 3 == 0   ? -1 + std::abs(near)
                           : i % 3 == 1 ? p / length + near
                                        : between(-1, 1);
        kernels::planes::DigitFacts digits;
        const std::size_t dim = 1 + random() % 400;
        const double d = std::floor(std::exp(between(std::log(1e4), std::log(9e8))));
        digits.scale =
            std::abs(std::clamp(aim, -1.0, 1.0)) * length / d * kernels::planes::stored_step(dim);
        digits.remainder = i % 2 == 0 ? std::exp(between(-12, -2)) : 0x1p-45;
        if (!(digits.scale > 0)) continue;
        const auto facts = kernels::cuda::upper_facts(digits, dim);
        const auto sum = static_cast<std::int32_t>(aim < 0 ? -d / 2 : d / 2);
        float estimate = 0;
        const float upper = kernels::cuda::row_upper(sum, static_cast<float>(p),
                                                     static_cast<float>(h), facts, estimate);
        const long double wanted = exact_upper(
            2.0 * sum, digits.scale / kernels::planes::stored_step(dim), digits.remainder, p, h);
        least = std::min(least, static_cast<long double>(upper) - wanted);
    }
    EXPECT_GT(least, static_cast<long double>(kernels::cuda::kUpperSlack) - 1e-6L);
}

/// One byte a component, as launch_build_int8_codes makes it (§8).
std::vector<std::int8_t> int8_codes(const Vector& row) {
    float largest = 0;
    for (const float value : row) largest = std::max(largest, std::abs(value));
    std::vector<std::int8_t> codes;
    for (const float value : row) {
        codes.push_back(static_cast<std::int8_t>(
            std::rint(static_cast<double>(value) * 127.0 / static_cast<double>(largest))));
    }
    return codes;
}

std::vector<double> int8_levels(const Vector& row) {
    const auto codes = int8_codes(row);
    return {codes.begin(), codes.end()};
}

kernels::cuda::Int8Bounds int8_bounds_of(const Vector& row, const std::vector<std::int8_t>& codes) {
    double product = 0;
    double squares = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
        product += static_cast<double>(row[i]) * codes[i];
        squares += codes[i] * codes[i];
    }
    return kernels::cuda::int8_bounds(product, squares, norm_of(row));
}

TEST(Plane, Int8BoundsHoldInExactArithmetic) {
    using kernels::planes::kStepDims;
    Random random(6);
    for (const auto& [name, draw] : kDraws) {
        for (const std::size_t dim : kDims) {
            for (int i = 0; i < 20; ++i) {
                const Vector row = draw(random, dim);
                const auto codes = int8_codes(row);
                const auto bounds = int8_bounds_of(row, codes);
                cpp_rational row_squares = 0;
                cpp_rational code_squares = 0;
                cpp_rational product = 0;
                for (std::size_t k = 0; k < dim; ++k) {
                    const cpp_rational value = exact(row[k]);
                    row_squares += value * value;
                    code_squares += codes[k] * codes[k];
                    product += value * codes[k];
                }
                const cpp_rational p = exact(bounds.projection);
                const cpp_rational h = exact(bounds.residual);
                ASSERT_GT(p, 0) << name << " of " << dim;
                ASSERT_LE(p * p * row_squares, product * product) << name << " of " << dim;
                ASSERT_LE(code_squares * row_squares - product * product, h * h * row_squares)
                    << name << " of " << dim;
            }
        }
    }
}

// As with the plane's own cutoffs, for those of one byte a component.
TEST(Plane, Int8CutsKeepEveryRowThatReachesTheThreshold) {
    std::uint64_t far_rows = 0;
    std::uint64_t far_rejected = 0;
    std::uint64_t below_rejected = 0;
    std::uint64_t below = 0;
    for_hard_pairs(7, int8_levels,
                   [&](const Vector& row, const kernels::QueryVector& query, bool far,
                       const std::string& what) {
                       const std::size_t dim = row.size();
                       const auto codes = int8_codes(row);
                       const auto bounds = int8_bounds_of(row, codes);
                       const auto digits = kernels::planes::make_plane_query(query);
                       std::int64_t sum = 0;
                       for (std::size_t i = 0; i < dim; ++i) sum += codes[i] * digit(digits, i);
                       ASSERT_EQ(static_cast<std::int32_t>(sum), sum) << what;
                       const auto rejected = [&](double threshold) {
                           return kernels::cuda::int8_rejects(
                               static_cast<std::int32_t>(sum), bounds,
                               kernels::cuda::int8_cutoff(digits.facts, threshold, dim));
                       };
                       const double score = kernels::canonical_score(
                           query.values.data(), query.norm, row.data(), norm_of(row), dim);
                       for (const double threshold : {score, std::nextafter(score, -1.0),
                                                      score - 1e-9, score - 1e-3, 0.0, -1.0}) {
                           if (threshold <= score) {
                               ASSERT_FALSE(rejected(threshold))
                                   << what << ": " << score << " reaches " << threshold;
                           }
                       }
                       ASSERT_FALSE(rejected(-INFINITY)) << what;
                       ASSERT_TRUE(rejected(1.5)) << what;
                       if (!far) return;
                       ++below;
                       below_rejected += rejected(std::max(score, 0.0) + 0.03) ? 1U : 0U;
                       if (std::abs(score) > 0.3) return;
                       ++far_rows;
                       far_rejected += rejected(0.35) ? 1U : 0U;
                   });
    EXPECT_GT(far_rows, 0U);
    EXPECT_EQ(far_rejected, far_rows);
    EXPECT_EQ(below_rejected, below) << "what one byte a component leaves open is small";
}

/// A range that contains a row's bounds: alone (0), or those of a tile whose other rows are a
/// little (1) or much (2) shorter, longer and rougher.
kernels::cuda::Int8Range range_around(const kernels::cuda::Int8Bounds& bounds, int kind) {
    constexpr float kShares[] = {0, 0x1p-10F, 0.2F};
    const float share = kShares[kind];
    return {bounds.projection * (1 - share), bounds.projection * (1 + share),
            bounds.residual * (1 + share)};
}

// Bytes times bytes: §9.
TEST(Plane, Int8SumCutoffsKeepEveryRowAndLowerBoundsAreReached) {
    std::uint64_t far_rows = 0;
    std::uint64_t far_rejected = 0;
    std::uint64_t bounded = 0;
    for_hard_pairs(
        9, int8_levels,
        [&](const Vector& row, const kernels::QueryVector& query, bool far,
            const std::string& what) {
            const std::size_t dim = row.size();
            const auto codes = int8_codes(row);
            const auto bounds = int8_bounds_of(row, codes);
            const auto digits =
                kernels::planes::make_plane_query(query, kernels::planes::kOneByteDigit);
            std::int32_t sum = 0;
            for (std::size_t i = 0; i < dim; ++i) sum += codes[i] * digit(digits, i);
            const double score = kernels::canonical_score(query.values.data(), query.norm,
                                                          row.data(), norm_of(row), dim);
            for (int kind = 0; kind < 3; ++kind) {
                const auto range = range_around(bounds, kind);
                const auto rejected = [&](double threshold) {
                    return sum <
                           kernels::cuda::int8_min_sum(
                               kernels::cuda::int8_sum_cutoff(digits.facts, threshold, dim), range);
                };
                for (const double threshold : {score, score - 1e-9, 0.0, -1.0}) {
                    if (threshold <= score) {
                        ASSERT_FALSE(rejected(threshold))
                            << what << ": " << score << " reaches " << threshold;
                    }
                }
                ASSERT_TRUE(rejected(1.5)) << what;
                const double lower = kernels::cuda::int8_lower(sum, range, digits.facts, dim);
                ASSERT_LE(lower, score) << what;
                ASSERT_TRUE(sum > 0 || lower == -INFINITY) << what;
                if (kind > 0) continue;
                if (score > 0.5) bounded += lower > score - 0.1 ? 1U : 0U;
                if (!far || std::abs(score) > 0.3) continue;
                ++far_rows;
                far_rejected += rejected(0.4) ? 1U : 0U;
            }
        });
    EXPECT_GT(far_rows, 0U);
    EXPECT_EQ(far_rejected, far_rows);
    EXPECT_GT(bounded, 0U);
}

/// Float32 loses something in an int8_min_sum; never so much that it is above the exact value.
TEST(Plane, Int8MinSumsAreRoundedDown) {
    Random random(10);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int i = 0; i < 200000; ++i) {
        const std::size_t dim = 1 + random() % 4096;
        const double root = std::sqrt(static_cast<double>(dim));
        kernels::planes::DigitFacts digits;
        digits.scale = std::exp2(-7 * uniform(random)) / 127;
        digits.remainder = 0.3 * uniform(random) * uniform(random);
        const double threshold = uniform(random);
        const auto cutoff = kernels::cuda::int8_cutoff(digits, threshold, dim);
        if (!std::isfinite(cutoff.of_projection)) continue;
        const auto p = static_cast<float>(127 * root * uniform(random));
        const auto h = static_cast<float>(127 * root * uniform(random));
        const int min_sum = kernels::cuda::int8_min_sum(
            kernels::cuda::int8_sum_cutoff(digits, threshold, dim), {p, p, h});
        const long double exact =
            (static_cast<long double>(cutoff.of_projection) * static_cast<long double>(p) -
             static_cast<long double>(cutoff.of_residual) * static_cast<long double>(h)) /
            static_cast<long double>(cutoff.scale);
        ASSERT_LE(static_cast<long double>(min_sum), exact) << dim << " " << threshold;
        ASSERT_GE(static_cast<long double>(min_sum),
                  exact - 2 - 1e-6L * 127 * root * 2 / static_cast<long double>(cutoff.scale))
            << dim << " " << threshold;
    }
}

// One byte a digit leaves more open, and loses no row either.
TEST(Plane, CutsOfBothKindsOfDigitsKeepEveryRowOfAHardPair) {
    for (const int largest : {kernels::planes::kTwoByteDigit, kernels::planes::kOneByteDigit}) {
        std::uint64_t far_rows = 0;
        std::uint64_t far_rejected = 0;
        for_hard_pairs(8, plane_levels,
                       [&](const Vector& row, const kernels::QueryVector& query, bool far,
                           const std::string& what) {
                           const std::size_t dim = row.size();
                           const auto code = kernels::planes::encode_row(row, norm_of(row));
                           const auto digits = kernels::planes::make_plane_query(query, largest);
                           for (std::size_t i = 0; i < dim; ++i)
                               ASSERT_LE(std::abs(digit(digits, i)), largest) << what;
                           const double score = kernels::canonical_score(
                               query.values.data(), query.norm, row.data(), norm_of(row), dim);
                           for (const bool fused : {false, true}) {
                               const auto cutoff =
                                   kernels::planes::plane_cutoff(digits.facts, score, dim);
                               ASSERT_FALSE(rejects(code, digits, cutoff, fused))
                                   << what << ": score " << score;
                           }
                           if (!far || std::abs(score) > 0.3) return;
                           ++far_rows;
                           far_rejected +=
                               rejects(code, digits,
                                       kernels::planes::plane_cutoff(digits.facts, 0.6, dim), false)
                                   ? 1U
                                   : 0U;
                       });
        EXPECT_GT(far_rows, 0U);
        EXPECT_EQ(far_rejected, far_rows) << largest;
    }
}

// A fine plane, whose digits are the high bytes, loses no row of a hard pair, and bounds it closely
// from both sides.
TEST(Plane, FineCodesBoundEveryRowOfAHardPair) {
    const int top_level = kernels::planes::kFineTopLevel;
    std::uint64_t near_rows = 0;
    std::uint64_t near_rejected = 0;
    std::uint64_t near_bounded = 0;
    for_hard_pairs(
        9,
        [](const Vector& row) {
            constexpr int kTop = kernels::planes::kFineTopLevel;
            return levels_of(encode(row, kTop), kTop);
        },
        [&](const Vector& row, const kernels::QueryVector& query, bool, const std::string& what) {
            const std::size_t dim = row.size();
            const auto code = encode(row, top_level);
            const auto digits = kernels::planes::make_plane_query(query);
            const std::int64_t sum = high_byte_sum(code, digits);
            const double score = kernels::canonical_score(query.values.data(), query.norm,
                                                          row.data(), norm_of(row), dim);
            const auto cutoff = [&](double threshold) {
                return kernels::planes::plane_cutoff(digits.high_facts, threshold, dim, top_level);
            };
            for (const bool fused : {false, true})
                ASSERT_FALSE(rejects(code, sum, cutoff(score), fused)) << what << ": " << score;
            const double lower =
                kernels::planes::plane_lower(digits.high_facts, static_cast<std::int32_t>(sum),
                                             code.projection, code.residual, dim, top_level);
            ASSERT_LE(lower, score) << what;
            if (dim < 50 || score < 0 || score > 0.8) return;
            ++near_rows;
            near_rejected += rejects(code, sum, cutoff(score + 0.1), false) ? 1U : 0U;
            near_bounded += lower > score - 0.1 ? 1U : 0U;
        });
    EXPECT_GT(2 * near_bounded, near_rows) << near_bounded << " of " << near_rows;
    EXPECT_GT(near_rows, 100U);
    EXPECT_GT(4 * near_rejected, 3 * near_rows) << near_rejected << " of " << near_rows;
}

// Of a row that is not finite, or has another norm than stored, no bound would hold.
TEST(Plane, FineCodesOfDamagedRowsBoundNothing) {
    const Vector sound = {0.5F, -2.0F, 1.0F, 0.25F, 1.5F};
    const double norm = norm_of(sound);
    EXPECT_GT(kernels::planes::encode_fine_row(sound, norm).projection, 0);
    const auto expect_no_bounds = [](const Vector& row, double stored_norm) {
        const auto code = kernels::planes::encode_fine_row(row, stored_norm);
        EXPECT_EQ(code.projection, 0) << row[0] << ", " << stored_norm;
        EXPECT_EQ(code.residual, 65535) << row[0] << ", " << stored_norm;
    };
    for (const double factor : {0.5, 1 - 1e-6, 1 + 1e-6, 2.0})
        expect_no_bounds(sound, factor * norm);
    for (const float value : {INFINITY, -INFINITY, NAN}) {
        Vector row = sound;
        row[0] = value;
        expect_no_bounds(row, norm);
    }
}

// A row that is not finite, or longer than its norm, may have any score: no query rules it out.
TEST(Plane, CodesOfDamagedRowsRuleNothingOut) {
    for (const float value : {INFINITY, -INFINITY, NAN, 3e38F, -40.0F}) {
        for (std::size_t at = 0; at < 20; ++at) {
            Vector row(20, 0.5F);
            row[at] = value;
            row[(at + 1) % 20] = -1;
            const auto code = kernels::planes::encode_row(row, 2.5);
            EXPECT_EQ(code.projection, 0) << value << " at " << at;
            EXPECT_EQ(code.residual, 65535) << value << " at " << at;
        }
    }
}

TEST(Plane, NoThresholdIsReachedByNobodyAndMinusInfinityByAll) {
    const auto query = kernels::make_query_vector({1.0F, -2.0F, 0.5F});
    ASSERT_TRUE(query);
    const auto digits = kernels::planes::make_plane_query(*query);
    const auto code =
        kernels::planes::encode_row(Vector{1.0F, -2.0F, 0.5F}, norm_of({1.0F, -2.0F, 0.5F}));
    EXPECT_FALSE(
        rejects(code, digits, kernels::planes::plane_cutoff(digits.facts, -INFINITY, 3), false));
    EXPECT_FALSE(rejects(code, digits, kernels::planes::plane_cutoff(digits.facts, 1, 3), false));
    EXPECT_TRUE(rejects(code, digits, kernels::planes::plane_cutoff(digits.facts, 1.5, 3), false));
}

struct AskedPlane {
    int top_level;
    const kernels::planes::PlaneQuery& query;
    const kernels::planes::PlaneCutoff& cutoff;
};

/// Compares `passed`, the rows that a loop passed in order, with the definition. Where fused and
/// separate operations differ, the loop may do either.
void expect_picks(const format::Model& model, const AskedPlane& asked,
                  const std::vector<kernels::cpu::PassedRow>& passed) {
    auto at = passed.begin();
    for (std::uint32_t row = 0; row < model.rows(); ++row) {
        const auto values = model.vector(row);
        const auto code = encode({values.begin(), values.end()}, asked.top_level);
        const std::int64_t sum = high_byte_sum(code, asked.query);
        const bool picked = at != passed.end() && at->row == row;
        if (picked) {
            ASSERT_EQ(at->sum, sum);
            ASSERT_EQ(at->projection, code.projection);
            ASSERT_EQ(at->residual, code.residual);
            ASSERT_GT(at->residual, 0);
            ++at;
        }
        const auto rejected = [&](bool fused) { return rejects(code, sum, asked.cutoff, fused); };
        if (rejected(false) != rejected(true)) continue;
        ASSERT_EQ(picked, !rejected(true)) << "row " << row;
    }
    // What is left are rows that fill the last group.
    for (; at != passed.end(); ++at) {
        ASSERT_GE(at->row, model.rows());
        ASSERT_EQ(at->residual, 0);
    }
}

/// A plane's groups and a loop over them.
struct LoopOnPlane {
    int top_level;
    std::size_t step_dims;
    const std::byte* groups;
    std::size_t steps;
    kernels::cpu::PlaneLoop loop;
};

/// Asks a loop the queries of a block of `used` and compares what passes.
void expect_loop_picks(const format::Model& model, const LoopOnPlane& plane, std::size_t used,
                       Random& random) {
    const std::size_t dim = model.dim();
    const std::size_t width = std::bit_ceil(used);
    const std::size_t groups = model.rows() / kernels::planes::kGroupRows + 1;
    std::vector<kernels::planes::PlaneQuery> queries;
    std::vector<kernels::planes::PlaneCutoff> cutoffs(width, kernels::cpu::kNothingPasses);
    for (std::size_t q = 0; q < used; ++q) {
        const auto values = model.vector(random() % model.rows());
        const auto query =
            q == 0 && used % 2 == 0
                ? kernels::make_query_vector(Vector(dim, random() % 2 ? 1.0F : -1.0F))
                : kernels::make_query_vector({values.begin(), values.end()});
        ASSERT_TRUE(query);
        queries.push_back(kernels::planes::make_plane_query(*query));
        const double threshold = q == 1 ? -1 : static_cast<double>(random() % 100) / 100;
        cutoffs[q] =
            kernels::planes::plane_cutoff(queries[q].high_facts, threshold, dim, plane.top_level);
    }
    std::vector<const kernels::planes::PlaneQuery*> of;
    for (const auto& query : queries) of.push_back(&query);
    const kernels::cpu::QueryBlock block(of, plane.step_dims);
    ASSERT_EQ(block.width, width);
    std::vector<kernels::cpu::PassedRow> passed(groups * kernels::planes::kGroupRows * width);
    passed.resize(plane.loop.filter(width)(plane.groups, groups, plane.steps, block.digits.data(),
                                           cutoffs.data(), passed.data()));
    for (std::uint32_t q = 0; q < queries.size(); ++q) {
        std::vector<kernels::cpu::PassedRow> of_query;
        std::copy_if(passed.begin(), passed.end(), std::back_inserter(of_query),
                     [&](const auto& one) { return one.query == q; });
        SCOPED_TRACE("query " + std::to_string(q));
        expect_picks(model, {plane.top_level, queries[q], cutoffs[q]}, of_query);
    }
    for (const auto& one : passed) ASSERT_LT(one.query, queries.size());
}

// Every instruction set passes what the definition passes, in float32 fused or not, by the high
// bytes of digits. In blocks of all widths, full or not.
TEST(Plane, EveryInstructionSetPicksWhatTheDefinitionPicks) {
    Random random(3);
    for (const std::size_t dim : kDims) {
        const TempDir dir;
        auto entries = random_entries(77, dim, dim);
        // All codes the largest, and below all digits too: where sums are largest.
        for (const std::size_t at : {3U, 40U}) entries[at].second.assign(dim, 1.0F);
        const auto model = make_model(dir / "model", entries);
        kernels::ThreadPool pool(2);
        const kernels::planes::Plane plane(model, pool);
        const kernels::planes::FinePlane fine_plane(model, pool);
        ASSERT_EQ(plane.shape().groups(), 5U);
        ASSERT_EQ(fine_plane.bytes().size(), 5 * fine_plane.group_bytes());
        for (const auto* kernel : kernels::cpu::all_plane_kernels()) {
            if (!kernel->supported()) continue;
            SCOPED_TRACE(kernel->name);
            for (std::size_t used = 1; used <= kernel->loop.width; ++used) {
                expect_loop_picks(model,
                                  {kernels::planes::kTopLevel, kernels::planes::kStepDims,
                                   plane.group(0), plane.shape().steps(), kernel->loop},
                                  used, random);
            }
            for (std::size_t used = 1; used <= kernel->fine_loop.width; ++used) {
                expect_loop_picks(
                    model,
                    {kernels::planes::kFineTopLevel, kernels::planes::kFineStepDims,
                     fine_plane.bytes().data(), fine_plane.steps(), kernel->fine_loop},
                    used, random);
            }
        }
    }
}

}  // namespace
}  // namespace gloved::tests
