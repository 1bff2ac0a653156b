// v0: one thread of the processor scores row after row, then inserts every score into a list of the
// best. What the original's GPU versions were checked against and compared with.
//
// Expected limit: one dependent addition an element, since float32 sums may not be reordered: two
// to four cycles each, 658.8 M of them at 2,196,016 x 300, some tenths of a second; not the memory,
// which one thread reads at 10 GB/s and more.
#include "common/elapsed.hpp"
#include "museum/search.hpp"

namespace gloved::museum {

std::vector<Entry> search_v0(const format::Model& model, std::span<const float> scaled,
                             float query_norm, std::size_t wanted, double& scored_ms) {
    const auto begun = std::chrono::steady_clock::now();
    std::vector<float> scores(model.rows());
    const float* row = model.vectors().data();
    for (std::size_t r = 0; r < scores.size(); ++r, row += scaled.size()) {
        float dot = 0;
        for (std::size_t i = 0; i < scaled.size(); ++i) dot += scaled[i] * row[i];
        scores[r] = float_score(dot, query_norm, static_cast<float>(model.norms()[r]));
    }
    scored_ms = ms_since(begun);

    std::vector<Entry> best(wanted);
    for (std::size_t r = 0; r < scores.size(); ++r) {
        const Entry entry{scores[r], static_cast<std::uint32_t>(r)};
        if (!comes_before(entry, best.back())) continue;
        std::size_t place = wanted - 1;
        for (; place > 0 && comes_before(entry, best[place - 1]); --place)
            best[place] = best[place - 1];
        best[place] = entry;
    }
    return best;
}

}  // namespace gloved::museum
