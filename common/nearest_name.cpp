#include "common/nearest_name.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace gloved {
namespace {

constexpr std::size_t kMaxDistance = 2;
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

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
    if (name.empty() || name.size() > kMaxBytes) return {};
    std::string nearest;
    std::size_t least = std::min(kMaxDistance + 1, (name.size() + 1) / 2);
    for (const std::string& other : names) {
        const std::size_t far = other.starts_with(name) ? 0 : distance(name, other);
        if (far >= least) continue;
        least = far;
        nearest = other;
    }
    return nearest;
}

}  // namespace gloved
