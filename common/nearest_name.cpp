#include "common/nearest_name.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace gloved {
namespace {

constexpr std::size_t kMaxDistance = 2;
/// Of shorter names the last letter counts.
constexpr std::size_t kMinStem = 4;
/// Longer texts are no names.
constexpr std::size_t kMaxBytes = 64;

/// The optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before_last;
    std::vector<std::size_t> last(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::vector<std::size_t> row(b.size() + 1, i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = a[i - 1] == b[j - 1];
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
            const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (exchanged) row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
        before_last = std::move(last);
        last = std::move(row);
    }
    return last.back();
}

/// Whether `other` goes on where `name` ends, or before its last letter, as queries does for query.
bool completes(std::string_view other, std::string_view name) {
    return other.starts_with(name) ||
           (name.size() > kMinStem && other.starts_with(name.substr(0, name.size() - 1)));
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
    if (name.empty() || name.size() > kMaxBytes) return {};
    std::string nearest;
    const std::size_t limit = std::min(kMaxDistance + 1, (name.size() + 1) / 2);
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::string& other : names) {
        const std::size_t far = distance(name, other);
        if (far >= least || (far >= limit && !completes(other, name))) continue;
        least = far;
        nearest = other;
    }
    return nearest;
}

}  // namespace gloved
