#include "tests/support/hard_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <utility>

namespace gloved::tests {
namespace {

using Vector = std::vector<float>;

/// The engine's numbers and exact operations alone: what the standard library's distributions give
/// is its own affair.
class Rows {
  public:
    Rows(std::size_t dim, std::uint64_t seed) : dim_(dim), random_(seed) {}

    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

    /// Near-normal components: sums of four uniform numbers.
    Vector any() {
        Vector row(dim_);
        for (float& value : row) value = bell();
        return row;
    }
    Vector near(const Vector& base, float noise) {
        Vector row = base;
        for (float& value : row) value += noise * bell();
        return row;
    }
    static Vector times(Vector row, float factor) {
        for (float& value : row) value *= factor;
        return row;
    }
    /// 2^least … 2^most.
    float power(int least, int most) {
        return std::ldexp(
            1.0F, least + static_cast<int>(below(static_cast<std::size_t>(most - least) + 1)));
    }

    /// `count` rows of one kind, of which each may look at those before it.
    void add_run(std::size_t kind, std::size_t count, std::vector<Vector>& rows) {
        const Vector base = any();
        const float noise = power(-24, -7);
        for (std::size_t i = 0; i < count; ++i) rows.push_back(row_of(kind, i, base, noise));
    }
    static constexpr std::size_t kKinds = 13;

  private:
    float bell() {
        const std::uint64_t bits = random_();
        const auto sum = static_cast<double>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) +
                                             (bits >> 32 & 0xFFFF) + (bits >> 48));
        return static_cast<float>(sum / 0xFFFF - 2);
    }
    float sign() { return below(2) == 0 ? 1.0F : -1.0F; }

    Vector row_of(std::size_t kind, std::size_t i, const Vector& base, float noise) {
        Vector row(dim_, 0.0F);
        switch (kind) {
            case 0:
            case 1:
                return near(base, noise);
            case 2:
                return base;
            case 3:
                return times(near(base, noise), i % 2 == 0 ? 1.0F : -1.0F);
            case 4:
                return times(base, power(-70, 70));
            case 5:
                return times(any(), power(-70, 70));
            case 6:
                return row;
            case 7:
                row[below(dim_)] = sign() * power(-30, 30);
                return row;
            case 8: {
                const bool mixed = i % 2 == 1;
                for (float& value : row) value = mixed ? sign() : 1.0F;
                return times(std::move(row), sign() * power(-60, 60));
            }
            case 9:
                for (std::size_t left = 1 + below(5); left > 0; --left) row[below(dim_)] = bell();
                return row;
            case 10:
            case 11: {
                // A cell is clip / 8 of the largest component wide. Halves of cells are levels,
                // whole ones their edges, and what lies beside an edge by one unit in the last
                // place may fall on either side.
                constexpr float kClips[] = {0.45F, 0.55F, 0.63F, 0.70F, 0.77F, 0.84F, 0.92F, 1.0F};
                const float cell = kClips[below(std::size(kClips))] / 8;
                const float offset = kind == 10 ? 0.5F : 0.0F;
                for (float& value : row) {
                    value = (static_cast<float>(below(16)) - 8 + offset) * cell;
                    if (below(4) == 0) value = std::nextafter(value, sign());
                }
                row[below(dim_)] = sign();
                return times(std::move(row), power(-3, 3));
            }
            default:
                row = any();
                if (kind == 12 && i % 2 == 0) {
                    for (float& value : row) value *= power(-149, 0);
                }
                return row;
        }
    }

    std::size_t dim_;
    std::mt19937_64 random_;
};

}  // namespace

std::vector<Entry> hard_entries(std::size_t rows, std::size_t dim, std::uint64_t seed) {
    Rows maker(dim, seed);
    std::vector<Vector> vectors;
    const Vector centre = maker.any();
    for (std::size_t i = 0; i < rows / 5; ++i) vectors.push_back(maker.near(centre, 0.001F));
    for (std::size_t run = 0; vectors.size() < rows; ++run) {
        const std::size_t most = std::max<std::size_t>(1, rows / 20);
        maker.add_run(run % Rows::kKinds, std::min(1 + maker.below(most), rows - vectors.size()),
                      vectors);
    }
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < rows; ++i)
        entries.emplace_back(fmt::format("w{:08}", i), std::move(vectors[i]));
    for (std::size_t i = rows; i > 1; --i) std::swap(entries[i - 1], entries[maker.below(i)]);
    return entries;
}

}  // namespace gloved::tests
