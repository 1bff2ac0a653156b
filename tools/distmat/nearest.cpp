#include "tools/distmat/nearest.hpp"

#include <algorithm>

namespace gloved::distmat {

void find_nearest(std::span<const float> distances, std::size_t self, std::size_t count,
                  std::vector<Neighbour>& nearest) {
    nearest.clear();
    if (count == 0) return;
    const auto before = [](const Neighbour& a, const Neighbour& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.index < b.index;
    };
    // Skips what is not nearer than the farthest of the best `count`; reduces the list to these
    // whenever it is twice as long.
    const std::size_t most = 2 * count;
    bool full = false;
    float farthest = 0;
    for (std::size_t i = 0; i < distances.size(); ++i) {
        // Indices ascend: of equal distances the earlier is kept.
        if (i == self || (full && distances[i] >= farthest)) continue;
        nearest.push_back({static_cast<std::int64_t>(i), distances[i]});
        if (nearest.size() < most) continue;
        const auto last = nearest.begin() + static_cast<std::ptrdiff_t>(count - 1);
        std::nth_element(nearest.begin(), last, nearest.end(), before);
        farthest = last->distance;
        full = true;
        nearest.resize(count);
    }
    std::ranges::sort(nearest, before);
    nearest.resize(std::min(count, nearest.size()));
}

}  // namespace gloved::distmat
